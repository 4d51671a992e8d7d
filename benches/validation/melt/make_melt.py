#!/usr/bin/env python3
"""Makes bead-spring chains at random places, which overlap: the start of melt.ron. Standard library only.

    python3 make_melt.py CHAINS BEADS FILE [DENSITY] [SEED]

Bonds are 0.97 long; second neighbors along a chain are at least 1.02 apart, which gives walks about the stiffness of the
melt (Kremer & Grest, J. Chem. Phys. 92 (1990) 5057).
"""

import math
import random
import sys

BOND, SECOND = 0.97, 1.02


def direction(rng):
    """A random unit vector."""
    z, phi = rng.uniform(-1, 1), rng.uniform(0, 2 * math.pi)
    s = math.sqrt(1 - z * z)
    return s * math.cos(phi), s * math.sin(phi), z


def chain(rng, beads, length):
    """A walk, without periodic boundaries."""
    # |b1 + b2|^2 = 2 b^2 (1 + cos) >= SECOND^2
    least = SECOND**2 / (2 * BOND**2) - 1
    at, last, places = [rng.uniform(-length / 2, length / 2) for _ in range(3)], None, []
    for k in range(beads):
        if k > 0:
            d = direction(rng)
            while last and sum(a * b for a, b in zip(d, last)) < least:
                d = direction(rng)
            at, last = [x + BOND * a for x, a in zip(at, d)], d
        places.append(at)
    return places


def main():
    chains, beads, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    density = float(sys.argv[4]) if len(sys.argv) > 4 else 0.85
    rng = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
    n = chains * beads
    length = (n / density) ** (1 / 3)
    with open(name, "w") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n')
        f.write(f'<configuration time_step="0" dimensions="3" natoms="{n}">\n')
        f.write(f'<box lx="{length!r}" ly="{length!r}" lz="{length!r}"/>\n')
        places, images = [], []
        for _ in range(chains):
            for at in chain(rng, beads, length):
                image = [math.floor(x / length + 0.5) for x in at]
                # digits are cut, not rounded, so that none lands outside of the box
                wrapped = [math.trunc((x - i * length) * 1e6) / 1e6 for x, i in zip(at, image)]
                places.append("%.6f %.6f %.6f\n" % tuple(wrapped))
                images.append("%d %d %d\n" % tuple(image))
        f.write(f'<position num="{n}">\n' + "".join(places) + "</position>\n")
        f.write(f'<image num="{n}">\n' + "".join(images) + "</image>\n")
        f.write(f'<type num="{n}">\n' + "A\n" * n + "</type>\n")
        bonds = [f"A-A {c * beads + k} {c * beads + k + 1}\n" for c in range(chains) for k in range(beads - 1)]
        f.write(f'<bond num="{len(bonds)}">\n' + "".join(bonds) + "</bond>\n</configuration>\n</galamost_xml>\n")


main()
