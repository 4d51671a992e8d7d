#!/usr/bin/env python3
"""Makes a solution of amphiphiles BBBAABBB in S at random places, as a galamost_xml file. Standard library only.

    python3 make_amphiphiles.py FILE [PARTICLES] [SHARE] [DENSITY] [SEED] [WALLS]

PARTICLES is 1000000 by default, SHARE of them (0.1) in chains, DENSITY 5. WALLS names axes, "z" or "xyz": there will be
walls, and the box is longer by 0.6 at both ends, which stay empty. Printed is half the length of the cube that is filled: where the
walls are. Steps of the chains' random walks are 0.38 long.
"""

import math
import random
import sys

CHAIN, BOND, GAP = "BBBAABBB", 0.38, 0.6


def main():
    given = sys.argv[2:] + [None] * 5
    n = int(given[0] or 1_000_000)
    share, density, seed, walls = float(given[1] or 0.1), float(given[2] or 5), int(given[3] or 1), given[4] or ""
    rng = random.Random(seed)
    chains = round(n * share / len(CHAIN))
    length = (n / density) ** (1 / 3)
    box = [length + (2 * GAP if k in walls else 0) for k in "xyz"]
    ends = [0.5 * length - 1e-3 if k in walls else math.inf for k in "xyz"]

    with open(sys.argv[1], "w") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n')
        f.write(f'<configuration time_step="0" dimensions="3" natoms="{n}">\n')
        f.write(f'<box lx="{box[0]!r}" ly="{box[1]!r}" lz="{box[2]!r}"/>\n<position num="{n}">\n')

        def write(at):
            wrapped = [x - b * math.floor(x / b + 0.5) for x, b in zip(at, box)]
            # cut, not rounded, so that none lands outside of the box
            f.write("%.4f %.4f %.4f\n" % tuple(math.trunc(x * 1e4) / 1e4 for x in wrapped))

        for _ in range(chains):
            at = [rng.uniform(-0.5, 0.5) * (length - 0.01) for _ in range(3)]
            write(at)
            for _ in CHAIN[1:]:
                while True:
                    z, phi = rng.uniform(-1, 1), rng.uniform(0, 2 * math.pi)
                    s = BOND * math.sqrt(1 - z * z)
                    new = [at[0] + s * math.cos(phi), at[1] + s * math.sin(phi), at[2] + BOND * z]
                    if all(abs(x) < e for x, e in zip(new, ends)):
                        break
                at = new
                write(at)
        for _ in range(n - len(CHAIN) * chains):
            write([rng.uniform(-0.5, 0.5) * length for _ in range(3)])
        f.write(f'</position>\n<type num="{n}">\n')
        f.write(("\n".join(CHAIN) + "\n") * chains + "S\n" * (n - len(CHAIN) * chains))
        links = len(CHAIN) - 1
        f.write(f'</type>\n<bond num="{links * chains}">\n')
        for c in range(chains):
            f.write("".join(f"chain {len(CHAIN) * c + k} {len(CHAIN) * c + k + 1}\n" for k in range(links)))
        f.write("</bond>\n</configuration>\n</galamost_xml>\n")
    print(f"{0.5 * length:.6f}")


main()
