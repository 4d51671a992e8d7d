#!/usr/bin/env python3
"""Lengths of grafted chains and the height of a brush, from galamost_xml files of ../../cases/polymerization.ron. Standard library only.

    python3 brush.py RADIUS state.xml [chains.csv.gz]

Prints initiators, chains, monomers in them, number- and weight-average length (monomers), PDI and that of the law of Poisson
for the same mean (initiator included, as in PDI = 1 + ν/(1 + ν)²), the height 2⟨z⟩ of grafted monomers over the surface, and the
mean height of free ends. The CSV has one row for each particle of the surface and each grafted monomer: chain (-1 for the
surface), number along the chain, x, y, z.
"""

import gzip
import math
import re
import sys


def section(text, name):
    """The lines of a node."""
    start = text.index("\n", text.index(f"<{name} num=")) + 1
    return text[start : text.index(f"</{name}>", start)].splitlines()


def main():
    radius = float(sys.argv[1])
    with open(sys.argv[2]) as f:
        text = f.read()
    step = re.search(r'time_step="(\d+)"', text).group(1)
    box = [float(x) for x in re.search(r'<box lx="([^"]+)" ly="([^"]+)" lz="([^"]+)"', text).groups()]
    kind = [line.strip() for line in section(text, "type")]
    at = [tuple(map(float, line.split())) for line in section(text, "position")]
    next_of = {}
    if "<bond num=" in text:
        for line in section(text, "bond"):
            _, a, b = line.split()
            # growth bonds the end to its monomer, in this order
            assert int(a) not in next_of, f"particle {a} has grown twice"
            next_of[int(a)] = int(b)
    initiators = [i for i, k in enumerate(kind) if k == "I"]
    chains = []
    for i in initiators:
        chain = [i]
        while chain[-1] in next_of:
            # beside the particle before it, also beyond the border of the box
            before, after = at[chain[-1]], next_of[chain[-1]]
            at[after] = tuple(x - l * round((x - b) / l) for x, b, l in zip(at[after], before, box))
            chain.append(after)
        chains.append(chain)
    lengths = [len(c) - 1 for c in chains]
    mean = sum(lengths) / len(lengths)
    square = sum(n * n for n in lengths) / len(lengths)
    whole = [n + 1 for n in lengths]
    pdi = sum(n * n for n in whole) * len(whole) / sum(whole) ** 2
    height = lambda i: math.sqrt(sum(x * x for x in at[i])) - radius
    grafted = [height(i) for c in chains for i in c[1:]]
    ends = [height(c[-1]) for c in chains if len(c) > 1]
    print(
        f"step {step}: {len(initiators)} initiators, {sum(n > 0 for n in lengths)} chains, {sum(lengths)} monomers; "
        f"length {mean:.2f} (number), {square / mean if mean else 0:.2f} (weight); PDI {pdi:.4f}, Poisson "
        f"{1 + mean / (1 + mean) ** 2:.4f}; height {2 * sum(grafted) / max(len(grafted), 1):.3f}, ends at {sum(ends) / max(len(ends), 1):.3f}"
    )
    if len(sys.argv) > 3:
        with gzip.open(sys.argv[3], "wt") as f:
            f.write("chain,number,x,y,z\n")
            for i, k in enumerate(kind):
                if k == "S":
                    f.write("-1,0,%.3f,%.3f,%.3f\n" % at[i])
            for n, chain in enumerate(chains):
                for k, i in enumerate(chain):
                    f.write("%d,%d,%.3f,%.3f,%.3f\n" % ((n, k) + at[i]))


main()
