"""OpenMM's PME for the electrolyte of electrolyte.ron: python3 openmm_pme.py IONS [PLATFORM]

For several cutoffs: α from the cutoff as in Pppm, and the coarsest grid whose root-mean-square force error, against a finer
grid with a longer cutoff, is below the accuracy 1e-4 (of C⟨q²⟩/d²). Prints steps per second of each and of the best.
"""
import math
import random
import sys
import time

import numpy as np
import openmm as mm
from openmm import unit

n = int(sys.argv[1])
platform = mm.Platform.getPlatformByName(sys.argv[2] if len(sys.argv) > 2 else "CUDA")
precision = {"Precision": "mixed"} if platform.getName() in ("CUDA", "OpenCL") else {}
length = (n / 0.4) ** (1 / 3)
target = 1e-4 * 0.4 ** (2 / 3)  # C⟨q²⟩/d² with C = q² = 1 and d = 0.4^(-1/3)
COULOMB = 138.935456  # OpenMM's constant, kJ nm/mol/e²

random.seed(1)
side = math.ceil(n ** (1 / 3))
sites = random.sample(range(side**3), n)
start = [mm.Vec3(*(((s // side**k % side) + 0.5) * length / side for k in range(3))) for s in sites]
charge = [(-1) ** i / math.sqrt(COULOMB) for i in range(n)]


def simulation(r_cut, alpha, grid, positions):
    system = mm.System()
    system.setDefaultPeriodicBoxVectors(*(mm.Vec3(*(length if i == j else 0.0 for j in range(3))) for i in range(3)))
    charges, core = mm.NonbondedForce(), mm.CustomNonbondedForce("4*(r^-12 - r^-6) + 1")
    charges.setNonbondedMethod(mm.NonbondedForce.PME)
    core.setNonbondedMethod(mm.CustomNonbondedForce.CutoffPeriodic)
    charges.setCutoffDistance(r_cut)
    core.setCutoffDistance(2 ** (1 / 6))
    core.setForceGroup(1)  # another cutoff needs another group
    charges.setPMEParameters(alpha, grid, grid, grid)
    for q in charge:
        system.addParticle(1.0)
        charges.addParticle(q, 1.0, 0.0)
        core.addParticle([])
    system.addForce(charges)
    system.addForce(core)
    # kT = 1 kJ/mol
    kelvin = 1 / (unit.MOLAR_GAS_CONSTANT_R.value_in_unit(unit.kilojoule_per_mole / unit.kelvin))
    integrator = mm.LangevinMiddleIntegrator(kelvin, 1.0, 0.005)
    context = mm.Context(system, integrator, platform, precision)
    context.setPositions(positions)
    return context, integrator


def forces(r_cut, alpha, grid, positions):
    context, _ = simulation(r_cut, alpha, grid, positions)
    return context.getState(getForces=True, groups={0}).getForces(asNumpy=True)._value


def alpha_of(r_cut, accuracy):
    """Half of the squared error in the short-range part, Kolafa & Perram."""
    most = 2 * (length**3 / n) ** (1 / 6) / math.sqrt(r_cut)
    return math.sqrt(math.log(most / (accuracy / math.sqrt(2)))) / r_cut


def smooth(least):
    k = math.ceil(least)
    while True:
        rest = k
        for p in (2, 3, 5, 7):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return k
        k += 1


context, integrator = simulation(3.0, alpha_of(3.0, 1e-4), smooth(1.5 * length), start)
context.setVelocitiesToTemperature(120.27, 1)
integrator.step(4000)
state = context.getState(getPositions=True, enforcePeriodicBox=True)
positions = state.getPositions(asNumpy=True)._value
print(f"OpenMM {mm.version.full_version}, {platform.getName()}, {n} ions, kT {2 * context.getState(getEnergy=True).getKineticEnergy()._value / 3 / n:.3f}")
r = min(7.0, 0.49 * length)
reference = forces(r, alpha_of(r, 1e-6), smooth(4.0 * length), positions)
del context, integrator
print("| r_cut | alpha | grid | error, units of the accuracy | TPS |\n|---|---|---|---|---|")
best = 0.0
for r_cut in (2.5, 3.0, 3.5, 4.0, 4.5, 5.0):
    alpha = alpha_of(r_cut, 1e-4)
    # points per length from coarse to fine; the grid of the first error below the target
    for density in (0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.6, 1.8, 2.0, 2.3, 2.6, 3.0, 3.5):
        grid = smooth(density * length)
        error = np.sqrt(((forces(r_cut, alpha, grid, positions) - reference) ** 2).sum(axis=1).mean()) / target
        if error <= 1.0:
            break
    else:
        print(f"| {r_cut} | {alpha:.3f} | {grid} | {error:.2f} | too coarse |")
        continue
    context, integrator = simulation(r_cut, alpha, grid, positions)
    context.setVelocitiesToTemperature(120.27, 1)
    steps = 500
    integrator.step(steps)
    context.getState(getEnergy=True)
    speeds = []
    for _ in range(3):
        begun = time.perf_counter()
        integrator.step(steps)
        context.getState(getEnergy=True)
        speeds.append(steps / (time.perf_counter() - begun))
        steps = max(100, int(1.5 * speeds[-1]))
    best = max(best, *speeds)
    print(f"| {r_cut} | {alpha:.3f} | {grid} | {error:.2f} | {max(speeds):.1f} |", flush=True)
    del context, integrator
print(f"\nbest: {best:.1f} TPS")
