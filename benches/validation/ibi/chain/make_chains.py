#!/usr/bin/env python3
"""Makes chains at random places, which overlap: the start of reference.ron. Standard library only.

    python3 make_chains.py CHAINS BEADS FILE [DENSITY] [SEED]

Bonds are 1.0 long, angles 128 degrees, dihedrals random; links of all kinds are written.
"""

import math
import random
import sys


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def unit(a):
    n = math.sqrt(sum(x * x for x in a))
    return [x / n for x in a]


def chain(rng, beads, length):
    """A walk, without periodic boundaries."""
    at = [rng.uniform(-length / 2, length / 2) for _ in range(3)]
    d = unit([rng.gauss(0, 1) for _ in range(3)])
    places = [at]
    for _ in range(beads - 1):
        at = [x + y for x, y in zip(at, d)]
        places.append(at)
        side = unit(cross(d, [rng.gauss(0, 1) for _ in range(3)]))
        bend = math.radians(180 - 128)
        d = unit([math.cos(bend) * x + math.sin(bend) * y for x, y in zip(d, side)])
    return places


def main():
    chains, beads, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    density = float(sys.argv[4]) if len(sys.argv) > 4 else 0.75
    rng = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
    n = chains * beads
    length = (n / density) ** (1 / 3)
    places, images = [], []
    for _ in range(chains):
        for at in chain(rng, beads, length):
            image = [math.floor(x / length + 0.5) for x in at]
            # digits are cut, not rounded, so that none lands outside of the box
            wrapped = [math.trunc((x - i * length) * 1e6) / 1e6 for x, i in zip(at, image)]
            places.append("%.6f %.6f %.6f\n" % tuple(wrapped))
            images.append("%d %d %d\n" % tuple(image))
    with open(name, "w") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n')
        f.write(f'<configuration time_step="0" dimensions="3" natoms="{n}">\n')
        f.write(f'<box lx="{length!r}" ly="{length!r}" lz="{length!r}"/>\n')
        f.write(f'<position num="{n}">\n' + "".join(places) + "</position>\n")
        f.write(f'<image num="{n}">\n' + "".join(images) + "</image>\n")
        f.write(f'<type num="{n}">\n' + "A\n" * n + "</type>\n")
        for node, width in (("bond", 2), ("angle", 3), ("dihedral", 4)):
            rows = [
                "-".join("A" * width) + "".join(f" {c * beads + k + j}" for j in range(width)) + "\n"
                for c in range(chains)
                for k in range(beads - width + 1)
            ]
            f.write(f'<{node} num="{len(rows)}">\n' + "".join(rows) + f"</{node}>\n")
        f.write("</configuration>\n</galamost_xml>\n")


main()
