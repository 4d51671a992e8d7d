#!/usr/bin/env python3
"""A random start of DPPC and water for MD-SCF: make_dppc.py OUT LIPIDS WATERS [SEED].

Lipids N-P-G(-C4)-G-C4 are random walks with bonds of 0.47 nm (0.37 between the two G) that avoid themselves but not each other;
water W stands at random. The density is that of dppc-water-21216.xml: 21216 particles in 12.964 nm cubed. Mass 72. No packages are
needed.
"""
import math
import random
import sys

TYPES = "NPGG" + 8 * "C"
# in the order in which beads come: each bond ends in the next one
BONDS = [(0, 1), (1, 2), (2, 3), (2, 4), (4, 5), (5, 6), (6, 7), (3, 8), (8, 9), (9, 10), (10, 11)]
ANGLES = [(1, 2, 3), (1, 2, 4), (2, 4, 5), (4, 5, 6), (5, 6, 7), (3, 8, 9), (8, 9, 10), (9, 10, 11)]


def direction(rng):
    z, phi = rng.uniform(-1, 1), rng.uniform(0, 2 * math.pi)
    r = math.sqrt(1 - z * z)
    return (r * math.cos(phi), r * math.sin(phi), z)


def main():
    out, lipids, waters = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    n = 12 * lipids + waters
    length = 12.964 * (n / 21216) ** (1 / 3)
    positions, types, bonds, angles = [], [], [], []
    for m in range(lipids):
        first = 12 * m
        chain = [[rng.uniform(-0.5, 0.5) * length for _ in range(3)]]
        for a, b in BONDS:
            r = 0.37 if (a, b) == (2, 3) else 0.47
            while True:
                e = direction(rng)
                bead = [chain[a][k] + r * e[k] for k in range(3)]
                if all(math.dist(bead, c) > 0.45 for i, c in enumerate(chain) if i != a):
                    break
            chain.append(bead)
        positions += chain
        types += TYPES
        bonds += [("%s-%s" % (TYPES[a], TYPES[b]), first + a, first + b) for a, b in BONDS]
        angles += [("-".join(TYPES[t] for t in a), *(first + t for t in a)) for a in ANGLES]
    positions += [[rng.uniform(-0.5, 0.5) * length for _ in range(3)] for _ in range(waters)]
    types += waters * "W"
    with open(out, "w") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n')
        f.write(f'<configuration time_step="0" dimensions="3" natoms="{n}">\n')
        f.write(f'<box lx="{length:.10f}" ly="{length:.10f}" lz="{length:.10f}"/>\n<position num="{n}">\n')
        images = []
        for p in positions:
            image = [math.floor(x / length + 0.5) for x in p]
            images.append(image)
            f.write(" ".join(f"{x - i * length:.7f}" for x, i in zip(p, image)) + "\n")
        f.write(f'</position>\n<image num="{n}">\n')
        f.writelines("%d %d %d\n" % tuple(i) for i in images)
        f.write(f'</image>\n<mass num="{n}">\n' + "72.0\n" * n + f'</mass>\n<type num="{n}">\n')
        f.write("\n".join(types) + f'\n</type>\n<bond num="{len(bonds)}">\n')
        f.writelines("%s %d %d\n" % b for b in bonds)
        f.write(f'</bond>\n<angle num="{len(angles)}">\n')
        f.writelines("%s %d %d %d\n" % a for a in angles)
        f.write("</angle>\n</configuration>\n</galamost_xml>\n")
    print(f"{n} particles, box {length:.4f}")


main()
