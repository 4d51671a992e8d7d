#!/usr/bin/env python3
"""Takes the beads of the amphiphiles, A and B, out of galamost_xml files, as small CSV files packed by gzip: one row of
type, x, y, z for each, and the box in the first. Standard library only.

    python3 beads.py state.*.xml        writes state.*.csv.gz beside them
"""

import gzip
import re
import sys


def section(text, name):
    """The lines of a node."""
    start = text.index("\n", text.index(f"<{name} num=")) + 1
    return text[start : text.index(f"</{name}>", start)].splitlines()


def main():
    for name in sys.argv[1:]:
        with open(name) as f:
            text = f.read()
        box = re.search(r'<box lx="([^"]+)" ly="([^"]+)" lz="([^"]+)"', text).groups()
        step = re.search(r'time_step="(\d+)"', text).group(1)
        with gzip.open(name.removesuffix(".xml") + ".csv.gz", "wt") as f:
            f.write(",".join(("box", *box, step)) + "\n")
            for kind, at in zip(section(text, "type"), section(text, "position")):
                if kind != "S":
                    f.write(kind + "," + at.replace(" ", ",") + "\n")


main()
