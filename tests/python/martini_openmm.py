"""Energies of a frame of DPPC and water by OpenMM: python tests/python/martini_openmm.py TOPOLOGY STRUCTURE

TOPOLOGY is one of GROMACS, STRUCTURE a galamost_xml file with its particles. Prints a line of component and energy (kJ/mol) for
each component, in double precision (platform Reference).
"""

import re
import sys
from pathlib import Path

import numpy

import gromacs_openmm as openmm


def read_xml(path):
    """Positions and the lengths of the box."""
    text = Path(path).read_text()
    rows = re.search(r"<position[^>]*>(.*?)</position>", text, re.S).group(1).split()
    box = re.search(r'<box lx="([^"]+)" ly="([^"]+)" lz="([^"]+)"', text).groups()
    return numpy.array(rows, dtype=float).reshape(-1, 3), numpy.array(box, dtype=float)


def main():
    positions, box = read_xml(sys.argv[2])
    system, forces, _, starts = openmm.build(Path(sys.argv[1]), box)
    for name, energy in openmm.energies(openmm.evaluated(system, positions, box, starts), forces).items():
        print(name, repr(energy))


if __name__ == "__main__":
    sys.exit(main())
