"""Distributions that analyzers wrote, against freud and NumPy: distributions.py FOLDER."""

import csv
import os
import sys

import freud
import gsd.hoomd
import numpy as np

folder = sys.argv[1]


def table(name):
    with open(os.path.join(folder, name)) as f:
        rows = list(csv.reader(f))
    return rows[0], np.array(rows[1:], dtype=float).T


def frame(name):
    with gsd.hoomd.open(os.path.join(folder, name)) as f:
        return f[-1]


def near(what, ours, theirs, limit):
    worst = np.max(np.abs(ours - theirs))
    print(f"{what}: {worst:.1e} from the reference, largest value {np.max(theirs):.3g}")
    assert worst < limit, what


for d, bins, r_max in ((3, 100, 2.9), (2, 100, 2.9)):
    s = frame(f"{d}.gsd")
    names, g = table(f"{d}.csv")
    assert names == ["r", "A-A", "A-B", "B-B"], names
    box = freud.box.Box.from_box(s.configuration.box, dimensions=d)
    points = [s.particles.position[s.particles.typeid == k] for k in (0, 1)]
    for column, (a, b) in ((1, (0, 0)), (2, (0, 1)), (3, (1, 1))):
        rdf = freud.density.RDF(bins=bins, r_max=r_max, normalization_mode="finite_size" if a == b else "exact")
        rdf.compute((box, points[a]), query_points=None if a == b else points[b])
        assert np.allclose(rdf.bin_centers, g[0], atol=1e-5)
        near(f"g(r) {names[column]} in {d}D", g[column], rdf.rdf, 1e-5)

s = frame("links.gsd")
L = s.configuration.box[:3].astype(float)
x = s.particles.position.astype(float)


def towards(a, b):
    d = x[b] - x[a]
    return d - L * np.round(d / L)


def density(values, kinds, types, edges):
    out = []
    for k in range(len(types)):
        v = values[kinds == k]
        out.append(np.histogram(v, edges)[0] / len(v) / (edges[1] - edges[0]))
    return out


i, j = s.bonds.group.T
r = np.linalg.norm(towards(i, j), axis=1)
names, t = table("bond.csv")
assert names == ["r"] + s.bonds.types
# single precision moves a few links over the edges of bins
for k, p in enumerate(density(r, s.bonds.typeid, s.bonds.types, np.linspace(0.2, 3.0, 41))):
    near(f"bonds {names[k + 1]}", t[k + 1], p, 0.02 * np.max(p))
i, j, k = s.angles.group.T
a, b = towards(j, i), towards(j, k)
theta = np.degrees(np.arccos(np.sum(a * b, 1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)))
names, t = table("angle.csv")
assert names[0] == "theta_deg"
for k, p in enumerate(density(theta, s.angles.typeid, s.angles.types, np.linspace(0, 180, 37))):
    near(f"angles {names[k + 1]}", t[k + 1], p, 0.02 * np.max(p))
i, j, k, l = s.dihedrals.group.T
b1, b2, b3 = towards(i, j), towards(j, k), towards(k, l)
n1, n2 = np.cross(b1, b2), np.cross(b2, b3)
m = np.cross(n1, b2 / np.linalg.norm(b2, axis=1)[:, None])
phi = np.degrees(np.arctan2(-np.sum(m * n2, 1), np.sum(n1 * n2, 1)))
names, t = table("dihedral.csv")
assert names[0] == "phi_deg"
for k, p in enumerate(density(phi, s.dihedrals.typeid, s.dihedrals.types, np.linspace(-180, 180, 25))):
    near(f"dihedrals {names[k + 1]}", t[k + 1], p, 0.02 * np.max(p))
# pairs that are left out: the numbers themselves, by brute force over the same positions
n = len(x)
d = x[:, None] - x[None]
d -= L * np.round(d / L)
r = np.sqrt(np.sum(d * d, -1))
out = np.zeros((n, n), bool)
for group in (s.bonds.group, s.angles.group, s.dihedrals.group):
    out[group[:, 0], group[:, -1]] = out[group[:, -1], group[:, 0]] = True
molecule = np.arange(n)
for a, b in list(s.bonds.group) * 4:
    molecule[[a, b]] = min(molecule[a], molecule[b])
while True:
    before = molecule.copy()
    for a, b in s.bonds.group:
        molecule[[a, b]] = min(molecule[a], molecule[b])
    if (before == molecule).all():
        break
same = molecule[:, None] == molecule[None]
upper = np.triu(np.ones((n, n), bool), 1)
edges = np.linspace(0, 2.5, 51)
shell = 4 / 3 * np.pi * np.diff(edges**3)
kind = s.particles.typeid
for name, mask in (("links.csv", upper), ("excluded.csv", upper & ~out), ("same.csv", upper & same)):
    names, t = table(name)
    of = (kind[:, None] == 0) & (kind[None] == 0) & mask
    pairs = np.sum(kind == 0) * (np.sum(kind == 0) - 1) / 2
    near(name, t[1], np.histogram(r[of], edges)[0] / (pairs * shell / np.prod(L)), 0.05)
