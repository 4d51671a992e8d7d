"""Energies and forces of GROMACS topologies by OpenMM, for tests/reference/gromacs.ron.

    python -m pip install openmm
    python tests/python/gromacs_openmm.py > tests/reference/gromacs.ron

OpenMM's own parser reads the topology. Its sections become custom forces on the Reference platform (double precision): the
functions of GROMACS' manual with a Lennard-Jones potential that is shifted to 0 at the cutoff, and a reaction field that acts on
excluded pairs without the term 1/r.
"""

import sys
from pathlib import Path

import numpy
import openmm
from openmm import app, unit

HERE = Path(__file__).resolve().parent.parent.parent
F, RC, EPS_R = 138.935458, 1.1, 15.0
K, C = 0.5 / RC**3, 1.5 / RC
FORMS = {
    "HarmonicBond": (openmm.CustomBondForce, "k/2*(r - b)^2", ["b", "k"]),
    "QuarticBond": (openmm.CustomBondForce, "k/4*(r^2 - b^2)^2", ["b", "k"]),
    "HarmonicAngle": (openmm.CustomAngleForce, "k/2*(theta - t*{d})^2", ["t", "k"]),
    "CosineSquaredAngle": (openmm.CustomAngleForce, "k/2*(cos(theta) - cos(t*{d}))^2", ["t", "k"]),
    "RestrictedAngle": (openmm.CustomAngleForce, "k/2*(cos(theta) - cos(t*{d}))^2/sin(theta)^2", ["t", "k"]),
    "PeriodicDihedral": (openmm.CustomTorsionForce, "k*(1 + cos(n*theta - p*{d}))", ["p", "k", "n"]),
    "RyckaertBellemans": (
        openmm.CustomTorsionForce,
        "c0 + x*(c1 + x*(c2 + x*(c3 + x*(c4 + x*c5)))); x = -cos(theta)",
        ["c0", "c1", "c2", "c3", "c4", "c5"],
    ),
    "HarmonicImproper": (
        openmm.CustomTorsionForce,
        "k/2*d^2; d = x - {t}*floor(x/{t} + 0.5); x = theta - p*{d}",
        ["p", "k"],
    ),
    "PeriodicImproper": (openmm.CustomTorsionForce, "k*(1 + cos(n*theta - p*{d}))", ["p", "k", "n"]),
}
DEGREE, TURN = "0.017453292519943295", "6.283185307179586"
BONDS = {"1": "HarmonicBond", "2": "QuarticBond", "6": "HarmonicBond"}
ANGLES = {"1": "HarmonicAngle", "2": "CosineSquaredAngle", "10": "RestrictedAngle"}
DIHEDRALS = {
    "1": "PeriodicDihedral",
    "2": "HarmonicImproper",
    "3": "RyckaertBellemans",
    "4": "PeriodicImproper",
    "9": "PeriodicDihedral",
}


class Topology(app.GromacsTopFile):
    """A topology whose bonds and angles have any function, with `constrainttypes` and `virtual_sitesn`."""

    def __init__(self, *arguments, **options):
        self.constraint_types = []
        super().__init__(*arguments, **options)

    def _processLine(self, line, file):
        # OpenMM defines it
        self._defines.pop("FLEXIBLE", None)
        words = line.split(";")[0].split()
        active = all(self._ifStack) and words and words[0][0] not in "[#"
        if active and self._currentCategory == "constrainttypes":
            self.constraint_types.append(words)
        elif active and self._currentCategory == "virtual_sitesn":
            self._currentMoleculeType.sitesn.append(words)
        else:
            super()._processLine(line, file)

    def _processMoleculeType(self, line):
        super()._processMoleculeType(line)
        self._currentMoleculeType.sitesn = []
        self._currentMoleculeType.settles = []

    def _processSettles(self, line):
        super()._processSettles(line)
        self._currentMoleculeType.settles.append(int(line.split()[0]) - 1)

    def _processBond(self, line):
        self._currentMoleculeType.bonds.append(line.split())

    def _processConstraint(self, line):
        self._currentMoleculeType.constraints.append(line.split())

    def _processAngle(self, line):
        self._currentMoleculeType.angles.append(line.split())


def constraints(top, molecule):
    """Rows of constraints: two atoms, function, length."""
    types = bonded_types(top, molecule.atoms)
    for row in molecule.constraints:
        if len(row) > 3:
            yield row[:4]
            continue
        pair = [types[int(x) - 1] for x in row[:2]]
        found = next(t for t in top.constraint_types if pair in (t[:2], t[1::-1]) and t[2] == row[2])
        yield [*row, found[3]]


def exclusions(molecule):
    """Excluded pairs: by bonds and constraints of function 1, by rigid molecules of water, and explicit ones."""
    # function 6 of bonds and function 2 of constraints exclude nothing
    bonds, ours = molecule.bonds, [row for row in molecule.bonds if row[2] != "6"]
    molecule.bonds = ours + [row for row in molecule.constraints if row[2] == "1"]
    pairs = {tuple(sorted(p)) for p in molecule.findExclusionsFromBonds(False) if p[0] != p[1]}
    molecule.bonds = bonds
    for row in molecule.exclusions:
        pairs |= {tuple(sorted((int(row[0]) - 1, int(x) - 1))) for x in row[1:] if x != row[0]}
    for first in molecule.settles:
        pairs |= {(first, first + 1), (first, first + 2), (first + 1, first + 2)}
    return pairs


def bonded_types(top, fields_of_atoms):
    """Names of the types in the tables: the column `bonded` where there is one, otherwise the name of the type."""
    kinds = [top._atomTypes[f[1]] for f in fields_of_atoms]
    return [k[1] or k[0] for k in kinds]


def parameters(rows, types, function):
    """The parameters of a table for these types, with the fewest wildcards, in either direction."""
    best = None
    for row in rows:
        names = row[: len(types)]
        if {row[len(types)], function} not in ({"1"}, {"2"}, {"9"}):
            continue
        for order in (types, types[::-1]):
            if all(a == "X" or a == b for a, b in zip(names, order)):
                key = names.count("X")
                if best is None or key < best[0]:
                    best = (key, row[len(types) + 1 :])
    return best[1]


def terms(top, molecule):
    """All bonded terms of a molecule: component, atoms, numbers."""
    types = bonded_types(top, molecule.atoms)
    tables = {
        2: (molecule.bonds, BONDS, list(top._bondTypes.values())),
        3: (molecule.angles, ANGLES, list(top._angleTypes.values())),
        4: (molecule.dihedrals, DIHEDRALS, None),
    }
    for n, (rows, names, table) in tables.items():
        for row in rows:
            atoms = [int(x) - 1 for x in row[:n]]
            name = names[row[n]]
            count = len(FORMS[name][2])
            own = row[n + 1 :]
            if own:
                yield name, atoms, [float(x) for x in own]
                continue
            if n == 4:
                flat = [r for rows in top._dihedralTypes.values() for r in rows]
                key = [types[a] for a in atoms]
                first = parameters(flat, key, row[n])
                # all rows with the same types
                chosen = next(r for r in flat if r[5:] == first)
                for r in flat:
                    if r[:4] == chosen[:4]:
                        yield name, atoms, [float(x) for x in r[5 : 5 + count]]
            else:
                yield name, atoms, [float(x) for x in parameters(table, [types[a] for a in atoms], row[n])]


def lennard_jones(top, a, b):
    """C6 and C12 of a pair of types; combination rule 2."""
    found = top._nonbondTypes.get(tuple(sorted([a, b])))
    if found:
        s, e = float(found[3]), float(found[4])
    else:
        (s, e), (t, f) = [(float(top._atomTypes[x][6]), float(top._atomTypes[x][7])) for x in (a, b)]
        s, e = (s + t) / 2, (e * f) ** 0.5
    return 4 * e * s**6, 4 * e * s**12


def read_gro(path):
    """Positions with any number of digits, and the lengths of the box."""
    lines = Path(path).read_text().splitlines()
    n = int(lines[1])
    points = [k for k, c in enumerate(lines[2]) if c == "."]
    width = points[-1] - points[-2]
    columns = [slice(20 + k * width, 20 + (k + 1) * width) for k in range(3)]
    positions = [[float(line[c]) for c in columns] for line in lines[2 : n + 2]]
    return numpy.array(positions), numpy.array([float(x) for x in lines[n + 2].split()[:3]])


def whole(positions, box, starts):
    """Positions with molecules in one piece: OpenMM constructs sites without periodic images."""
    for i in range(len(positions)):
        if i not in starts:
            d = (positions[i] - positions[i - 1]) / box
            positions[i] -= box * d.round()
    return positions


def build(path, box):
    """The system of a topology in this box: system, forces by component, atoms (type, charge, mass), first atoms of molecules."""
    top = Topology(str(path), includeDir=str(path.parent), defines={})
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*row) for row in numpy.diag(box)))
    atoms, excluded, separate, links, starts = [], [], [], [], set()
    for name, count in top._molecules:
        m = top._moleculeTypes[name]
        pairs = exclusions(m)
        bonded = list(terms(top, m))
        # bonds that exclude nothing have the interactions of their pair as a bond of ours
        apart = {tuple(sorted((int(r[0]) - 1, int(r[1]) - 1))) for r in m.bonds + m.constraints} - pairs
        for _ in range(count):
            base = len(atoms)
            starts.add(base)
            for f in m.atoms:
                kind = top._atomTypes[f[1]]
                charge = float(f[6]) if len(f) > 6 else float(kind[4])
                mass = float(f[7]) if len(f) > 7 else float(kind[3])
                atoms.append((f[1], charge, mass))
                system.addParticle(mass)
            excluded += [(i + base, j + base) for i, j in sorted(pairs)]
            separate += [(i + base, j + base) for i, j in sorted(apart)]
            links += [(n, [i + base for i in ids], p) for n, ids, p in bonded]
            for f in m.vsites2 + m.vsites3:
                k = 3 if f in m.vsites2 else 4
                ids = [int(x) - 1 + base for x in f[:k]]
                p = [float(x) for x in f[k + 1 :]]
                if k == 3:
                    site = openmm.TwoParticleAverageSite(*ids[1:], 1 - p[0], p[0])
                elif f[k] == "1":
                    site = openmm.ThreeParticleAverageSite(*ids[1:], 1 - p[0] - p[1], p[0], p[1])
                else:
                    site = openmm.OutOfPlaneSite(*ids[1:], *p)
                system.setVirtualSite(ids[0], site)
            for f in m.sitesn:
                ids = [int(x) - 1 + base for x in f[2:]]
                zero = [0.0] * (len(ids) - 2)
                mean = openmm.LocalCoordinatesSite(
                    ids, [1 / len(ids)] * len(ids), [1, -1, *zero], [1, -1, *zero], openmm.Vec3(0, 0, 0)
                )
                assert f[1] == "1", "only the mean of positions"
                system.setVirtualSite(int(f[0]) - 1 + base, mean)

    forces = {}
    kinds = sorted({a[0] for a in atoms})
    tables = [[lennard_jones(top, a, b)[w] for a in kinds for b in kinds] for w in (0, 1)]
    lj = openmm.CustomNonbondedForce(
        f"b(t1, t2)*(1/r^12 - 1/{RC}^12) - a(t1, t2)*(1/r^6 - 1/{RC}^6)"
    )
    for name, values in zip("ab", tables):
        lj.addTabulatedFunction(name, openmm.Discrete2DFunction(len(kinds), len(kinds), values))
    lj.addPerParticleParameter("t")
    rf = openmm.CustomNonbondedForce(f"{F}/{EPS_R}*q1*q2*(1/r + {K!r}*r^2 - {C!r})")
    rf.addPerParticleParameter("q")
    inner = openmm.CustomBondForce(f"step({RC} - r)*{F}/{EPS_R}*qq*({K!r}*r^2 - {C!r})")
    inner.addPerBondParameter("qq")
    others = openmm.CustomBondForce(
        f"step({RC} - r)*(b*(1/r^12 - 1/{RC}^12) - a*(1/r^6 - 1/{RC}^6) + {F}/{EPS_R}*qq*(1/r + {K!r}*r^2 - {C!r}))"
    )
    [others.addPerBondParameter(name) for name in ("qq", "a", "b")]
    for kind, charge, _ in atoms:
        lj.addParticle([kinds.index(kind)])
        rf.addParticle([charge])
    for i, j in excluded + separate:
        lj.addExclusion(i, j)
        rf.addExclusion(i, j)
        qq = atoms[i][1] * atoms[j][1]
        if (i, j) in separate:
            others.addBond(i, j, [qq, *lennard_jones(top, atoms[i][0], atoms[j][0])])
        else:
            inner.addBond(i, j, [qq])
    for f in (lj, rf):
        f.setNonbondedMethod(openmm.CustomNonbondedForce.CutoffPeriodic)
        f.setCutoffDistance(RC)
    forces["LennardJones"], forces["ReactionField"] = lj, rf
    for name, (form, energy, names) in FORMS.items():
        rows = [l for l in links if l[0] == name]
        if not rows:
            continue
        force = form(energy.format(d=DEGREE, t=TURN))
        add = {2: "addPerBondParameter", 3: "addPerAngleParameter", 4: "addPerTorsionParameter"}[len(rows[0][1])]
        [getattr(force, add)(n) for n in names]
        put = {2: "addBond", 3: "addAngle", 4: "addTorsion"}[len(rows[0][1])]
        [getattr(force, put)(*ids, p) for _, ids, p in rows]
        forces[name] = force
    if separate:
        forces["BondExpression:2"] = others
    forces["BondExpression"] = inner
    for group, force in enumerate(forces.values()):
        if hasattr(force, "setUsesPeriodicBoundaryConditions"):
            force.setUsesPeriodicBoundaryConditions(True)
        force.setForceGroup(group)
        system.addForce(force)
    return system, forces, atoms, starts


def evaluated(system, positions, box, starts):
    """A context on the Reference platform with these positions."""
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(whole(positions, box, starts))
    context.computeVirtualSites()
    return context


def energies(context, forces):
    """The energy of each component in kJ/mol."""
    kj = unit.kilojoule_per_mole
    of = lambda group: context.getState(getEnergy=True, groups={group}).getPotentialEnergy().value_in_unit(kj)
    return {name: of(group) for group, name in enumerate(forces)}


def case(folder, top_name, gro_name, every):
    positions, box = read_gro(HERE / folder / gro_name)
    system, forces, atoms, starts = build(HERE / folder / top_name, box)
    context = evaluated(system, positions, box, starts)
    kj = unit.kilojoule_per_mole
    out = [f"    (\n        name: \"{top_name}\",\n        energies: {{"]
    for name, e in energies(context, forces).items():
        out.append(f'            "{name}": {e!r},')
    out.append(f"        }},\n        every: {every},\n        forces: [")
    state = context.getState(getForces=True).getForces(asNumpy=True).value_in_unit(kj / unit.nanometer)
    for i in range(0, len(atoms), every):
        x = [float(v) for v in state[i]] if atoms[i][2] > 0 else [0.0] * 3
        out.append(f"            ({x[0]!r}, {x[1]!r}, {x[2]!r}),")
    return "\n".join([*out, "        ],\n    ),"])


def main():
    version = openmm.version.full_version
    print(f"// Energies (kJ/mol) and forces (kJ/mol/nm) of every n-th atom by OpenMM {version}, Reference platform:")
    print("// python tests/python/gromacs_openmm.py. Forces on virtual sites are 0 here, because their particles have them.")
    print("[")
    print(case("tests/data/gromacs", "terms.top", "terms.gro", 1))
    print(case("examples/80-martini", "system.top", "system.gro", 12))
    print(case("tests/data/gromacs", "rigid.top", "rigid.gro", 3))
    print("]")


if __name__ == "__main__":
    sys.exit(main())
