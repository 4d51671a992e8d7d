#!/usr/bin/env python3
"""Where water and tails are in a box of lipids: python3 drops.py DENSITY.npy [PNG]

DENSITY.npy is what DensityGrid writes, types in the order N P G C W. Printed are the pieces in which the density of water (W) and of tails (C)
is above half of its 98th percentile, the box being periodic, and whether one of them goes through the box. The picture shows four slices. Needs
numpy and scipy, and matplotlib for the picture.
"""

import collections
import sys

import numpy as np
from scipy import ndimage


def pieces(inside):
    """Sizes of the connected pieces, the largest first, and whether one of them meets its own image."""
    labels, _ = ndimage.label(inside)
    # root of each label, with the shift in boxes that leads to it
    parent = {}

    def find(a):
        shift = np.zeros(3, int)
        while a in parent:
            a, by = parent[a]
            shift = shift + by
        return a, shift

    through = False
    for axis in range(3):
        unit = np.eye(3, dtype=int)[axis]
        for x, y in zip(np.take(labels, 0, axis).ravel(), np.take(labels, -1, axis).ravel()):
            if x and y:
                # the first layer of the next image touches the last layer of this one
                (a, p), (b, q) = find(x), find(y)
                if a != b:
                    parent[b] = (a, p - q + unit)
                elif (p - q + unit).any():
                    through = True
    sizes = collections.Counter(find(x)[0] for x in labels[inside])
    return sorted(sizes.values(), reverse=True), through


def main():
    density = np.load(sys.argv[1])
    for name, grid in (("W", density[4]), ("C", density[3])):
        inside = grid > 0.5 * np.percentile(grid, 98)
        sizes, through = pieces(inside)
        print(f"{name}: {inside.mean():.3f} of the volume in {len(sizes)} pieces of {sizes[:8]} cells, {'one goes' if through else 'none goes'} through the box")
    if len(sys.argv) > 2:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(1, 4, figsize=(12, 3.4))
        n, top = density.shape[1], np.percentile(density[4], 99)
        heads = density[0] + density[1]
        for axis, k in zip(axes, range(0, n, (n + 3) // 4)):
            # water blue, heads red, tails grey
            tails = np.clip(density[3, k] / np.percentile(density[3], 99), 0, 1)
            water, head = np.clip(density[4, k] / top, 0, 1), np.clip(heads[k] / np.percentile(heads, 99), 0, 1)
            rgb = np.stack([1 - 0.35 * tails - 0.85 * water, 1 - 0.35 * tails - 0.6 * water - 0.5 * head, 1 - 0.35 * tails - 0.6 * head], -1)
            axis.imshow(np.clip(rgb, 0, 1), interpolation="bicubic", origin="lower")
            axis.set_title(f"layer {k} of {n}", fontsize=9)
            axis.set_xticks([])
            axis.set_yticks([])
        figure.suptitle("water blue, heads red, tails grey", fontsize=9)
        figure.tight_layout()
        figure.savefig(sys.argv[2], dpi=80)


main()
