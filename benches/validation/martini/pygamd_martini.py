"""PyGAMD for the bilayer of make_bilayer.py: python3 pygamd_martini.py FOLDER [GPU]

LJCoulombShiftForce from 0.9 to 1.2 nm, Langevin dynamics at 323 K, dt 0.02 ps. Prints time steps per second.
"""
import os
import sys
import time

os.chdir(sys.argv[1])
gpu = sys.argv[2] if len(sys.argv) > 2 else "0"
sys.argv = sys.argv[:1]  # poetry reads its options from here
from poetry import cu_gala as gala, force_field_gala  # noqa: E402

info = gala.AllInfo(gala.XMLReader("dppc.xml"), gala.PerformConfig(gpu))
app = gala.Application(info, 0.02)
neighbors = gala.NeighborList(info, 1.2, 0.12)
neighbors.addExclusionsFromBonds()
for force in (
    force_field_gala.LJCoulombShiftForce(info, neighbors, 1.2, 0.9, 15.0, "dppc.force_field"),
    force_field_gala.BondForceHarmonic(info, "dppc.force_field"),
    force_field_gala.AngleForceHarmonicCos(info, "dppc.force_field"),
):
    app.add(force)
thermostat = gala.LangevinNVT(info, gala.ParticleSet(info, "all"), 323 * 8.314462618e-3, 123)
thermostat.setGamma(72.0)
app.add(thermostat)
sort = gala.Sort(info)
sort.setPeriod(400)
app.add(sort)
app.run(2000)
speeds, steps = [], 2000
for _ in range(3):
    begun = time.perf_counter()
    app.run(steps)
    speeds.append(steps / (time.perf_counter() - begun))
    steps = max(100, int(1.5 * speeds[-1]))
print(f"PyGAMD, shift: {max(speeds):.1f} TPS")
