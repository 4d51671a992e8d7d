"""Tables that analyzers wrote in a triclinic box, against freud and NumPy on the frames of the same run: triclinic.py FOLDER."""

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
    return dict(zip(rows[0], np.array(rows[1:], dtype=float).T))


def near(what, ours, theirs, limit):
    worst = np.max(np.abs(np.asarray(ours) - theirs)) / np.max(np.abs(theirs))
    print(f"{what}: {worst:.1e} of the largest value from the reference")
    assert worst < limit, what


with gsd.hoomd.open(os.path.join(folder, "t.gsd")) as f:
    frames = list(f)
box = frames[0].configuration.box.astype(float)
assert all(np.array_equal(s.configuration.box, frames[0].configuration.box) for s in frames)
assert np.all(box[3:] != 0), box
lx, ly, lz, xy, xz, yz = box
edges = np.array([[lx, 0, 0], [xy * ly, ly, 0], [xz * lz, yz * lz, lz]])
kind = frames[0].particles.typeid

g = table("rdf.csv")
for a, b in ((0, 0), (0, 1), (1, 1)):
    rdf = freud.density.RDF(bins=60, r_max=3.0, normalization_mode="finite_size" if a == b else "exact")
    for k, s in enumerate(frames):
        x = s.particles.position
        rdf.compute(
            (freud.box.Box.from_box(s.configuration.box), x[kind == a]),
            query_points=None if a == b else x[kind == b],
            reset=k == 0,
        )
    ours = g["AB"[a] + "-" + "AB"[b]]
    # single precision moves a few pairs over the edges of bins
    near(f"g(r) of {a} and {b}", ours, rdf.rdf, 0.02)
    assert np.mean(np.abs(ours - rdf.rdf)) < 1e-3

x = np.array([s.particles.position + s.particles.image @ edges for s in frames])
msd = table("msd.csv")
for k, name in enumerate("AB"):
    found = [np.mean(np.sum((x[lag:, kind == k] - x[:-lag, kind == k]) ** 2, axis=-1)) for lag in (1, 2, 3)]
    near(f"msd of {name}", msd[f"msd_{name}"][:3], found, 1e-5)

# rows of `reciprocal` have the product 2π with one edge and 0 with the others
reciprocal = 2 * np.pi * np.linalg.inv(edges).T
most = (3.0 * np.linalg.norm(edges, axis=1) / (2 * np.pi)).astype(int)
n = np.stack(np.meshgrid(*[np.arange(-m, m + 1) for m in most], indexing="ij"), -1).reshape(-1, 3)
q = n @ reciprocal
length = np.linalg.norm(q, axis=1)
chosen = (length > 0) & (length <= 3.0)
q, length = q[chosen], length[chosen]
waves = [np.exp(1j * (s.particles.position.astype(float) @ q.T)).sum(axis=0) for s in frames]
power = np.mean([np.abs(w) ** 2 for w in waves], axis=0) / len(kind)
s = table("sq.csv")
where = np.minimum((length / 3.0 * 6).astype(int), 5)
bins = [b for b in range(6) if np.any(where == b)]
near("q", s["q"], np.array([length[where == b].mean() for b in bins]), 1e-6)
near("numbers of vectors", s["vectors"], np.array([np.sum(where == b) / 2 for b in bins]), 1e-12)
near("S(q)", s["S"], np.array([power[where == b].mean() for b in bins]), 1e-5)
