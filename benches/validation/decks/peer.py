"""PyGAMD's deck of a case in the current folder: python3 peer.py CASE SECONDS [SEED] [GPU]

Reads start.xml, writes data.log, frames peer*.xml and plan.json (steps and steps per second; after every part, so that a run that is
killed can be compared as far as it went). The parameters are those of the deck's script.
"""
import json
import sys
import time

CASE, SECONDS = sys.argv[1], float(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 123
GPU = sys.argv[4] if len(sys.argv) > 4 else "0"
sys.argv = sys.argv[:1]
from poetry import cu_gala as gala

DT = {"6": 0.002, "7": 0.005, "10": 0.002, "15": 0.0005}[CASE]
# steps between frames
PART = {"6": 2000, "7": 1000, "10": 500, "15": 10_000}[CASE]
info = gala.AllInfo(gala.XMLReader("start.xml"), gala.PerformConfig(GPU))
app = gala.Application(info, DT)
every = gala.ParticleSet(info, "all")
compute = gala.ComputeInfo(info, every)
if CASE == "6":
    neighbors = gala.NeighborList(info, 1.4, 0.1)
    neighbors.addExclusionsFromBonds()
    neighbors.addExclusionsFromAngles()
    neighbors.addExclusionsFromDihedrals()
    pair = gala.LJForce(info, neighbors, 1.4)
    for a, b, e, s in (("T", "T", 0.814818, 0.375), ("T", "M", 0.558246, 0.385), ("M", "M", 0.382465, 0.395)):
        pair.setParams(a, b, e, s, 1.0)
    bonds, angles, dihedrals = gala.BondForceHarmonic(info), gala.AngleForceHarmonic(info), gala.DihedralForceOPLSCosine(info)
    for name in info.getBondInfo().getBondTypes():
        bonds.setParams(name, 129704.0, 0.154)
    for name in info.getAngleInfo().getAngleTypes():
        angles.setParams(name, 519.6545, 114.0)
    for name in info.getDihedralInfo().getDihedralTypes():
        dihedrals.setParams(name, 0.0, 2.95188, -0.566963, 6.57940, 0.0)
    forces = [pair, bonds, angles, dihedrals]
    movers = [gala.NPT(info, every, compute, compute, 450 * 8.3143e-3, 0.06102, 1.0, 1.0)]
elif CASE == "7":
    neighbors = gala.NeighborList(info, 3.0, 0.1)
    neighbors.addExclusionsFromBodies()
    pair = gala.LJForce(info, neighbors, 3.0)
    for a, b, r in (("A", "A", 1.12246), ("A", "B", 1.12246), ("B", "B", 3.0)):
        pair.setParams(a, b, 1.0, 1.0, 1.0, r)
    pair.setEnergy_shift()
    forces = [pair]
    # γ of the deck: the default
    movers = [gala.LangevinNVTRigid(info, gala.ParticleSet(info, "body"), 0.5, SEED)]
elif CASE == "10":
    with open("patch-2.log", "w") as out:
        out.write("<Patches>\nB 0\n</Patches>\n<PatchParams>\np1 p1 88.0 0.5\n</PatchParams>\n<Aspheres>\n"
                  "A 1.0 1.0 1.0 3.0 3.0 3.0\nB 0.5 3.0 2.0 1.0 0.2 0.2\n</Aspheres>\n")
    neighbors = gala.NeighborList(info, 4.0, 0.8)
    neighbors.addExclusionsFromBodies()
    pair = gala.PBGBForce(info, neighbors)
    pair.setGUM(1.0, 3.0, 1.0)
    for a, b, e, r in (("B", "B", 2.0, 4.0), ("A", "A", 2.0, 2.5), ("A", "B", 1.0, 3.25)):
        pair.setParams(a, b, e, 1.0, r)
    pair.setAspheres("patch-2.log")
    forces = [pair]
    rigid, free = gala.ParticleSet(info, "body"), gala.ParticleSet(info, "non_body")
    compute_rigid, compute_free = gala.ComputeInfo(info, rigid), gala.ComputeInfo(info, free)
    movers = [gala.NPTRigid(info, rigid, compute_rigid, compute, 2.4, 8.0, 0.5, 0.5),
              gala.NPT(info, free, compute_free, compute, 2.4, 8.0, 0.5, 0.5)]
else:
    neighbors = gala.NeighborList(info, 2 ** (1 / 6), 0.1)
    pair = gala.LJForce(info, neighbors, 2 ** (1 / 6))
    for a, b in ("AA", "BB", "AB"):
        pair.setParams(a, b, 1.0, 1.0, 1.0)
    info.addBondTypeByPairs()
    info.addAngleTypeByPairs()
    bonds, angles = gala.BondForceHarmonic(info), gala.AngleForceHarmonic(info)
    bonds.setParams("A-B", 1250.0, 1.0)
    bonds.setParams("B-B", 1250.0, 1.0)
    angles.setParams("B-A-B", 1000.0, 120.0)
    angles.setParams("A-B-B", 1000.0, 180.0)
    forces = [pair, bonds, angles]
    movers = [gala.LangevinNVT(info, every, 1.0, SEED)]
for part in forces + movers:
    app.add(part)
sort = gala.Sort(info)
sort.setPeriod({"7": 200, "10": 300, "15": 100}.get(CASE, 400))
app.add(sort)
if CASE in ("7", "10"):
    momentum = gala.ZeroMomentum(info)
    momentum.setPeriod({"7": 100, "10": 50000}[CASE])
    app.add(momentum)
log = gala.DumpInfo(info, compute, "data.log")
log.setPeriod(1000 if CASE == "15" else 100)
if CASE in ("6", "10"):
    log.dumpBoxSize()
app.add(log)
dump = gala.XMLDump(info, "peer")
dump.setPeriod(PART)
for field in {"6": ["Bond", "Dihedral"], "7": ["Body"], "10": ["Quaternion"], "15": ["Bond"]}[CASE]:
    getattr(dump, "setOutput" + field)(True)
app.add(dump)
total, begun = 0, time.perf_counter()
while time.perf_counter() - begun < SECONDS:
    app.run(PART)
    total += PART
    with open("plan.json", "w") as out:
        json.dump({"total": total, "part": PART, "TPS": total / (time.perf_counter() - begun)}, out)
    if CASE == "15" and total == PART:
        # as the script: 10,000 steps without reactions
        back = gala.DePolymerization(info, 1.0, 16361 + SEED)
        back.setParams("B-B", 1250.0, 1.0, 1.0, 1000.0, 180.0, 2.77 + 6.0, 1.0, gala.DePolyFunc.harmonic)
        back.setPeriod(2000)
        back.setCountUnbonds(100000)
        app.add(back)
        forth = gala.Polymerization(info, neighbors, 2 ** (1 / 6), SEED)
        forth.setEnergyBar(2.77)
        forth.setPr("B", "B", 1.0)
        forth.setNewBondTypeByPairs()
        forth.setNewAngleTypeByPairs()
        forth.generateAngle(True)
        forth.setAngleLowerLimitDegree(120.0)
        forth.setMaxCris("B", 1)
        forth.setInitInitReaction(True)
        forth.setPeriod(2000)
        app.add(forth)
