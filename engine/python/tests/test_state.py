"""What the state of a simulation shows cannot be changed, except by setting its arrays."""

import json
import pickle

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID

X = [[-0.6, 0.0, 0.0], [0.6, 0.0, 0.0], [0.0, 1.2, 0.0]]


@pytest.fixture
def sim():
    """A simulation with bonds and charges."""
    initial = "initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.8), Velocities(kT: 1.0) ]"
    frame = gm.Frame(X, [9.0, 9.0, 9.0], velocity=np.eye(3), arrays={"charge": np.ones(3)}, bonds=gm.Links(["b"], [0], [[0, 1]]))
    with gm.Simulation(LIQUID.replace(initial, "initial: []"), state=frame) as sim:
        yield sim


def shown(sim):
    """All that a program can read."""
    state = sim.state
    arrays = [getattr(state, n).tolist() for n in ("position", "velocity", "image", "mass", "type", "box", "tilt", "force", "unwrapped")]
    links = state.bonds.types, state.bonds.type.tolist(), state.bonds.members.tolist()
    return arrays, state.types, state.type_names.tolist(), state.arrays["charge"].tolist(), links, sim.thermo, sim.forces


@pytest.mark.parametrize("change", [
    lambda s: s.state.arrays.__setitem__("charge", np.zeros(3)), lambda s: s.state.arrays.update(x=np.zeros(3)),
    lambda s: s.state.arrays["charge"].__setitem__(0, 5.0), lambda s: s.state.types.append("B"),
    lambda s: setattr(s.state.bonds, "types", ["c"]), lambda s: s.state.bonds.types.append("c"),
    lambda s: s.state.bonds.members.__setitem__(0, 2), lambda s: s.state.force.__setitem__(0, 0.0),
    lambda s: s.state.unwrapped.__setitem__(0, 0.0), lambda s: s.state.type_names.__setitem__(0, "B"),
    lambda s: s.state.cell.__setitem__(0, 0.0), lambda s: s.state.position.__setitem__(0, 0.0),
    lambda s: setattr(s.thermo, "kT", 3.0), lambda s: s.forces.__setitem__("LennardJones", 3.0), lambda s: s.forces.clear(),
    lambda s: setattr(s.forces["LennardJones"], "energy", 3.0), lambda s: setattr(s.state.position.flags, "writeable", True),
    lambda s: setattr(s.state.box.flags, "writeable", True), lambda s: setattr(s.state.arrays["charge"].flags, "writeable", True),
    lambda s: setattr(s.state.bonds.members.flags, "writeable", True),
])
def test_what_is_shown_cannot_be_changed(sim, change):
    before = shown(sim)
    with pytest.raises((TypeError, ValueError, AttributeError)):
        change(sim)
    assert shown(sim) == before


def test_copies_can_be_changed(sim):
    for frame in (sim.state.copy(), gm.Frame(sim.state.position, sim.state.box, arrays=sim.state.arrays, bonds=sim.state.bonds)):
        frame.arrays["charge"][0], frame.bonds.types, frame.position[0, 0] = 5.0, ["c"], 0.0
        frame.bonds.members[0, 0] = 2
        assert frame.bonds.members.tolist() == [[2, 1]] and sim.state.bonds.members.tolist() == [[0, 1]]
    changed = {**sim.forces, "other": 0.0}
    assert set(changed) == {"LennardJones", "other"} and pickle.loads(pickle.dumps(sim.forces)) == sim.forces
    assert pickle.loads(pickle.dumps(sim.thermo)) == sim.thermo
    assert json.loads(json.dumps({n: f.energy for n, f in sim.forces.items()})) == {"LennardJones": sim.forces["LennardJones"].energy}


def test_arrays_for_other_libraries_are_writable(sim):
    # NumPy before 2.1 gives only writable arrays to other libraries
    for name in ("position", "velocity", "force"):
        assert np.from_dlpack(getattr(sim.state.dlpack, name)).shape == (3, 3)
