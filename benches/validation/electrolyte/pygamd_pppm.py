"""PyGAMD's PPPM for the electrolyte of electrolyte.ron: python3 pygamd_pppm.py IONS [GPU] [OPTION…]

Cutoffs 3 to 6 with order 5 and the coarsest grid whose error estimate (Deserno & Holm, as in PyGAMD) is that of accuracy 1e-4:
5.43e-5 of the force of two unit charges at the distance 1. PyGAMD chooses κ from cutoff and grid and prints its own estimate, which
is repeated here. Every setting runs in a process of its own, because PyGAMD holds one system per process.

Options: --cutoffs R,R,…; --buffers B,B,…, buffers of the neighbor list, of which those after the first are tried with the best
cutoff; --best FILE, reads the order of cutoffs from this file if it exists, else writes it there; --limit N, at most N cutoffs;
--climb, from the middle cutoff in the direction of growing speed instead of all cutoffs; --warm STEPS, --window SECONDS,
--timeout SECONDS of one process; --check, no speed, but the measured error of the force for each cutoff.
"""
import argparse
import glob
import math
import os
import random
import re
import subprocess
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("ions", type=int)
options.add_argument("gpu", nargs="?", default="0")
options.add_argument("--cutoffs", default="3.0,3.5,4.0,4.5,5.0,6.0")
options.add_argument("--buffers", default="0.4")
options.add_argument("--best", default="")
options.add_argument("--limit", type=int, default=9)
options.add_argument("--climb", action="store_true")
options.add_argument("--warm", type=int, default=2000)
options.add_argument("--window", type=float, default=1.5)
options.add_argument("--timeout", type=float, default=120)
options.add_argument("--check", action="store_true")
options.add_argument("--forces", default="", help="with --one: write forces to files of this name instead")
options.add_argument("--one", nargs=3, type=float, help="cutoff, grid and buffer: only this setting, in this process")
options = options.parse_args()
n, length = options.ions, (options.ions / 0.4) ** (1 / 3)
TARGET, ORDER = 5.43e-5, 5
ACONS = (1 / 23232, 7601 / 13628160, 143 / 69120, 517231 / 106536960, 106640677 / 11737571328)


def write(file):
    side = math.ceil(n ** (1 / 3) - 1e-9)
    random.seed(1)
    sites = random.sample(range(side**3), n)
    place = lambda s: " ".join(f"{((s // side**k % side) + 0.5) * length / side - length / 2:.6f}" for k in range(3))
    with open(file, "w") as out:
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n<configuration time_step="0" dimensions="3" natoms="{n}">\n')
        out.write(f'<box lx="{length}" ly="{length}" lz="{length}"/>\n')
        for name, rows in (
            ("position", [place(s) for s in sites]),
            ("type", ["CA"[i % 2] for i in range(n)]),
            ("mass", n * ["1.0"]),
            ("charge", [("1.0", "-1.0")[i % 2] for i in range(n)]),
        ):
            out.write(f'<{name} num="{n}">\n' + "\n".join(rows) + f"\n</{name}>\n")
        out.write("</configuration>\n</galamost_xml>\n")


def estimate(r_cut, grid):
    """κ for which both parts have the same error, and the error of a force."""
    mesh = lambda k: (
        n * (length / grid * k) ** ORDER * math.sqrt(k * length * math.sqrt(2 * math.pi) / n
        * sum(a * (length / grid * k) ** (2 * m) for m, a in enumerate(ACONS))) / length**2
    )
    short = lambda k: 2 * n * math.exp(-((k * r_cut) ** 2)) / math.sqrt(n * r_cut * length**3)
    low, high = 0.1, 5.0
    for _ in range(60):
        k = 0.5 * (low + high)
        low, high = (low, k) if mesh(k) > short(k) else (k, high)
    return low, math.hypot(mesh(low), short(low))


def coarsest(r_cut, target=TARGET, least=2):
    """The smallest even grid, or multiple of `least`, of small factors with at most this error."""
    grids = sorted(2**a * 3**b * 5**c for a in range(1, 10) for b in range(4) for c in range(3))
    return next((g for g in grids if g > length and g % least == 0 and estimate(r_cut, g)[1] <= target), 0)


def one(r_cut, grid, buffer):
    sys.argv = sys.argv[:1]  # poetry reads its options from here
    try:
        from poetry import cu_gala as gala
    except ImportError:
        import cu_gala as gala
    info = gala.AllInfo(gala.XMLReader("ions.xml"), gala.PerformConfig(options.gpu))
    app = gala.Application(info, 1e-7 if options.forces else 0.005)
    neighbors = gala.NeighborList(info, r_cut, buffer)
    core = gala.LJForce(info, neighbors, 2 ** (1 / 6))
    for a, b in ("CC", "CA", "AA"):
        core.setParams(a, b, 1.0, 1.0, 1.0)
    core.setEnergy_shift()
    app.add(core)
    charged = gala.ParticleSet(info, "charge")
    ewald = gala.EwaldForce(info, neighbors, charged, r_cut)
    app.add(ewald)
    pppm = gala.PPPMForce(info, neighbors, charged)
    pppm.setParams(grid, grid, grid, ORDER, r_cut)
    app.add(pppm)
    kappa = pppm.getKappa()
    ewald.setParams(kappa)
    if options.forces:
        app.add(gala.NVE(info, gala.ParticleSet(info, "all")))
        dump = gala.XMLDump(info, options.forces)
        dump.setPeriod(1)
        dump.setOutputForce(True)
        app.add(dump)
        app.run(2)
        return
    thermostat = gala.LangevinNVT(info, gala.ParticleSet(info, "all"), 1.0, 123)
    thermostat.setGamma(1.0)
    app.add(thermostat)
    sort = gala.Sort(info)
    sort.setPeriod(200)
    app.add(sort)
    app.run(options.warm)
    speeds, steps = [], 100
    for _ in range(3):
        begun = time.perf_counter()
        app.run(steps)
        speeds.append(steps / (time.perf_counter() - begun))
        steps = max(50, int(options.window * speeds[-1]))
    print(f"\n| {r_cut} | {kappa:.4f} | {grid} | {estimate(r_cut, grid)[1]:.2e} | {buffer} | {max(speeds):.1f} |", flush=True)


def process(r_cut, grid, buffer, *more):
    command = [sys.executable, __file__, str(n), options.gpu, "--warm", str(options.warm), "--window", str(options.window)]
    command += ["--one", str(r_cut), str(grid), str(buffer), *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
        return done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return f"error: no answer in {options.timeout} s"


def remarks(text):
    """PyGAMD's lines about errors."""
    return "".join(f"  {line}\n" for line in text.splitlines() if ("rror" in line or "RMS" in line) and "free from" not in line)


def measure(r_cut, buffer):
    # a second try if PyGAMD does not accept the grid
    for grid in dict.fromkeys((coarsest(r_cut), coarsest(r_cut, least=32))):
        text = process(r_cut, grid, buffer)
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        print("\n".join(rows or [f"| {r_cut} | | {grid} | | {buffer} | failed |"]) + "\n" + remarks(text), end="", flush=True)
        if rows:
            return float(rows[0].split("|")[6])
    return 0.0


def forces(r_cut, grid):
    """Forces on the particles of ions.xml at rest, where no cores touch."""
    for old in glob.glob("forces.*xml"):
        os.remove(old)
    text = process(r_cut, grid, 0.4, "--forces", "forces")
    files = sorted(glob.glob("forces.*xml"))
    if not files:
        sys.exit("no forces:\n" + remarks(text))
    rows = re.search(r"<force[^>]*>\n(.*?)\n\s*</force>", open(files[-1]).read(), re.S).group(1).split("\n")
    return [[float(v) for v in row.split()[:3]] for row in rows]


def check(r_cut):
    """The error of the setting of this cutoff, against forces with an estimated error of a thirtieth."""
    reference = forces(7.0, coarsest(7.0, TARGET / 30))
    print("| r_cut | grid | estimate | measured error | both in units of the accuracy |\n|---|---|---|---|---|")
    for r in r_cut:
        grid = coarsest(r)
        deviation = sum((a - b) ** 2 for f, g in zip(forces(r, grid), reference) for a, b in zip(f, g)) / n
        error = estimate(r, grid)[1]
        print(f"| {r} | {grid} | {error:.2e} | {math.sqrt(deviation):.2e} | {error / TARGET:.2f}, {math.sqrt(deviation) / TARGET:.2f} |", flush=True)


if options.one:
    one(options.one[0], int(options.one[1]), options.one[2])
else:
    write("ions.xml")
    cutoffs = [float(r) for r in options.cutoffs.split(",")]
    if options.best and os.path.exists(options.best):
        cutoffs = [float(r) for r in open(options.best).read().split()]
    if options.check:
        check(cutoffs[: options.limit])
        sys.exit()
    buffers = [float(b) for b in options.buffers.split(",")]
    print(f"PyGAMD, {n} ions\n| r_cut | kappa | grid | estimate of the error | buffer | TPS |\n|---|---|---|---|---|---|", flush=True)
    speeds, first = {}, buffers[0]
    if options.climb and not (options.best and os.path.exists(options.best)):
        # from the middle to the longer or shorter cutoffs as long as the speed grows
        middle = len(cutoffs) // 2
        for way in cutoffs[middle:], cutoffs[: middle + 1][::-1]:
            for at, r_cut in enumerate(way):
                if (r_cut, first) not in speeds:
                    speeds[r_cut, first] = measure(r_cut, first)
                if at and speeds[r_cut, first] < speeds[way[at - 1], first]:
                    break
    else:
        speeds = {(r, first): measure(r, first) for r in cutoffs[: options.limit]}
    best = max(speeds, key=speeds.get)[0]
    speeds |= {(best, b): measure(best, b) for b in buffers[1:]}
    print(f"\nbest: {max(speeds.values()):.1f} TPS with r_cut {best}, buffer {max(speeds, key=speeds.get)[1]}")
    if options.best and not os.path.exists(options.best) and max(speeds.values()):
        order = sorted((r for r, b in speeds if b == buffers[0]), key=lambda r: -speeds[r, buffers[0]])
        with open(options.best, "w") as out:
            out.write(" ".join(map(str, order)))
