"""Reads files of a state in a triclinic box with MDAnalysis, ASE, gsd and freud: triclinic_files.py FOLDER.

reference.csv has the three edges of the box and the positions of all particles.
"""

import os
import sys
import warnings

import ase.io
import freud
import gsd.hoomd
import MDAnalysis
import numpy as np
from MDAnalysis.lib.mdamath import triclinic_vectors

warnings.filterwarnings("ignore")
folder = sys.argv[1]
reference = np.loadtxt(os.path.join(folder, "reference.csv"), delimiter=",")
edges, position = reference[:3], reference[3:]
assert np.all(np.tril(edges, -1)[[1, 2, 2], [0, 0, 1]] != 0), edges


def check(name, program, cell, found, limit):
    # some formats have other units of length, which programs convert
    scale = cell[0, 0] / edges[0, 0]
    unit = min((1.0, 10.0), key=lambda u: abs(u - scale))
    far = np.abs(cell / unit - edges).max()
    assert far < limit, f"{name}, {program}: the edges are {cell}, not {edges}"
    turns = (found / unit - position) @ np.linalg.inv(edges)
    # one origin for all particles: a corner of the box or its center
    turns -= turns[0]
    apart = np.abs((turns - np.round(turns)) @ edges).max()
    print(f"{name}, {program}: edges differ by {far:.1e}, positions by {apart:.1e}")
    assert apart < limit, f"{name}, {program}: positions differ by {apart}"


universe = MDAnalysis.Universe.empty(len(position), trajectory=True)
for name, limit in (("a.gro", 2e-5), ("a.pdb", 0.03), ("a.dcd", 1e-4), ("a.xtc", 1e-3), ("a.trr", 1e-4), ("a.dump", 1e-4)):
    path = os.path.join(folder, name)
    if name in ("a.gro", "a.pdb"):
        u = MDAnalysis.Universe(path)
    else:
        u = universe
        u.load_new(path, format="LAMMPSDUMP" if name == "a.dump" else None)
    cell = triclinic_vectors(u.trajectory.ts.dimensions).astype(float)
    check(name, "MDAnalysis", cell, u.atoms.positions.astype(float), limit)

for name, limit in (("a.xyz", 1e-9), ("a.dump", 1e-9)):
    s = ase.io.read(os.path.join(folder, name), format={"a.xyz": "extxyz", "a.dump": "lammps-dump-text"}.get(name))
    check(name, "ASE", np.array(s.cell), s.positions, limit)

# MDAnalysis 2.11 takes the box lengths of a GSD file for the lengths of the edges
with gsd.hoomd.open(os.path.join(folder, "a.gsd")) as f:
    s = f[0]
box = freud.box.Box.from_box(s.configuration.box)
check("a.gsd", "gsd and freud", box.to_matrix().T.astype(float), s.particles.position.astype(float), 1e-5)
