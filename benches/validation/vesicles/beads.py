#!/usr/bin/env python3
"""Takes the beads of the amphiphiles, A and B, out of galamost_xml files, as small CSV files packed by gzip: one row of
type, x, y, z for each, and the box in the first. Standard library only.

    python3 beads.py state.*.xml

writes state.*.csv.gz beside them; of more than eight files, of eight evenly taken, the last one among them.
"""

import gzip
import re
import sys


def section(text, name):
    """The lines of a node."""
    start = text.index("\n", text.index(f"<{name} num=")) + 1
    return text[start : text.index(f"</{name}>", start)].splitlines()


def main():
    names = sorted(sys.argv[1:])
    for name in {names[(k + 1) * len(names) // 8 - 1] for k in range(8)} if len(names) > 8 else names:
        with open(name) as f:
            text = f.read()
        box = re.search(r'<box lx="([^"]+)" ly="([^"]+)" lz="([^"]+)"', text).groups()
        step = re.search(r'time_step="(\d+)"', text).group(1)
        with gzip.open(name.removesuffix(".xml") + ".csv.gz", "wt") as f:
            f.write(",".join(("box", *box, step)) + "\n")
            for kind, at in zip(section(text, "type"), section(text, "position")):
                if kind.strip() != "S":
                    f.write(",".join((kind.strip(), *at.split())) + "\n")


main()
