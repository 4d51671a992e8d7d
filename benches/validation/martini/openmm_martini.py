"""OpenMM for the bilayer of make_bilayer.py: python3 openmm_martini.py FOLDER rf|shift [PLATFORM]

Lennard-Jones and Coulomb potentials are one CustomNonbondedForce, as in packages that run Martini with OpenMM. `rf`: cutoff 1.1 nm,
shifted energy, reaction field with ε_r 15; `shift`: the shift function of GROMACS from 0.9 to 1.2 nm. Prints the energies of the first
frame (kJ/mol) and time steps per second with Langevin dynamics at 323 K, dt 0.02 ps.
"""
import re
import sys
import time
from pathlib import Path

import numpy as np
import openmm as mm
from openmm import unit

folder, form = Path(sys.argv[1]), sys.argv[2]
platform = mm.Platform.getPlatformByName(sys.argv[3] if len(sys.argv) > 3 else "CUDA")
options = {"Precision": "mixed"} if platform.getName() in ("CUDA", "OpenCL") else {}
COULOMB = 138.935458 / 15.0

text = (folder / "dppc.xml").read_text()
node = lambda name: re.search(rf"<{name} [^>]*>\n(.*?)\n</{name}>", text, re.S).group(1).split("\n")
edges = [float(x) for x in re.search(r'lx="(.*?)" ly="(.*?)" lz="(.*?)"', text).groups()]
positions = np.array([[float(v) for v in row.split()] for row in node("position")])
types, charges = node("type"), [float(q) for q in node("charge")]
sections = dict(re.findall(r"<(\w+)_params>\n(.*?)</\1_params>", (folder / "dppc.force_field").read_text(), re.S))
rows = {name: [row.split() for row in body.splitlines()] for name, body in sections.items()}


def shifted(n, r1, rc):
    """r^-n with the shift function of GROMACS, as a formula."""
    w = rc - r1
    a = -n * ((n + 4) * rc - (n + 1) * r1) / (rc ** (n + 2) * w**2)
    b = n * ((n + 3) * rc - (n + 1) * r1) / (rc ** (n + 2) * w**3)
    c = rc**-n - a / 3 * w**3 - b / 4 * w**4
    return f"(r^-{n} - {c!r} - step(r - {r1})*({a / 3!r}*(r - {r1})^3 + ({b / 4!r})*(r - {r1})^4))"


if form == "rf":
    cut = 1.1
    lj = f"c12(t1, t2)*(r^-12 - {cut**-12!r}) - c6(t1, t2)*(r^-6 - {cut**-6!r})"
    coulomb = f"{COULOMB!r}*q1*q2*(1/r + {0.5 / cut**3!r}*r^2 - {1.5 / cut!r})"
else:
    cut = 1.2
    lj = f"c12(t1, t2)*{shifted(12, 0.9, cut)} - c6(t1, t2)*{shifted(6, 0.9, cut)}"
    coulomb = f"{COULOMB!r}*q1*q2*{shifted(1, 0.9, cut)}"

system = mm.System()
system.setDefaultPeriodicBoxVectors(*(mm.Vec3(*(edges[i] if i == j else 0.0 for j in range(3))) for i in range(3)))
names = sorted(set(types))
table = np.zeros((2, len(names), len(names)))
for a, b, epsilon, sigma, _ in rows["pair"]:
    i, j = names.index(a), names.index(b)
    table[:, i, j] = table[:, j, i] = 4 * float(epsilon) * float(sigma) ** 6 * np.array([1.0, float(sigma) ** 6])
pairs = mm.CustomNonbondedForce(f"{lj} + {coulomb}")
for name, values in zip(("c6", "c12"), table):
    pairs.addTabulatedFunction(name, mm.Discrete2DFunction(len(names), len(names), values.flatten().tolist()))
pairs.addPerParticleParameter("t")
pairs.addPerParticleParameter("q")
pairs.setNonbondedMethod(mm.CustomNonbondedForce.CutoffPeriodic)
pairs.setCutoffDistance(cut)
for kind, q in zip(types, charges):
    system.addParticle(72.0)
    pairs.addParticle([names.index(kind), q])
bonds = mm.HarmonicBondForce()
angles = mm.CustomAngleForce("0.5*k*(cos(theta) - c)^2")
angles.addPerAngleParameter("k")
angles.addPerAngleParameter("c")
lengths = {row[0]: (float(row[2]), float(row[1])) for row in rows["bond"]}
bends = {row[0]: (float(row[1]), float(np.cos(np.radians(float(row[2]))))) for row in rows["angle"]}
for row in node("bond"):
    name, i, j = row.split()
    bonds.addBond(int(i), int(j), *lengths[name])
    pairs.addExclusion(int(i), int(j))
for row in node("angle"):
    name, *ids = row.split()
    angles.addAngle(*map(int, ids), bends[name])
for group, force in enumerate((pairs, bonds, angles)):
    if force is not pairs:
        force.setUsesPeriodicBoundaryConditions(True)
    force.setForceGroup(group)
    system.addForce(force)
system.addForce(mm.CMMotionRemover(1000))
integrator = mm.LangevinMiddleIntegrator(323 * unit.kelvin, 1.0 / unit.picosecond, 0.02 * unit.picosecond)
context = mm.Context(system, integrator, platform, options)
context.setPositions(positions)
energy = lambda group: context.getState(getEnergy=True, groups={group}).getPotentialEnergy()._value
print("energies", *(f"{name} {energy(k)!r}" for k, name in enumerate(("pairs", "bonds", "angles"))))
context.setVelocitiesToTemperature(323 * unit.kelvin, 1)
steps, speeds = int(sys.argv[4]) if len(sys.argv) > 4 else 2000, []
integrator.step(steps)
context.getState(getEnergy=True)
for _ in range(3):
    begun = time.perf_counter()
    integrator.step(steps)
    context.getState(getEnergy=True)
    speeds.append(steps / (time.perf_counter() - begun))
    if len(sys.argv) < 5:
        steps = max(100, int(1.5 * speeds[-1]))
print(f"OpenMM {mm.version.full_version}, {platform.getName()}, {form}, {len(types)} beads: {max(speeds):.1f} TPS")
