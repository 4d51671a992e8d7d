"""States to and from other packages, which are imported when they are used. Conversions to other packages warn of what
they do not keep."""

import warnings

import numpy as np

from ._errors import GalamostWarning, require_unmasked
from ._frame import LINKS, Frame, Links, State, _filled


def _frame(source):
    """The state of a simulation, or a frame itself."""
    if isinstance(source, Frame):
        return source
    state = source if isinstance(source, State) else getattr(source, "state", None)
    if not isinstance(state, State):
        raise TypeError(f"`source` must be a simulation, its state or a Frame, not {type(source).__name__}")
    return state.copy()


def _warn_of_lost(f, name, kept):
    """Warns of the arrays and links that the function `name` does not keep. Torques are results, as forces are."""
    lost = [n for n in f.arrays if n not in (*kept, "torque")] + [n for n in LINKS if n not in kept and len(getattr(f, n))]
    if lost:
        warnings.warn(f"{name} does not keep {', '.join(f'`{n}`' for n in lost)}", GalamostWarning, stacklevel=3)


def _rectangular(f):
    if f.tilt.any():
        raise ValueError("the box is triclinic, which this conversion does not support")
    return f


def _lengths(lengths, angles=None):
    if angles is not None and not np.allclose(angles, 90.0):
        raise ValueError("the box is triclinic; boxes must be rectangular")
    return np.asarray(lengths, dtype=float)


def _wrapped(position, box):
    """Positions in −L/2 ≤ x < L/2 and their images, for positions anywhere. An axis of length 0 is not wrapped."""
    length = np.where(box > 0, box, 1.0)
    image = np.where(box > 0, np.floor(position / length + 0.5), 0.0)
    wrapped = position - image * length
    # rounding may have reached the upper face
    over = (box > 0) & (wrapped >= 0.5 * length)
    return np.where(over, wrapped - length, wrapped), (image + over).astype(np.int32)


def _wrapped_tilted(position, box, tilt):
    """The same for a triclinic box, in whose reduced coordinates the faces are those of a rectangular one."""
    xy, xz, yz = tilt
    tilted = np.array([[1.0, 0.0, 0.0], [xy, 1.0, 0.0], [xz, yz, 1.0]])
    reduced, image = _wrapped(position @ np.linalg.inv(tilted), box)
    return reduced @ tilted, image


def _product(a, b):
    """Products of quaternions w x y z."""
    real, vector = a[:, :1], a[:, 1:]
    w = real * b[:, :1] - (vector * b[:, 1:]).sum(axis=1, keepdims=True)
    return np.hstack([w, real * b[:, 1:] + b[:, :1] * vector + np.cross(vector, b[:, 1:])])


def _of_axes(axes):
    """The shortest rotations of z onto axes, as w x y z; the identity for an axis of length 0."""
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    x, y, z = (axes / np.where(length > 0, length, 1.0)).T
    # z × axis = (−y, x, 0) is the sine, 1 + z the cosine: their sum lies along the half angle
    q = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    norm = np.linalg.norm(q, axis=1, keepdims=True)
    # for an axis opposite to z, any rotation axis in the xy plane is valid
    return np.where(norm < 1e-7, [0.0, 1.0, 0.0, 0.0], q / np.where(norm > 0, norm, 1.0))


def to_gsd(source):
    """A `gsd.hoomd.Frame`. Its orientations are the array `quaternion`, or shortest rotations of z onto the array
    `orientation`; its moments of inertia are the array `inert`, its angular momenta `angular_momentum`."""
    import gsd.hoomd

    f, out = _frame(source), gsd.hoomd.Frame()
    out.configuration.step, out.configuration.dimensions = f.step, f.dimensions
    out.configuration.box = [*f.box, *f.tilt]
    p = out.particles
    p.N, p.types, p.typeid = len(f), list(f.types), f.type.copy()
    p.position, p.velocity, p.image, p.mass = f.position.copy(), f.velocity.copy(), f.image.copy(), f.mass.copy()
    for name, field in (("charge", "charge"), ("diameter", "diameter"), ("body", "body"), ("inert", "moment_inertia")):
        if name in f.arrays:
            setattr(p, field, np.array(f.arrays[name]))
    kept = [*LINKS, "charge", "diameter", "body", "inert", "orientation"]
    if "quaternion" in f.arrays:
        kept += ["quaternion", "angular_momentum"]
        p.orientation = np.asarray(f.arrays["quaternion"], dtype=float)[:, [3, 0, 1, 2]]
        if "angular_momentum" in f.arrays:
            # angular velocities follow from momenta and moments of inertia
            kept.append("rotation")
            # HOOMD-blue's 2 q (0, l') with l' in the body frame is 2 (0, l) q with l in the space frame
            momentum = np.asarray(f.arrays["angular_momentum"], dtype=float)
            p.angmom = 2.0 * _product(np.hstack([np.zeros((len(f), 1)), momentum]), p.orientation)
    elif "orientation" in f.arrays:
        p.orientation = _of_axes(np.asarray(f.arrays["orientation"], dtype=float))
    for name in LINKS:
        links, to = getattr(f, name), getattr(out, name)
        to.N, to.types, to.typeid, to.group = len(links), links.types, links.type.copy(), links.members.copy()
    _warn_of_lost(f, "to_gsd", kept)
    out.validate()
    return out


def from_gsd(frame):
    """A `Frame` of a `gsd.hoomd.Frame`, with the arrays of `gm.read`. GSD stores single precision. Arrays that gsd has
    filled with defaults are left out, and fields that are None have the defaults of the format."""
    if not hasattr(frame, "particles") or not hasattr(frame, "configuration"):
        raise TypeError(f"`frame` must be a gsd.hoomd.Frame, not {type(frame).__name__}")
    for name, values in vars(frame.particles).items():
        require_unmasked(values, f"particles.{name}")
    if frame.configuration.box is None:
        raise ValueError("the frame has no box; set `configuration.box` to [Lx, Ly, Lz, xy, xz, yz]")
    if frame.particles.N is None:
        raise ValueError("the frame has no number of particles; set `particles.N`")
    frame.validate()
    box = _filled(frame.configuration.box, "configuration.box", (6,))
    p, arrays = frame.particles, {}
    # the default of the format
    position = np.zeros((p.N, 3)) if p.position is None else _filled(p.position, "particles.position", (p.N, 3))

    def given(field, default):
        # gsd makes the arrays read-only that a frame of a file does not contain
        values = getattr(p, field)
        return values is not None and (not isinstance(values, np.ndarray) or values.flags.writeable or np.any(values != default))

    for name, field, default in (("charge", "charge", 0.0), ("diameter", "diameter", 1.0), ("body", "body", -1),
                                 ("inert", "moment_inertia", 0.0)):
        if given(field, default):
            arrays[name] = np.array(getattr(p, field), dtype=np.int32 if name == "body" else float)
    momenta, identity = given("angmom", 0.0), [1.0, 0.0, 0.0, 0.0]
    if momenta or given("orientation", identity):
        q = np.array(np.broadcast_to(identity, (p.N, 4)) if p.orientation is None else p.orientation, dtype=float)
        arrays["quaternion"] = q[:, [1, 2, 3, 0]]
        if momenta:
            arrays["angular_momentum"] = 0.5 * _product(np.asarray(p.angmom, dtype=float), q * [1, -1, -1, -1])[:, 1:]
    for name in ("constraints", "pairs"):
        if getattr(frame, name).N:
            warnings.warn(f"from_gsd does not keep `{name}`", GalamostWarning, stacklevel=2)

    def links(group, width):
        if not group.N:
            return Links(width=width)
        kinds = np.zeros(group.N, np.uint32) if group.typeid is None else group.typeid
        members = np.zeros((group.N, width), np.uint32) if group.group is None else group.group
        return Links(group.types or [], kinds, members, width)

    dimensions = frame.configuration.dimensions or 3
    lengths = box[:3] if dimensions == 3 else np.array([box[0], box[1], 0.0])
    tilt = box[3:] if dimensions == 3 else np.array([box[3], 0.0, 0.0])
    position, image = _wrapped_tilted(position, lengths, tilt)
    if p.image is not None:
        image = image + np.asarray(p.image)
    return Frame(position, lengths, p.types or ["A"], p.typeid, p.velocity, image, p.mass,
                 frame.configuration.step or 0, dimensions, arrays, links(frame.bonds, 2), links(frame.angles, 3),
                 links(frame.dihedrals, 4), links(frame.impropers, 4), tilt)


def to_freud(source):
    """Box and positions, the system that every `compute` of freud accepts."""
    import freud

    f = _frame(source)
    flat = f.dimensions == 2
    box = freud.box.Box(f.box[0], f.box[1], xy=f.tilt[0], is2D=True) if flat else freud.box.Box(*f.box, *f.tilt)
    return box, f.position.astype(np.float32)


def from_freud(system, **arrays):
    """A `Frame` of box and positions of freud; `arrays` are further arguments of `Frame`."""
    import freud

    box, points = system
    box = freud.box.Box.from_box(box)
    lengths = np.array([box.Lx, box.Ly, 0.0 if box.is2D else box.Lz], dtype=float)
    tilt = np.array([box.xy, 0.0 if box.is2D else box.xz, 0.0 if box.is2D else box.yz], dtype=float)
    position, image = _wrapped_tilted(np.asarray(points, dtype=float), lengths, tilt)
    arrays.setdefault("image", image)
    return Frame(position, lengths, dimensions=2 if box.is2D else 3, tilt=tilt, **arrays)


def to_mdanalysis(source):
    """An `MDAnalysis.Universe` with unwrapped positions, velocities, masses, types, charges and bonds, without the names
    of bond types. MDAnalysis stores single precision and has the origin at a corner of the box."""
    import MDAnalysis

    f = _rectangular(_frame(source))
    _warn_of_lost(f, "to_mdanalysis", [*LINKS, "charge"])
    universe = MDAnalysis.Universe.empty(len(f), trajectory=True, velocities=True)
    universe.add_TopologyAttr("types", list(f.type_names))
    universe.add_TopologyAttr("names", list(f.type_names))
    universe.add_TopologyAttr("masses", f.mass.copy())
    if "charge" in f.arrays:
        universe.add_TopologyAttr("charges", f.arrays["charge"].copy())
    for name in ("bonds", "angles", "dihedrals", "impropers"):
        links = getattr(f, name)
        if len(links):
            universe.add_TopologyAttr(name, [tuple(int(t) for t in m) for m in links.members])
    universe.dimensions = [*f.box, 90.0, 90.0, 90.0]
    universe.atoms.positions = (f.unwrapped + 0.5 * f.box).astype(np.float32)
    universe.atoms.velocities = f.velocity.astype(np.float32)
    return universe


def from_mdanalysis(universe):
    """A `Frame` of the current frame of an `MDAnalysis.Universe` or `AtomGroup`."""
    atoms = universe.atoms
    lengths = _lengths(atoms.dimensions[:3], atoms.dimensions[3:])
    position, image = _wrapped(np.asarray(atoms.positions, dtype=float) - 0.5 * lengths, lengths)
    names = np.asarray(atoms.types if hasattr(atoms, "types") else ["A"] * len(atoms), dtype=str)
    types = list(dict.fromkeys(names))
    index = {name: k for k, name in enumerate(types)}
    velocity = atoms.velocities if atoms.universe.trajectory.ts.has_velocities else None
    mass = atoms.masses if hasattr(atoms, "masses") and np.all(np.asarray(atoms.masses) > 0) else None
    arrays = {"charge": np.asarray(atoms.charges, dtype=float)} if hasattr(atoms, "charges") else {}
    tag = {int(a): k for k, a in enumerate(atoms.indices)}

    def links(name, width):
        if not hasattr(atoms, name):
            return Links(width=width)
        inside = [m for m in getattr(atoms, name).indices if all(int(a) in tag for a in m)]
        members = [[tag[int(a)] for a in m] for m in inside]
        kinds = ["-".join(names[t] for t in m) for m in members]
        kinds = [min(k, "-".join(reversed(k.split("-")))) for k in kinds]
        all_kinds = list(dict.fromkeys(kinds))
        return Links(all_kinds, [all_kinds.index(k) for k in kinds], members, width)

    return Frame(position, lengths, types, [index[n] for n in names], velocity, image, mass,
                 atoms.universe.trajectory.ts.frame, None, arrays, links("bonds", 2), links("angles", 3), links("dihedrals", 4),
                 links("impropers", 4))


def to_ase(source, symbols=None):
    """`ase.Atoms` with masses and velocities. `symbols` maps type names to chemical symbols; other types become
    `X`. The type names are in the array `types`."""
    import ase

    f = _rectangular(_frame(source))
    _warn_of_lost(f, "to_ase", [])
    symbols = symbols or {}
    atoms = ase.Atoms([symbols.get(n, "X") for n in f.type_names], positions=f.position + 0.5 * f.box,
                      cell=f.box, pbc=f.box > 0)
    atoms.set_masses(f.mass)
    atoms.set_velocities(f.velocity)
    atoms.set_array("types", f.type_names)
    atoms.set_array("image", f.image.copy())
    return atoms


def from_ase(atoms):
    """A `Frame` of `ase.Atoms` in a rectangular box."""
    lengths = _lengths(atoms.cell.lengths(), atoms.cell.angles())
    position, image = _wrapped(atoms.get_positions() - 0.5 * lengths, lengths)
    names = atoms.arrays.get("types", np.array(atoms.get_chemical_symbols())).astype(str)
    types = list(dict.fromkeys(names))
    if "image" in atoms.arrays:
        image = image + atoms.arrays["image"]
    return Frame(position, lengths, types, [types.index(n) for n in names], atoms.get_velocities(), image,
                 atoms.get_masses())


def to_ovito(source):
    """An `ovito.pipeline.Pipeline` of one frame, with masses, velocities, images, charges and bonds."""
    from ovito.data import DataCollection
    from ovito.pipeline import Pipeline, StaticSource

    f, data = _rectangular(_frame(source)), DataCollection()
    _warn_of_lost(f, "to_ovito", ["charge", "bonds"])
    cell = np.zeros((3, 4))
    cell[:, :3], cell[:, 3] = np.diag(f.box), -0.5 * f.box
    if f.dimensions == 2:
        cell[2, 2] = 1.0
    data.create_cell(cell, pbc=tuple(bool(x) for x in f.box > 0)).is2D = f.dimensions == 2
    particles = data.create_particles(count=len(f))
    particles.create_property("Position", data=f.position)
    types = particles.create_property("Particle Type", data=f.type.astype(np.int32) + 1)
    for k, name in enumerate(f.types):
        types.add_type_id(k + 1, particles, name=name)
    for name, values in (("Velocity", f.velocity), ("Mass", f.mass), ("Periodic Image", f.image)):
        particles.create_property(name, data=values)
    if "charge" in f.arrays:
        particles.create_property("Charge", data=f.arrays["charge"])
    if len(f.bonds):
        # the images of a bond: how many box lengths its members are apart beyond the nearest image
        a, b = f.bonds.members.astype(np.int64).T
        length = np.where(f.box > 0, f.box, 1.0)
        shift = -np.rint((f.position[b] - f.position[a]) / length).astype(np.int32)
        bonds = particles.create_bonds(count=len(f.bonds))
        bonds.create_property("Topology", data=np.stack([a, b], axis=1))
        kinds = bonds.create_property("Bond Type", data=f.bonds.type.astype(np.int32) + 1)
        for k, name in enumerate(f.bonds.types):
            kinds.add_type_id(k + 1, bonds, name=name)
        bonds.create_property("Periodic Image", data=np.where(f.box > 0, shift, 0))
    data.attributes["Timestep"] = f.step
    return Pipeline(source=StaticSource(data=data))


def from_ovito(source, frame=None):
    """A `Frame` of a pipeline of OVITO, after its modifiers, or of a `DataCollection`."""
    data = source if frame is None and not hasattr(source, "compute") else source.compute(frame)
    cell = np.asarray(data.cell[...], dtype=float)
    if np.any(cell[:, :3] != np.diag(np.diag(cell[:, :3]))):
        raise ValueError("the box is triclinic; boxes must be rectangular")
    flat = bool(data.cell.is2D)
    lengths = np.diag(cell[:, :3]) * (1, 1, 0 if flat else 1)
    particles = data.particles
    position, image = _wrapped(np.asarray(particles.positions, dtype=float) - cell[:, 3] - 0.5 * lengths, lengths)

    def values(name, default=None):
        return np.array(particles[name]) if name in particles else default

    def named(property, wanted):
        """Names in the order of their numbers, and the index of each entry."""
        ids = sorted({int(i) for i in wanted})
        known = {t.id: t.name for t in property.types}
        names = [known.get(i) or f"type{i}" for i in ids]
        return names, np.searchsorted(ids, wanted)

    types, index = ["A"], None
    if "Particle Type" in particles:
        types, index = named(particles.particle_types, np.array(particles.particle_types))
    if "Periodic Image" in particles:
        image = image + values("Periodic Image")
    arrays = {"charge": values("Charge").astype(float)} if "Charge" in particles else {}
    bonds = None
    if particles.bonds is not None and particles.bonds.count:
        members = np.array(particles.bonds.topology)
        kinds = particles.bonds["Bond Type"] if "Bond Type" in particles.bonds else None
        names, kind = named(kinds, np.array(kinds)) if kinds is not None else (["bond"], np.zeros(len(members), int))
        bonds = Links(names, kind, members)
    return Frame(position, lengths, types, index, values("Velocity"), image, values("Mass"),
                 data.attributes.get("Timestep", 0), 2 if flat else 3, arrays, bonds)
