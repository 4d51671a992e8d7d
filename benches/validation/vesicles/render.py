#!/usr/bin/env python3
"""Draws and counts what the amphiphiles became.

    python3 render.py state.0000121000.csv.gz picture.png

The picture shows slices two units thick through the box, and a view of all of it. Printed are the aggregates (B beads nearer than
0.8 to each other belong together) and the lumens: parts of the box without A and B beads that membranes
cut off from the rest. An aggregate with a lumen is a vesicle. Needs numpy, scipy and matplotlib.
"""

import gzip
import sys

import matplotlib
import numpy
from scipy import ndimage, sparse, spatial

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CHAIN = 8
HEAD, TAIL = "#f2a900", "#1f5fa8"


def read(name):
    with gzip.open(name, "rt") as f:
        first = f.readline().strip().split(",")
        rows = [line.split(",") for line in f]
    box = numpy.array([float(x) for x in first[1:4]])
    return int(first[4]), box, numpy.array([r[0] for r in rows]), numpy.array([[float(x) for x in r[1:]] for r in rows])


def aggregates(position, box):
    """A number of the aggregate of each place."""
    tree = spatial.cKDTree(numpy.mod(position, box), boxsize=box)
    pairs = tree.query_pairs(0.8, output_type="ndarray")
    n = len(position)
    graph = sparse.coo_matrix((numpy.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return sparse.csgraph.connected_components(graph, directed=False)[1]


def lumens(position, box):
    """Volumes of the parts that membranes cut off, without the largest, which is outside; and the grid's labels."""
    shape = numpy.maximum((box / 0.9).astype(int), 1)
    cell = numpy.minimum((numpy.mod(position / box + 0.5, 1) * shape).astype(int), shape - 1)
    count = numpy.zeros(shape, int)
    numpy.add.at(count, tuple(cell.T), 1)
    labels, n = ndimage.label(count == 0)
    # parts that meet across the edges of the box are one
    links = []
    for axis in range(3):
        a, b = numpy.take(labels, 0, axis), numpy.take(labels, -1, axis)
        both = (a > 0) & (b > 0)
        links.append(numpy.stack([a[both], b[both]], 1))
    links = numpy.concatenate(links)
    graph = sparse.coo_matrix((numpy.ones(len(links), bool), (links[:, 0], links[:, 1])), shape=(n + 1, n + 1))
    part = sparse.csgraph.connected_components(graph, directed=False)[1]
    cells = numpy.bincount(part, weights=numpy.bincount(labels.ravel(), minlength=n + 1) * (numpy.arange(n + 1) > 0))
    volumes = numpy.sort(cells * box.prod() / shape.prod())[::-1]
    # a hole of a few cells inside a membrane is no lumen: a sphere of radius 2
    return volumes[0], volumes[1:][volumes[1:] > 33.0]


def draw(name, step, box, kind, position):
    fig, axes = plt.subplots(2, 2, figsize=(13, 13.6), facecolor="white")
    # a bead is drawn 0.7 wide
    size = (0.7 * 430 / box[0]) ** 2
    for ax, depth in zip(axes.flat[:3], (-0.25, 0.0, 0.25)):
        inside = numpy.flatnonzero(numpy.abs(position[:, 2] - depth * box[2]) < 1.0)
        inside = inside[numpy.argsort(position[inside, 2])]
        p = position[inside]
        ax.scatter(p[:, 0], p[:, 1], s=size, c=[HEAD if k == "A" else TAIL for k in kind[inside]], linewidths=0)
        ax.set_title(f"slice at z = {depth * box[2]:.1f}, 2 thick", fontsize=11)
    ax = axes.flat[3]
    # seen along z: what is nearer is brighter and hides what is behind
    order = numpy.argsort(position[:, 2])
    p, near = position[order], position[order, 2] / box[2] + 0.5
    base = numpy.array([matplotlib.colors.to_rgb(HEAD if k == "A" else TAIL) for k in "AB"])[(kind[order] == "B").astype(int)]
    ax.scatter(p[:, 0], p[:, 1], s=size, color=base * near[:, None] ** 1.5 + (1 - near[:, None] ** 1.5) * 0.93, linewidths=0)
    ax.set_title("whole box, seen along z", fontsize=11)
    for ax in axes.flat:
        ax.set(aspect="equal", xlim=(-box[0] / 2, box[0] / 2), ylim=(-box[1] / 2, box[1] / 2), xticks=[], yticks=[])
    handles = [plt.Line2D([], [], marker="o", ls="", color=c, label=t) for c, t in ((HEAD, "A"), (TAIL, "B"))]
    fig.legend(handles=handles, loc="upper right")
    fig.suptitle(f"Amphiphiles BBBAABBB after {step:,} steps", fontsize=14)
    fig.tight_layout()
    fig.savefig(name, dpi=110)


def main():
    step, box, kind, position = read(sys.argv[1])
    tails = position[kind == "B"]
    part = aggregates(tails, box)
    sizes = numpy.sort(numpy.bincount(part))[::-1] / (CHAIN * 3 // 4)
    large = sizes[sizes >= 10]
    outside, inside = lumens(position, box)
    print(f"step {step}: {len(position) // CHAIN} chains, {len(large)} aggregates of 10 chains or more, {sizes[sizes < 10].sum():.0f} chains in smaller ones")
    print(f"chains in the largest: {', '.join(f'{x:.0f}' for x in sizes[:10])}; mean by mass {(sizes**2).sum() / sizes.sum():.0f}")
    print(f"{len(inside)} lumens (outside: {outside / box.prod():.2f} of the box); volumes {', '.join(f'{x:.0f}' for x in inside[:20])}")
    if len(sys.argv) > 2:
        draw(sys.argv[2], step, box, kind, position)


main()
