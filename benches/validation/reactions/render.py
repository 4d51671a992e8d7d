#!/usr/bin/env python3
"""Draws a brush: every grafted chain in a color of its own, the surface grey. Needs numpy and matplotlib.

    python3 render.py chains.csv.gz picture.png
"""

import sys

import matplotlib
import numpy

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main():
    rows = numpy.genfromtxt(sys.argv[1], delimiter=",", skip_header=1)
    chain, xyz = rows[:, 0].astype(int), rows[:, 2:5]
    extent = numpy.abs(xyz).max() * 1.05
    figure, axes = plt.subplots(1, 2, figsize=(16, 8), facecolor="white")
    for ax, cut in zip(axes, (False, True)):
        # the whole brush, and the half behind a cut through the middle
        keep = xyz[:, 2] <= 0 if cut else numpy.ones(len(xyz), bool)
        points, of = xyz[keep], chain[keep]
        order = numpy.argsort(points[:, 2])
        points, of = points[order], of[order]
        hue = (of * 0.6180339887) % 1.0
        color = matplotlib.colors.hsv_to_rgb(numpy.stack([hue, numpy.full(len(of), 0.75), numpy.full(len(of), 0.95)], 1))
        color[of < 0] = 0.62
        depth = (points[:, 2] - points[:, 2].min()) / max(numpy.ptp(points[:, 2]), 1e-9)
        color *= (0.35 + 0.65 * depth)[:, None]
        # a particle is one length wide
        size = (72.0 * 7.4 / (2 * extent)) ** 2
        ax.scatter(points[:, 0], points[:, 1], s=size, c=color, linewidths=0.2, edgecolors="#00000060")
        ax.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal")
        ax.axis("off")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=110)


main()
