#!/usr/bin/env python3
"""Compares the melt of GALAMOST with that of LAMMPS: bond length, pressure, Rg² and Re², with standard errors.

    python3 compare.py FOLDER/melt-20 FOLDER/melt-50 [--picture melt.png] [--skip 0.2]

Each folder has thermo.csv and chains.gsd (melt.ron), and log.lammps and chains.dump (in.melt), or chains.dump.gz. The first fifth of each
run is left out. Errors of what is measured in chains are those of the means of the chains, which are independent; those
of the pressure are from 20 blocks of the run. Needs numpy and gsd, and matplotlib for the picture.

A time step of 0.01 is coarse for a FENE bond: velocities then have a slightly lower temperature than positions, by an
amount that depends on the integrator. What is compared is therefore the pressure with the kinetic part ρ kT of the
temperature that was asked for; the pressure as the programs print it stands beside it.
"""

import argparse
import csv
import gzip
import pathlib
import re
import sys

import gsd.hoomd
import numpy

LIMIT = 4.0


def galamost(folder):
    """Unwrapped chains of every frame, beads per chain in the last index but one; steps; rows of (kT, P)."""
    with gsd.hoomd.open(folder / "chains.gsd") as f:
        first = f[0]
        chains = first.particles.N - first.bonds.N
        box = first.configuration.box[:3]
        frames = [(s.configuration.step, s.particles.position.astype(float) + s.particles.image * box) for s in f]
    with open(folder / "thermo.csv") as f:
        rows = [(int(r["step"]), float(r["kT"]), float(r["pressure"])) for r in csv.DictReader(f)]
    return frames, numpy.array(rows), chains, float(numpy.prod(box.astype(float)))


def lammps(folder):
    path = folder / "chains.dump"
    with open(path) if path.exists() else gzip.open(folder / "chains.dump.gz", "rt") as f:
        lines = f.read().split("\n")
    frames, at = [], 0
    while at + 8 < len(lines):
        step, n = int(lines[at + 1]), int(lines[at + 3])
        rows = lines[at + 9 : at + 9 + n]
        if len(rows) < n or len(rows[-1].split()) < 4:
            break  # the run ended in the middle of a frame
        frames.append((step, numpy.array([r.split()[1:4] for r in rows], float)))
        at += 9 + n
    rows, table = [], False
    for line in open(folder / "log.lammps"):
        if line.split()[:1] == ["Step"]:
            table = True
        elif table and re.fullmatch(r"\s*\d+(\s+[-+.\deE]+){3}\s*", line):
            rows.append([float(x) for x in line.split()[:3]])
        elif table:
            table = False
    return frames, numpy.array(rows)


def blocks(values, n=20):
    means = numpy.array([b.mean() for b in numpy.array_split(values, n)])
    return values.mean(), means.std(ddof=1) / n**0.5


def of_chains(frames, chains):
    """Means and errors of b, b², Rg², Re², and the mean squared distances of beads n bonds apart over n."""
    x = numpy.array(frames).reshape(len(frames), chains, -1, 3)
    bonds = numpy.linalg.norm(numpy.diff(x, axis=2), axis=3)
    rg = ((x - x.mean(axis=2, keepdims=True)) ** 2).sum(axis=3).mean(axis=2)
    re = ((x[:, :, -1] - x[:, :, 0]) ** 2).sum(axis=2)
    out = {}
    for name, v in (("bond length", bonds.mean(axis=2)), ("bond length²", (bonds**2).mean(axis=2)), ("Rg²", rg), ("Re²", re)):
        each = v.mean(axis=0)
        out[name] = (each.mean(), each.std(ddof=1) / chains**0.5)
    n = x.shape[2]
    inner = [((x[:, :, k:] - x[:, :, :-k]) ** 2).sum(axis=3).mean() / k for k in range(1, n)]
    return out, inner


def sample(frames, rows, chains, density, skip):
    last = rows[-1, 0]
    first = rows[0, 0]
    start = first + skip * (last - first)
    rows = rows[rows[:, 0] >= start]
    kept = [x for step, x in frames if step >= start]
    if not kept:
        sys.exit("a run ended before its first frame that counts")
    out, inner = of_chains(kept, chains)
    out["P, kinetic part ρ kT"] = blocks(rows[:, 2] - density * (rows[:, 1] - 1.0))
    out["P as printed"] = blocks(rows[:, 2])
    out["kT of velocities"] = blocks(rows[:, 1])
    return out, inner, (len(kept), last - first)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--picture")
    parser.add_argument("--skip", type=float, default=0.2)
    given = parser.parse_args()
    fine, curves = True, []
    for folder in given.folders:
        frames, rows, chains, volume = galamost(folder)
        n = frames[0][1].shape[0]
        density = n / volume
        ours, inner, told = sample(frames, rows, chains, density, given.skip)
        theirs, their_inner, their_told = sample(*lammps(folder), chains, density, given.skip)
        print(f"\n{folder.name}: {chains} chains of {n // chains}, ρ {density:.4f}; frames and steps: GALAMOST {told}, LAMMPS {their_told}")
        print(f"{'':24}{'GALAMOST':>22}{'LAMMPS':>22}{'difference / s.e.':>20}")
        for name, (a, da) in ours.items():
            b, db = theirs[name]
            z = (a - b) / (da**2 + db**2) ** 0.5
            held = name not in ("P as printed", "kT of velocities")
            fine &= abs(z) < LIMIT or not held
            print(f"{name:24}{a:13.5f} ± {da:.5f}{b:13.5f} ± {db:.5f}{z:15.1f}{'' if held else '   (not held)'}")
        ratio = ours["Re²"][0] / ours["Rg²"][0]
        print(f"Re²/Rg² {ratio:.3f} (6 for a long Gaussian chain), Re²/(N − 1) l² {ours['Re²'][0] / (n // chains - 1) / ours['bond length²'][0]:.3f}")
        curves.append((folder.name, inner, their_inner))
    if given.picture:
        draw(given.picture, curves)
    sys.exit(0 if fine else 1)


def draw(name, curves):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6.5, 4.5))
    for color, (what, ours, theirs) in zip(("#1f5fa8", "#d1495b"), curves):
        k = numpy.arange(1, len(ours) + 1)
        ax.plot(k, theirs, color=color, lw=1.2, label=f"LAMMPS, {what.replace('melt-', 'N = ')}")
        ax.plot(k, ours, "o", color=color, ms=3.5, mfc="none", label=f"GALAMOST, {what.replace('melt-', 'N = ')}")
    ax.set(xlabel="bonds between two beads, n", ylabel="⟨R²(n)⟩ / n", xscale="log")
    ax.legend(frameon=False)
    fig.tight_layout()
    fig.savefig(name, dpi=150)


main()
