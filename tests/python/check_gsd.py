#!/usr/bin/env python3
"""Checks a GSD trajectory with the readers of the field, gsd and freud.

    python3 tests/python/check_gsd.py trajectory.gsd [out.0000000500.xml ...]

Every frame must be readable and sound; a galamost_xml file must agree with the frame of its step. Needs
`pip install gsd freud-analysis`.
"""

import sys
import xml.etree.ElementTree as ElementTree

import freud
import gsd.hoomd
import numpy


def check_frame(frame, first):
    """A frame must be sound by itself; returns its longest link and the neighbors that freud finds within r."""
    n = frame.particles.N
    configuration, particles = frame.configuration, frame.particles
    assert n == first.particles.N, "the number of particles changes"
    assert particles.types == first.particles.types, "the types change"
    assert particles.typeid.max() < len(particles.types), "a particle has a type without name"
    assert (particles.mass > 0).all(), "a mass is not above 0"
    for name in ("position", "image", "mass", "typeid", "velocity"):
        assert len(getattr(particles, name)) == n, f"{name} is not there for all particles"
    assert numpy.isfinite(particles.position).all() and numpy.isfinite(particles.velocity).all()
    assert (configuration.box[3:] == 0).all(), "the box has tilts"
    box = freud.box.Box.from_box(configuration.box[:6], dimensions=int(configuration.dimensions))
    lengths = numpy.where(configuration.box[:3] > 0, configuration.box[:3], 1)
    assert (numpy.abs(particles.position) <= 0.5 * lengths * (1 + 1e-6)).all(), "a particle is outside of the box"
    # in freud's box every particle is where it was, or on the opposite edge
    moved = box.wrap(box.wrap(particles.position) - particles.position)
    assert numpy.abs(moved).max() < 1e-5 * lengths.max(), "freud sees other positions"

    longest = 0.0
    for group, size in ((frame.bonds, 2), (frame.angles, 3), (frame.dihedrals, 4), (frame.impropers, 4)):
        assert group.group.shape == (group.N, size), f"{group.N} rows are {group.group.shape}"
        assert len(group.typeid) == group.N
        if group.N:
            assert group.typeid.max() < len(group.types) and group.group.max() < n
            vectors = particles.position[group.group[:, 1]] - particles.position[group.group[:, 0]]
            longest = max(longest, numpy.linalg.norm(box.wrap(vectors), axis=1).max())

    r = min(1.0, 0.3 * lengths[: int(configuration.dimensions)].min())
    query = freud.locality.AABBQuery(box, particles.position)
    neighbors = query.query(particles.position, {"r_max": r, "exclude_ii": True}).toNeighborList()
    count = len(neighbors) / n
    return longest, r, count


def check_xml(path, trajectory):
    """A galamost_xml file must agree with the frame of the same step."""
    configuration = ElementTree.parse(path).getroot().find("configuration")
    step = int(configuration.get("time_step"))
    frame = next(f for f in trajectory if f.configuration.step == step)
    rows = lambda name: [row.split() for row in configuration.find(name).text.split("\n") if row.strip()]
    particles = frame.particles
    assert int(configuration.get("natoms")) == particles.N
    assert int(configuration.get("dimensions")) == frame.configuration.dimensions
    box = configuration.find("box")
    assert numpy.allclose([float(box.get(k)) for k in ("lx", "ly", "lz")], frame.configuration.box[:3])
    assert [r[0] for r in rows("type")] == [particles.types[k] for k in particles.typeid], "types differ"
    length = float(box.get("lx"))
    for name in ("position", "velocity", "mass", "image"):
        if configuration.find(name) is not None:
            here, there = numpy.array(rows(name), dtype=float), getattr(particles, name).astype(float)
            difference = numpy.abs(here - there.reshape(here.shape)).max()
            assert difference < 1e-6 * max(length, numpy.abs(there).max()), f"{name} differs by {difference}"
    for name, group in (("bond", frame.bonds), ("angle", frame.angles), ("dihedral", frame.dihedrals), ("improper", frame.impropers)):
        links = rows(name) if configuration.find(name) is not None else []
        assert len(links) == group.N, f"{len(links)} rows of {name}, {group.N} in the frame"
        assert [r[0] for r in links] == [group.types[k] for k in group.typeid], f"types of {name} differ"
        if links:
            assert (numpy.array([r[1:] for r in links], dtype=int) == group.group).all(), f"{name} differs"
    print(f"{path}: agrees with the frame of step {step}")


def main():
    trajectory = gsd.hoomd.open(sys.argv[1], "r")
    first = trajectory[0]
    assert trajectory.file.schema == "hoomd"
    print(f"{sys.argv[1]}: {len(trajectory)} frames of {first.particles.N} particles, types {first.particles.types}")
    for frame in trajectory:
        longest, r, count = check_frame(frame, first)
        log = {name.removeprefix("log/"): float(value[0]) for name, value in frame.log.items()}
        print(
            f"step {frame.configuration.step}: box {frame.configuration.box[:3]}, {frame.bonds.N} bonds"
            f" {frame.bonds.types}, {frame.angles.N} angles, {frame.dihedrals.N} dihedrals, longest link"
            f" {longest:.3f}, {count:.2f} neighbors within {r:.2f}, {log}"
        )
    steps = [f.configuration.step for f in trajectory]
    assert all(a < b for a, b in zip(steps, steps[1:])), f"steps do not grow: {steps}"
    for path in sys.argv[2:]:
        check_xml(path, trajectory)
    print("all sound")


if __name__ == "__main__":
    main()
