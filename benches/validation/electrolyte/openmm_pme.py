"""OpenMM's PME for the electrolyte of electrolyte.ron: python3 openmm_pme.py IONS[,IONS…] [PLATFORM] [OPTION…]

For several cutoffs: α from the cutoff as in Pppm, and the coarsest grid whose root-mean-square force error, against a finer
grid with a longer cutoff, is below the accuracy 1e-4 (of C⟨q²⟩/d²). Prints steps per second of each and of the best.

Options: --cutoffs R,R,…; --errors N, ions of the search for grids, 0 for those of the run, on --errors-platform; --points P,P,…,
points per length of each cutoff from an earlier search in place of one; --core own|shared|both, WCA with its own cutoff and neighbor
list, with those of the charges, or the second for the best cutoff of the first; --warm STEPS and --window SECONDS; --best N, for
sizes after the first only the N cutoffs that were best; --climb, from the middle cutoff in the direction of growing speed instead of
all cutoffs; --check, the error of the best setting of the first size against the finer grid.
"""
import argparse
import math
import random
import time

import numpy as np
import openmm as mm
from openmm import unit

options = argparse.ArgumentParser()
options.add_argument("ions")
options.add_argument("platform", nargs="?", default="CUDA")
options.add_argument("--cutoffs", default="2.5,3.0,3.5,4.0,4.5,5.0")
options.add_argument("--errors", type=int, default=0)
options.add_argument("--errors-platform", default="")
options.add_argument("--points", default="")
options.add_argument("--core", default="own", choices=("own", "shared", "both"))
options.add_argument("--warm", type=int, default=4000)
options.add_argument("--window", type=float, default=1.5)
options.add_argument("--best", type=int, default=6)
options.add_argument("--climb", action="store_true")
options.add_argument("--check", action="store_true")
options = options.parse_args()
CUTOFFS = [float(r) for r in options.cutoffs.split(",")]
ACCURACY = 1e-4
TARGET = ACCURACY * 0.4 ** (2 / 3)  # C⟨q²⟩/d² with C = q² = 1 and d = 0.4^(-1/3)
COULOMB = 138.935456  # OpenMM's constant, kJ nm/mol/e²
KELVIN = 1 / unit.MOLAR_GAS_CONSTANT_R.value_in_unit(unit.kilojoule_per_mole / unit.kelvin)  # kT = 1 kJ/mol


def alpha_of(r_cut, accuracy):
    """Half of the squared error in the short-range part, Kolafa & Perram."""
    most = 2 * 0.4 ** (-1 / 6) / math.sqrt(r_cut)
    return math.sqrt(math.log(most / (accuracy / math.sqrt(2)))) / r_cut


def smooth(least):
    k = math.ceil(least - 1e-6)
    while True:
        rest = k
        for p in (2, 3, 5, 7):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return k
        k += 1


class Ions:
    def __init__(self, n, platform):
        self.n, self.length = n, (n / 0.4) ** (1 / 3)
        self.platform = mm.Platform.getPlatformByName(platform)
        self.precision = {"Precision": "mixed"} if platform in ("CUDA", "OpenCL") else {}
        random.seed(1)
        side = math.ceil(n ** (1 / 3))
        sites = np.array(random.sample(range(side**3), n))
        self.positions = np.stack([((sites // side**k % side) + 0.5) * self.length / side for k in range(3)], axis=1)
        self.systems = {}

    def system(self, core):
        """The system with WCA of this kind, made once; its forces get cutoffs and grids before each context."""
        if core not in self.systems:
            system, charges = mm.System(), mm.NonbondedForce()
            wall = mm.CustomNonbondedForce("4*(r^-12 - r^-6) + 1" if core == "own" else f"step({2 ** (1 / 6)!r} - r)*(4*(r^-12 - r^-6) + 1)")
            edges = (mm.Vec3(*(self.length if i == j else 0.0 for j in range(3))) for i in range(3))
            system.setDefaultPeriodicBoxVectors(*edges)
            for i in range(self.n):
                system.addParticle(1.0)
                charges.addParticle((-1) ** i / math.sqrt(COULOMB), 1.0, 0.0)
                wall.addParticle([])
            charges.setNonbondedMethod(mm.NonbondedForce.PME)
            wall.setNonbondedMethod(mm.CustomNonbondedForce.CutoffPeriodic)
            wall.setCutoffDistance(2 ** (1 / 6))
            wall.setForceGroup(1 if core == "own" else 0)  # another cutoff needs another group
            system.addForce(charges)
            system.addForce(wall)
            self.systems[core] = system
        return self.systems[core]

    def context(self, r_cut, alpha, grid, core="own"):
        system = self.system(core)
        system.getForce(0).setCutoffDistance(r_cut)
        system.getForce(0).setPMEParameters(alpha, grid, grid, grid)
        if core == "shared":
            system.getForce(1).setCutoffDistance(r_cut)
        context = mm.Context(system, mm.LangevinMiddleIntegrator(KELVIN, 1.0, 0.005), self.platform, self.precision)
        context.setPositions(self.positions)
        return context

    def forces(self, r_cut, alpha, grid):
        state = self.context(r_cut, alpha, grid).getState(getForces=True, groups={0})
        return state.getForces(asNumpy=True)._value

    def finer(self):
        r = min(7.0, 0.49 * self.length)
        return self.forces(r, alpha_of(r, 1e-6), smooth(4.0 * self.length))

    def error(self, r_cut, grid, reference):
        deviation = self.forces(r_cut, alpha_of(r_cut, ACCURACY), grid) - reference
        return float(np.sqrt((deviation**2).sum(axis=1).mean()) / TARGET)

    def run(self, context, steps):
        begun = time.perf_counter()
        context.getIntegrator().step(steps)
        context.getState(getEnergy=True)
        return steps / (time.perf_counter() - begun)

    def warm(self, r_cut, grid):
        context = self.context(r_cut, alpha_of(r_cut, ACCURACY), grid)
        context.setVelocitiesToTemperature(120.27, 1)
        self.run(context, options.warm)
        state = context.getState(getPositions=True, getEnergy=True, enforcePeriodicBox=True)
        self.positions = state.getPositions(asNumpy=True)._value
        kT = 2 * state.getKineticEnergy()._value / 3 / self.n
        print(f"OpenMM {mm.version.full_version}, {self.platform.getName()}, {self.n} ions, kT {kT:.3f}", flush=True)

    def speed(self, r_cut, grid, core):
        context = self.context(r_cut, alpha_of(r_cut, ACCURACY), grid, core)
        context.setVelocitiesToTemperature(120.27, 1)
        self.run(context, 50)
        speeds = [self.run(context, 100)]
        for _ in range(2):
            speeds.append(self.run(context, max(50, int(options.window * speeds[-1]))))
        return max(speeds)


def search(n):
    """Points per length of the coarsest sufficient grid for each cutoff."""
    ions = Ions(n, options.errors_platform or options.platform)
    ions.warm(3.5, smooth(2.0 * ions.length))
    reference = ions.finer()
    print("| r_cut | alpha | grid | points per length | error, units of the accuracy |\n|---|---|---|---|---|")
    found = {}
    for r_cut in CUTOFFS:
        grids = sorted({smooth(k) for k in range(math.ceil(0.8 * ions.length), math.ceil(5.0 * ions.length))})
        # the error falls with the grid: bisection
        low, high, errors = 0, len(grids) - 1, {}
        while low < high:
            middle = (low + high) // 2
            errors[middle] = ions.error(r_cut, grids[middle], reference)
            low, high = (low, middle) if errors[middle] <= 1.0 else (middle + 1, high)
        error = errors[low] if low in errors else ions.error(r_cut, grids[low], reference)
        if error <= 1.0:
            found[r_cut] = grids[low] / ions.length
        remark = "" if error <= 1.0 else ", not reached"
        print(f"| {r_cut} | {alpha_of(r_cut, ACCURACY):.3f} | {grids[low]} | {grids[low] / ions.length:.3f} | {error:.2f}{remark} |", flush=True)
    return found


sizes = [int(n) for n in options.ions.split(",")]
if options.points:
    points = dict(zip(CUTOFFS, map(float, options.points.split(","))))
else:
    points = search(options.errors or sizes[0])
if not points:
    raise SystemExit("no cutoff reaches the accuracy")
chosen = sorted(points)
for k, n in enumerate(sizes):
    ions = Ions(n, options.platform)
    ions.warm(chosen[0], smooth(points[chosen[0]] * ions.length))
    print("| r_cut | alpha | grid | core | TPS |\n|---|---|---|---|---|", flush=True)
    speeds = {}
    def measure(r_cut, core):
        grid = smooth(points[r_cut] * ions.length)
        speeds[r_cut, core] = ions.speed(r_cut, grid, core)
        print(f"| {r_cut} | {alpha_of(r_cut, ACCURACY):.3f} | {grid} | {core} | {speeds[r_cut, core]:.1f} |", flush=True)

    core = "own" if options.core == "both" else options.core
    if options.climb and k == 0:
        # from the middle to the longer or shorter cutoffs as long as the speed grows
        middle = len(chosen) // 2
        for way in chosen[middle:], chosen[: middle + 1][::-1]:
            for at, r_cut in enumerate(way):
                if (r_cut, core) not in speeds:
                    measure(r_cut, core)
                if at and speeds[r_cut, core] < speeds[way[at - 1], core]:
                    break
    else:
        for r_cut in chosen:
            measure(r_cut, core)
    if options.core == "both":
        measure(max(speeds, key=speeds.get)[0], "shared")
    r_best, core = max(speeds, key=speeds.get)
    print(f"\nbest: {speeds[r_best, core]:.1f} TPS with r_cut {r_best}, core {core}", flush=True)
    if options.check and k == 0:
        grid = smooth(points[r_best] * ions.length)
        print(f"error of that setting, {n} ions: {ions.error(r_best, grid, ions.finer()):.2f} of the accuracy", flush=True)
    if k == 0:
        best_first = sorted({r for r, _ in speeds}, key=lambda r: -max(v for (q, _), v in speeds.items() if q == r))
        chosen = sorted(best_first[: options.best])
        options.core = core
