"""Arrays of frames with wrong shapes and values, and names of simulations."""

import copy

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID

#: a run that writes no files
QUIET = LIQUID.replace('analyzers: [ Thermo(every: 10, file: "thermo.csv") ],', "")
PLANE = np.zeros((2, 3))


@pytest.mark.parametrize("wrong, kind, message", [
    ({"position": [[1, 2, 3], [4, 5]]}, ValueError, r"position has .*different lengths.*, not the shape \(n, 3\)"),
    ({"position": [["a", "b", "c"]]}, TypeError, r"position has the shape \(1, 3\) and the type <U1; it must have numbers and the shape \(n, 3\)"),
    ({"position": np.array([[None] * 3], dtype=object)}, TypeError, r"position has the shape \(1, 3\) and the type object"),
    ({"position": 5.0}, ValueError, r"position has the shape \(\), not \(n, 3\)"),
    ({"position": [[0, 0, 0], [0, np.nan, 0]]}, ValueError, r"position\[1, 1\] is nan; it must be finite"),
    ({"box": [5.0, 5.0]}, ValueError, r"box has the shape \(2,\), not \(3,\): the lengths in x, y and z"),
    ({"box": [5.0, 5.0, np.nan]}, ValueError, r"box\[2\] is nan; it must be finite"),
    ({"tilt": [0.0]}, ValueError, r"tilt has the shape \(1,\), not \(3,\)"),
    ({"velocity": np.zeros((3, 3))}, ValueError, r"velocity has the shape \(3, 3\), not \(2, 3\)"),
    ({"velocity": np.full((2, 3), np.inf)}, ValueError, r"velocity\[0, 0\] is inf; it must be finite"),
    ({"velocity": np.zeros((2, 3), complex)}, TypeError, r"velocity has the shape \(2, 3\) and the type complex128"),
    ({"image": [[0, 0, 0], [0]]}, ValueError, r"image has .*, not the shape \(2, 3\)"),
    ({"image": np.zeros((2, 2), int)}, ValueError, r"image has the shape \(2, 2\), not \(2, 3\)"),
    ({"mass": [1.0]}, ValueError, r"mass has the shape \(1,\), not \(2,\)"),
    ({"mass": [1.0, np.nan]}, ValueError, r"mass\[1\] is nan; it must be finite"),
    ({"type": ["A", "A"]}, TypeError, r"type has the shape \(2,\) and the type <U1"),
    ({"type": [None, 0]}, TypeError, r"type has the shape \(2,\) and the type object"),
    ({"type": [0, 0, 0]}, ValueError, r"type has the shape \(3,\), not \(2,\)"),
    ({"arrays": {"charge": [0.0]}}, ValueError, r"charge has the shape \(1,\), not \(2,\) or \(2, width\)"),
    ({"arrays": {"charge": ["a", "b"]}}, TypeError, r"charge has the shape \(2,\) and the type <U1"),
    ({"arrays": {"molecule": np.zeros((2, 2), int)}}, ValueError, r"molecule has the shape \(2, 2\), not \(2,\)"),
    ({"arrays": {"charge": np.zeros((2, 2))}}, ValueError, r"charge has the shape \(2, 2\), not \(2,\)"),
    ({"arrays": {"quaternion": np.zeros((2, 3))}}, ValueError, r"quaternion has the shape \(2, 3\), not \(2, 4\)"),
    ({"arrays": {"position": np.zeros((2, 3))}}, ValueError, "`arrays` has an array with the name 'position'; give it as the argument `position`"),
    ({"arrays": {"": [0.0, 0.0]}}, TypeError, "`arrays` has an array with the name ''; the name must be a text"),
    ({"step": -1}, ValueError, "`step` is -1; it must be in 0…9223372036854775807"),
    ({"types": [1, 2]}, TypeError, r"types\[0\] is 1; it must be a name in quotes"),
    ({"types": "AB"}, TypeError, "types must be a list of names, not 'AB'"),
    ({"bonds": {"types": "b", "type": [0], "members": [[0, 1]]}}, TypeError, "`bonds`: types must be a list of names, not 'b'"),
    ({"arrays": [1.0]}, TypeError, "`arrays` must be a dict of arrays by name, not list"),
    ({"bonds": {"types": ["b"], "type": [0, 0], "members": [[0, 1]]}}, ValueError, r"`bonds`: type has the shape \(2,\), not \(1,\)"),
    ({"bonds": {"types": ["b"], "type": [0], "members": [[None, 1]]}}, TypeError, r"`bonds`: members has the shape \(1, 2\) and the type object"),
])
def test_wrong_arrays_are_named_with_their_shapes(wrong, kind, message):
    with pytest.raises(kind, match=message):
        gm.Frame(**{"position": PLANE, "box": [5.0, 5.0, 5.0], **wrong})


def test_arrays_that_are_set_later_are_named_too():
    frame = gm.Frame(PLANE, [5.0, 5.0, 5.0], mass=[[1.0], [2.0]], type=[2**70 - 2**70, 0])
    assert frame.mass.tolist() == [1.0, 2.0] and frame.type.tolist() == [0, 0]
    for name, value, message in [
        ("box", [5.0, 5.0], r"box has the shape \(2,\), not \(3,\)"), ("mass", [1.0, [2.0]], r"mass has .*, not the shape \(2,\)"),
        ("step", -1, "`step` is -1; it must be in 0…"), ("types", ["A", 2], r"types\[1\] is 2; it must be a name"),
        ("arrays", {"body": np.zeros((2, 2), int)}, r"body has the shape \(2, 2\), not \(2,\)"),
        ("arrays", {"charge": [1.0]}, r"charge has the shape \(1,\), not \(2,\) or \(2, width\)"),
    ]:
        before = getattr(frame, name)
        setattr(frame, name, value)
        # NumPy before 1.24 makes objects of rows with different lengths
        with pytest.raises((TypeError, ValueError), match=message):
            gm.Simulation(QUIET, state=frame)
        setattr(frame, name, before)


def test_attributes_that_do_not_exist_cannot_be_set():
    frame, links = gm.Frame(PLANE, [5.0, 5.0, 5.0]), gm.Links(["b"], [0], [[0, 1]])
    with gm.Simulation(QUIET) as sim:
        for owner, name, message in [
            (frame, "postion", "Frame has no attribute `postion`; did you mean `position`?"),
            (frame, "quux", "Frame has no attribute `quux`; the attributes are position, velocity, "),
            (frame, "cell", "the attribute `cell` of Frame cannot be set"),
            (links, "member", "Links has no attribute `member`; did you mean `members`?"),
            (sim, "stat", "Simulation has no attribute `stat`; did you mean `state`?"),
            (sim, "run", "the attribute `run` of Simulation cannot be set"),
            (sim, "step", "the attribute `step` of Simulation cannot be set"),
            (sim.state, "postion", "State has no attribute `postion`; did you mean `position`?"),
        ]:
            with pytest.raises(AttributeError) as e:
                setattr(owner, name, 1)
            assert str(e.value).startswith(message)

    class Named(gm.Frame):
        label = ""

    named = Named(PLANE, [5.0, 5.0, 5.0])
    named.label = "two particles"
    assert copy.deepcopy(named).label == "two particles" and len(copy.copy(frame)) == 2


def test_derived_classes_may_have_further_attributes():
    class Labelled(gm.Frame):
        def __init__(self, *arrays, label):
            super().__init__(*arrays)
            self.label = label

    class Counting(gm.Simulation):
        def __init__(self, *arguments, **named):
            self.count = 0
            super().__init__(*arguments, **named)

    assert copy.deepcopy(Labelled(PLANE, [5.0, 5.0, 5.0], label="two")).label == "two"
    with Counting(QUIET) as sim:
        sim.count += 1
        assert sim.count == 1
        with pytest.raises(AttributeError, match="the attribute `step` of Counting cannot be set"):
            sim.step = 1


def test_attributes_that_do_not_exist_have_a_hint():
    frame, links = gm.Frame(PLANE, [5.0, 5.0, 5.0]), gm.Links(["b"], [0], [[0, 1]])
    with gm.Simulation(QUIET) as sim:
        for owner, name, message in [
            (sim, "staet", "Simulation has no attribute `staet`; did you mean `state`?"),
            (sim.state, "positon", "State has no attribute `positon`; did you mean `position`?"),
            (frame, "postion", "Frame has no attribute `postion`; did you mean `position`?"),
            (links, "membrs", "Links has no attribute `membrs`; did you mean `members`?"),
            (sim.thermo, "kt", "ThermoValues has no attribute `kt`; did you mean `kT`?"),
        ]:
            with pytest.raises(AttributeError) as e:
                getattr(owner, name)
            assert str(e.value) == message
        assert not hasattr(sim, "_repr_html_") and not hasattr(frame, "__array_interface__")


@pytest.mark.parametrize("wrong, kind, message", [
    (lambda: gm.Simulation(QUIET, device=3), TypeError, '`device` must be a name such as "cpu" .*, not int'),
    (lambda: gm.Pipeline.from_ron(QUIET).check(device=3), TypeError, "`device` must be a name .*, not int"),
    (lambda: gm.Simulation(QUIET, overwrite="no"), TypeError, "`overwrite` must be True or False, not str"),
    (lambda: gm.Simulation(QUIET, name=3), TypeError, "`name` must be a text, not int"),
    (lambda: gm.Simulation(QUIET, name="a/b"), ValueError, "`name` is 'a/b'; it must be a name of files, without folders"),
    (lambda: gm.Simulation(QUIET, name="a\0b"), ValueError, "it must be a name of files"),
    (lambda: gm.Simulation(QUIET, name=".."), ValueError, "it must be a name of files"),
    (lambda: gm.Simulation(QUIET, name=""), ValueError, "`name` is ''; it must be a name of files"),
    (lambda: gm.Simulation(QUIET, name=300 * "x"), ValueError, "`name` has 300 bytes; .* 200 before their extensions"),
    (lambda: gm.Simulation(QUIET, set={1: 2}), TypeError, "`set` has the key 1; keys must be texts"),
    (lambda: gm.Simulation(""), ValueError, "`pipeline` is an empty text"),
    (lambda: gm.Pipeline.from_ron(b"()"), TypeError, "`text` must be RON text, not bytes"),
    (lambda: gm.Map(3), TypeError, "gm.Map takes a dict, not int"),
    (lambda: gm.read(3), TypeError, "`path` must be a file name, not int"),
    (lambda: gm.read("t.gsd", fields=3), TypeError, "`fields` must be a text .*, not int"),
    (lambda: gm.read("t.gsd", format=3), TypeError, "`format` must be the name of a component, not int"),
    (lambda: gm.table(3), TypeError, "`path` must be a file name, not int"),
])
def test_wrong_arguments_are_named(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong()


def test_links_are_checked_when_they_are_set():
    links = gm.Links(["b"], [0], [[0, 1]])
    links.members = [[1, 0]]
    assert gm.Frame(PLANE, [5.0, 5.0, 5.0], bonds=links).bonds.members.dtype == np.uint32
    for name, value, message in [
        ("members", [[0, 1, 2]], r"members has the shape \(1, 3\), not \(n, 2\)"), ("members", [[0, 0.5]], r"members\[0, 1\] is 0.5"),
        ("type", [[0]], r"type has the shape \(1, 1\), not \(n,\)"), ("types", "b", "types must be a list of names"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            setattr(links, name, value)
    links.type = [0, 0]
    with pytest.raises(ValueError, match=r"bonds.type has the shape \(2,\), not \(1,\)"):
        gm.Simulation(QUIET, state=gm.Frame(PLANE, [5.0, 5.0, 5.0], bonds=links))


def test_frames_copy_their_arrays():
    charge, members = np.zeros(2), np.array([[0, 1]], np.uint32)
    frame = gm.Frame(PLANE, [5.0, 5.0, 5.0], arrays={"charge": charge}, bonds=gm.Links(["b"], [0], members))
    charge[0], members[0, 0] = 9.0, 1
    assert frame.arrays["charge"][0] == 0.0 and frame.bonds.members[0, 0] == 0


def test_masked_values_are_errors():
    table, row = np.ma.array(PLANE, mask=[[0, 0, 0], [0, 1, 0]]), np.ma.array([1.0, 2.0], mask=[False, True])
    box, series = [5.0, 5.0, 5.0], np.ma.array(np.arange(9.0), mask=[True] + 8 * [False])
    frame = gm.Frame(np.ma.array(PLANE), box)
    with gm.Simulation(QUIET) as sim:
        for name, use in [
            ("position", lambda: gm.Frame(table, box)), ("position", lambda: gm.Frame([table[0], table[1]], box)),
            ("velocity", lambda: gm.Frame(PLANE, box, velocity=table)), ("mass", lambda: gm.Frame(PLANE, box, mass=row)),
            ("charge", lambda: gm.Frame(PLANE, box, arrays={"charge": row})), ("image", lambda: setattr(frame, "image", table)),
            ("members", lambda: gm.Links(["b"], [0], np.ma.array([[0, 1]], mask=[[0, 1]]))),
            ("velocity", lambda: setattr(sim.state, "velocity", table)), ("an array", lambda: gm.Simulation(QUIET, set={"seed": row})),
            ("`series`", lambda: gm.stats(series)), ("`x`", lambda: gm.stats({"x": series})),
            ("steps", lambda: sim.run(np.ma.array(5, mask=True))), ("period", lambda: sim.every(np.ma.masked, print)),
            ("rows,", lambda: gm.stats(np.arange(9.0), skip=np.ma.array(5, mask=True))),
            ("`step`", lambda: gm.Frame(PLANE, box, step=np.ma.array(3, mask=True))),
        ]:
            with pytest.raises(ValueError, match=f"{name} .*has masked values"):
                use()


def test_masked_answers_of_forces_are_errors():
    class Masked(gm.Force):
        def compute(self, particles):
            return np.ma.masked_greater(particles.position, 0.0)

    pipeline = gm.Pipeline.from_ron(QUIET)
    pipeline.forces.append(Masked())
    with pytest.raises(gm.RunError, match="ValueError: the array of forces has masked values"):
        gm.Simulation(pipeline)


def steps(*names):
    """The step of the checkpoint of each name."""
    found = []
    for name in names:
        with gm.Simulation(QUIET, name=name, resume=True) as sim:
            found.append(sim.step)
    return found


def test_simulations_of_the_same_name_do_not_replace_checkpoints(folder):
    first, second = gm.Simulation(QUIET, name="s"), gm.Simulation(QUIET, name="s")
    third = gm.Simulation(QUIET, name="kT-0.8"), gm.Simulation(QUIET, name="kT-0.8")
    assert first.run(10).save().name == "s.checkpoint"
    with pytest.warns(gm.GalamostWarning, match="another simulation had the name of .*s.checkpoint when this one began, .*s-2.checkpoint"):
        assert second.run(20).save().name == "s-2.checkpoint"
    with pytest.warns(gm.GalamostWarning):
        assert third[1].run(30).save().name == "kT-0.8-2.checkpoint"
    # a run that is resumed would write the checkpoint from which it began
    with pytest.raises(gm.PipelineError, match=r"another Simulation of this program: call its close\(\)"):
        gm.Simulation(QUIET, name="s", resume=True)
    # ends write only the checkpoints of their simulations
    for sim in (second, first, *third):
        sim.close()
    assert steps("s", "s-2", "kT-0.8-2") == [10, 20, 30]
    assert not list(folder.glob("*.old*")) and not list(folder.glob("*.lock"))


def test_a_simulation_without_files_does_not_replace_those_of_others(folder):
    with gm.Simulation(QUIET, name="s") as sim:
        sim.run(10).save()
    with gm.Simulation(QUIET, name="s") as sim:
        # an earlier checkpoint is set aside, as that of a run of the command line
        assert (folder / "s.checkpoint.old").exists()
        sim.run(20).save()
    assert steps("s") == [20]
    assert gm.command("info", folder / "s.checkpoint.old") != gm.command("info", folder / "s.checkpoint")


def test_the_end_of_a_simulation_does_not_replace_the_checkpoint_of_another(folder):
    with gm.Simulation(QUIET, name="s") as sim:
        other = gm.Simulation(QUIET, name="s").run(20)
        sim.run(10).save()
        whole = (folder / "s.checkpoint").read_bytes()
        # this one was never saved
        other.close()
        assert (folder / "s.checkpoint").read_bytes() == whole
        # a run with output files is not renamed
        with pytest.raises(gm.PipelineError, match=r"another Simulation of this program: call its close\(\), .*`name=`"):
            gm.Simulation(LIQUID, name="s")
