"""Writes ions-pme.txt with OpenMM (package `openmm` of PyPI, 8.6): python make.py

The system is ../lammps/ions.data. The first line has the energy of the charges, the following lines the force on each ion: PME of order 5
on the Reference platform (double precision). The printed difference is that of the forces with a coarser grid and another alpha, 3e-7.
"""

from pathlib import Path

import numpy
import openmm
from openmm import unit

HERE = Path(__file__).resolve().parent
COULOMB = 138.93545764438198  # OpenMM's constant, kJ nm/mol/e²

lines = (HERE.parent / "lammps/ions.data").read_text().split("\n")
box = [float(line.split()[1]) - float(line.split()[0]) for a in "xyz" for line in lines if f"{a}lo" in line]
start = lines.index("Atoms # full") + 2
rows = numpy.array([line.split() for line in lines[start:] if len(line.split()) == 7], dtype=float)


def forces(alpha, grid):
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*(box[i] if i == j else 0.0 for j in range(3))) for i in range(3)))
    charges = openmm.NonbondedForce()
    charges.setNonbondedMethod(openmm.NonbondedForce.PME)
    charges.setCutoffDistance(5.4)
    charges.setPMEParameters(alpha, *grid)
    for row in rows:
        system.addParticle(1.0)
        charges.addParticle(row[3] / COULOMB**0.5, 1.0, 0.0)
    system.addForce(charges)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(rows[:, 4:7])
    state = context.getState(getForces=True, getEnergy=True)
    return state.getPotentialEnergy() / unit.kilojoule_per_mole, state.getForces(asNumpy=True)._value


coarse, fine = forces(0.95, (150, 144, 180)), forces(1.0, (216, 192, 240))
difference = numpy.sqrt(((coarse[1] - fine[1]) ** 2).sum(axis=1).mean())
print(f"energies {coarse[0]:.8f} and {fine[0]:.8f}, forces differ by {difference:.1e}")
with open(HERE / "ions-pme.txt", "w") as out:
    out.write(f"{fine[0]:.10e}\n" + "".join(" ".join(f"{x:.8e}" for x in f) + "\n" for f in fine[1]))
