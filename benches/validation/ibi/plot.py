#!/usr/bin/env python3
"""A picture of what ibi.sh left, unpacked: plot.py FOLDER PICTURE. Needs numpy and matplotlib.

First row: distributions of the chains from the reference (line), from the tables on the GPU (dots) and on the CPU (rings). Second row: their
potentials, first guess and result. Third row: the WCA potential and the mixture's, where they are there.
"""

import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def table(path):
    return np.genfromtxt(path, delimiter=",", skip_header=1).T


def lj(r, eps, sigma, cut=2.5):
    def u(x):
        return 4 * eps * ((sigma / x) ** 12 - (sigma / x) ** 6)

    def f(x):
        return 24 * eps * (2 * (sigma / x) ** 12 - (sigma / x) ** 6) / x

    return np.where(r < cut, u(r) - u(cut) + (r - cut) * f(cut), 0)


folder, picture = sys.argv[1:3]
there = lambda *path: os.path.exists(os.path.join(folder, *path))
at = lambda *path: os.path.join(folder, *path)
fig, axes = plt.subplots(3, 4, figsize=(15, 10))
names = [("rdf", "pair.A-A", "r", "g(r)"), ("bond", "bond.A-A", "r", "P(r)"), ("angle", "angle.A-A-A", "θ, degrees", "P(θ)"), ("dihedral", "dihedral.A-A-A-A", "φ, degrees", "P(φ)")]
if there("chain"):
    for k, (name, stem, x, y) in enumerate(names):
        a = axes[0][k]
        t = table(at("chain", f"{name}.csv"))
        a.plot(t[0], t[1], "k-", lw=1, label="target")
        for place, style in (("gpu", "C1."), ("cpu", "C0o")):
            if there("chain", place, f"{name}.csv"):
                p = table(at("chain", place, f"{name}.csv"))
                a.plot(p[0], p[1], style, ms=3 if place == "gpu" else 5, mfc="none" if place == "cpu" else None, mew=0.7, label=f"tables, {place.upper()}")
        a.set(xlabel=x, ylabel=y)
        a = axes[1][k]
        u = table(at("chain", "spec", "result", f"{stem}.csv"))
        v = table(at("chain", "spec", "iter-001", "main", f"{stem}.csv"))
        a.plot(v[0], v[1], "C7--", lw=1, label="Boltzmann inversion")
        a.plot(u[0], u[1], "C3-", lw=1.2, label="result")
        low = np.min(u[1])
        if name == "rdf":
            true = lj(u[0], 0.5, 1.0)
            a.set_xlim(0.8, 2.5)
        elif name == "bond":
            true = (((u[0] - 1) / 0.08) ** 2 - 1) ** 2 + 5 * (u[0] - 1)
        elif name == "angle":
            q = (np.radians(u[0]) - 2.234) / 0.384
            true = 1.2 * (q**2 - 1) ** 2 - (np.radians(u[0]) - 2.234)
        else:
            phi = np.radians(u[0])
            true = 0.5 * (1 + np.cos(phi)) + 0.6 * (1 + np.cos(3 * phi))
        if name != "rdf":
            true = true - np.min(true)
        a.plot(u[0], true, "k:", lw=1.2, label="reference")
        a.set(xlabel=x, ylabel="U/kT", ylim=(low - 0.5, low + (2.5 if name == "rdf" else 7)))
    axes[0][0].legend(fontsize=8)
    axes[1][0].legend(fontsize=8)
k = 0
for part in ("wca", "imc"):
    a = axes[2][k]
    k += 1
    if there(part, "spec"):
        v, u = table(at(part, "spec", "iter-001", "main", "pair.A-A.csv")), table(at(part, "spec", "result", "pair.A-A.csv"))
        true = np.where(u[0] < 2 ** (1 / 6), 4 * (u[0] ** -12 - u[0] ** -6) + 1, 0)
        a.plot(v[0], v[1], "C7--", lw=1)
        a.plot(u[0], u[1], "C3-", lw=1.2)
        a.plot(u[0], true, "k:", lw=1.2)
        a.set(xlabel="r", ylabel="U/kT", xlim=(0.85, 2.5), ylim=(-1.2, 4), title="WCA by " + {"wca": "IBI", "imc": "IMC"}[part])
if there("mixture", "spec"):
    for pair, eps, sigma, c in (("A-A", 1.0, 1.0, "C0"), ("A-B", 1.2, 0.95, "C1"), ("B-B", 0.6, 0.9, "C2")):
        u = table(at("mixture", "spec", "result", f"pair.{pair}.csv"))
        axes[2][2].plot(u[0], u[1], c, lw=1.2, label=pair)
        axes[2][2].plot(u[0], lj(u[0], eps, sigma), "k:", lw=1)
    axes[2][2].set(xlabel="r", ylabel="U", xlim=(0.8, 2.5), ylim=(-1.4, 3), title="mixture by IBI")
    axes[2][2].legend(fontsize=8)
for part in ("wca", "imc", "mixture", "chain"):
    if there(part, "spec", "convergence.csv"):
        with open(at(part, "spec", "convergence.csv")) as f:
            rows = [line.split(",") for line in f.read().split("\n")[1:] if line]
        n = sorted({int(r[0]) for r in rows})
        axes[2][3].semilogy(n, [max(float(r[3]) for r in rows if int(r[0]) == k) for k in n], label=part)
axes[2][3].set(xlabel="iteration", ylabel="distance from the target", title="worst interaction")
axes[2][3].legend(fontsize=8)
fig.tight_layout()
fig.savefig(picture, dpi=110)
