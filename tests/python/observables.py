"""Sizes of molecules, profiles and stress correlations that analyzers wrote, against NumPy on the same frames: observables.py FOLDER."""

import csv
import os
import sys

import gsd.hoomd
import MDAnalysis
import numpy as np

folder = sys.argv[1]


def table(name):
    with open(os.path.join(folder, name)) as f:
        rows = list(csv.reader(f))
    return {n: np.array([float(r[i]) if r[i] else np.nan for r in rows[1:]]) for i, n in enumerate(rows[0])}


def near(what, ours, theirs, limit):
    scale = np.nanmax(np.abs(theirs))
    worst = np.nanmax(np.abs(np.asarray(ours) - theirs)) / scale
    print(f"{what}: {worst:.1e} of the largest value {scale:.4g} from the reference")
    assert worst < limit, what


frames = list(gsd.hoomd.open(os.path.join(folder, "t.gsd")))
first = frames[0]
L = first.configuration.box[:3].astype(float)
n = first.particles.N
mass = first.particles.mass.astype(float)
groups = np.arange(n)
for a, b in first.bonds.group:
    groups[groups == max(groups[a], groups[b])] = min(groups[a], groups[b])
molecules = [np.flatnonzero(groups == g) for g in np.unique(groups)]
molecules = [m for m in molecules if len(m) >= 2]
degree = np.bincount(first.bonds.group.ravel(), minlength=n)
linear = [m for m in molecules if degree[m].max() <= 2 and (degree[m] == 1).sum() == 2]

# sizes: images make molecules whole, since the run began with images that fit
chains, each, internal = table("chains.csv"), table("each.csv"), table("internal.csv")
rows = {k: [] for k in ("Rg2", "asphericity", "acylindricity", "anisotropy", "Re2", "Rg2_error", "Re2_error")}
all_rg, all_re = [], []
# the same by another program, from positions in single precision
universe = MDAnalysis.Universe.empty(n, trajectory=True)
universe.add_TopologyAttr("masses", mass)
their_rg = []
sums, counts = np.zeros(100), np.zeros(100)
for s in frames:
    x = s.particles.position.astype(float) + s.particles.image * L
    values, ends = [], []
    universe.atoms.positions = x.astype(np.float32)
    their_rg.extend(universe.atoms[m].radius_of_gyration() ** 2 for m in molecules)
    for m in molecules:
        d = x[m] - np.average(x[m], axis=0, weights=mass[m])
        values.append(np.sort(np.linalg.eigvalsh(np.einsum("i,ij,ik->jk", mass[m], d, d) / mass[m].sum()))[::-1])
        is_linear = any(m is other for other in linear)
        e = np.sum((x[m[0]] - x[m[-1]]) ** 2) if is_linear else np.nan
        ends.append(e)
        if is_linear:
            for k in range(1, len(m)):
                sums[k] += np.sum((x[m[k:]] - x[m[:-k]]) ** 2)
                counts[k] += len(m) - k
    v, e = np.array(values), np.array(ends)
    rg, re = v.sum(axis=1), e[~np.isnan(e)]
    all_rg.extend(rg)
    all_re.extend(e)
    rows["Rg2"].append(rg.mean())
    rows["Rg2_error"].append(rg.std(ddof=1) / np.sqrt(len(rg)))
    rows["asphericity"].append(np.mean(v[:, 0] - 0.5 * (v[:, 1] + v[:, 2])))
    rows["acylindricity"].append(np.mean(v[:, 1] - v[:, 2]))
    p = v[:, 0] * v[:, 1] + v[:, 1] * v[:, 2] + v[:, 2] * v[:, 0]
    rows["anisotropy"].append(1 - 3 * p.mean() / np.mean(rg**2))
    rows["Re2"].append(re.mean())
    rows["Re2_error"].append(re.std(ddof=1) / np.sqrt(len(re)))
for name, values in rows.items():
    near(name, chains[name], np.array(values), 1e-5)
assert (chains["molecules"] == len(molecules)).all() and (chains["chains"] == len(linear)).all()
near("Rg2 of each", each["Rg2"], np.array(all_rg), 1e-5)
near("Rg2 of each by MDAnalysis", each["Rg2"], np.array(their_rg), 1e-5)
assert (np.isnan(each["Re2"]) == np.isnan(np.array(all_re))).all()
near("Re2 of each", each["Re2"], np.array(all_re), 1e-5)
longest = int(np.flatnonzero(counts).max())
assert len(internal["n"]) == longest
near("internal distances", internal["R2"], sums[1 : longest + 1] / counts[1 : longest + 1], 1e-5)

# profiles, with as many velocities as the frames have
x = np.concatenate([s.particles.position for s in frames]).astype(float)
v = np.concatenate([s.particles.velocity for s in frames]).astype(float)
m, kind = np.tile(mass, len(frames)), np.tile(first.particles.typeid, len(frames))


def profile(name, bins, volume):
    t = table(name)
    size = len(t["position"])
    bins = np.where((bins >= 0) & (bins < size), bins, size)
    total = lambda w: np.bincount(bins, weights=w, minlength=size + 1)[:size]
    near(f"{name} density", t["density"], total(np.ones(len(m))) / volume / len(frames), 1e-9)
    near(f"{name} density_B", t["density_B"], total((kind == 1) * 1.0) / volume / len(frames), 1e-9)
    near(f"{name} mass", t["mass_density"], total(m) / volume / len(frames), 1e-9)
    kt = []
    for k, axis in enumerate("xyz"):
        mean = total(m * v[:, k]) / total(m)
        near(f"{name} velocity_{axis}", t[f"velocity_{axis}"], mean, 1e-5)
        kt.append((total(m * v[:, k] ** 2) - total(m) * mean**2) / (t["samples"] - 1))
    near(f"{name} kT", t["kT"], np.mean(kt, axis=0), 1e-5)


profile("slabs.csv", np.floor((x[:, 1] / L[1] + 0.5) * 8).astype(int) % 8, L.prod() / 8)
origin = np.array([1.0, 2.0, -3.0])
d = x - origin
d -= L * np.round(d / L)
r, edges = np.linalg.norm(d, axis=1), np.linspace(0, 2.5, 6)
profile("sphere.csv", np.floor(r / 0.5).astype(int), 4 / 3 * np.pi * np.diff(edges**3))
r, edges = np.hypot(d[:, 1], d[:, 2]), np.linspace(0, min(L[1:]) / 2, 5)
profile("cylinder.csv", np.floor(r / edges[1]).astype(int), np.pi * np.diff(edges**2) * L[0])

# stresses: lags of the first level are plain correlations of what Thermo wrote
t, g = table("thermo.csv"), table("stress.csv")
p = {k: t[f"pressure_{k}"] for k in ("xx", "xy", "xz", "yy", "yz", "zz")}
factor = t["volume"].mean() / t["kT"].mean()


def correlation(a, lag):
    return np.mean(a[: len(a) - lag] * a[lag:])


shear = ["xy", "xz", "yz"]
normal = [("xx", "yy"), ("xx", "zz"), ("yy", "zz")]
expected = [
    factor * (sum(correlation(p[k], lag) for k in shear) / 5 + sum(correlation(p[a] - p[b], lag) for a, b in normal) / 30)
    for lag in range(16)
]
near("G(t)", g["G"][:16], np.array(expected), 1e-9)
eta = np.concatenate([[0], np.cumsum(0.5 * (g["G"][1:] + g["G"][:-1]) * np.diff(g["time"]))])
near("eta(t)", g["eta"], eta, 1e-9)
assert (np.diff(g["time"]) > 0).all() and g["lag"].max() >= 40 * 2
