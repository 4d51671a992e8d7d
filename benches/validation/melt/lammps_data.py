#!/usr/bin/env python3
"""Turns a galamost_xml file of chains of one type into a data file of LAMMPS (atom_style bond). Standard library only.

    python3 lammps_data.py relaxed.xml relaxed.data
"""

import sys
import xml.etree.ElementTree as ElementTree


def main():
    configuration = ElementTree.parse(sys.argv[1]).getroot().find("configuration")
    rows = {c.tag: [line.split() for line in (c.text or "").strip().splitlines()] for c in configuration}
    box = configuration.find("box")
    position, image, velocity, bond = (rows[k] for k in ("position", "image", "velocity", "bond"))
    molecule = list(range(1, len(position) + 1))
    for _, i, j in bond:  # chains are bonded in the order of their particles
        molecule[int(j)] = molecule[int(i)]
    with open(sys.argv[2], "w") as f:
        f.write(f"chains of {sys.argv[1]}\n\n{len(position)} atoms\n{len(bond)} bonds\n1 atom types\n1 bond types\n\n")
        for k in "xyz":
            half = 0.5 * float(box.get("l" + k))
            f.write(f"{-half!r} {half!r} {k}lo {k}hi\n")
        f.write("\nMasses\n\n1 1.0\n\nAtoms # bond\n\n")
        for k, (p, i) in enumerate(zip(position, image)):
            f.write(f"{k + 1} {molecule[k]} 1 {' '.join(p)} {' '.join(i)}\n")
        f.write("\nVelocities\n\n")
        for k, v in enumerate(velocity):
            f.write(f"{k + 1} {' '.join(v)}\n")
        f.write("\nBonds\n\n")
        for k, (_, i, j) in enumerate(bond):
            f.write(f"{k + 1} 1 {int(i) + 1} {int(j) + 1}\n")


main()
