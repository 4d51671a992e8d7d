"""Wrong arguments, several threads, forked processes."""

import pickle
import subprocess
import sys
import threading

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID


@pytest.mark.parametrize("value, kind", [
    (2**31, np.int64), (-(2**31) - 1, np.int64), (2**40, np.int64), (2**32 + 1, np.int64), (2**32 - 1, np.uint32), (2**64 - 1, np.uint64),
])
def test_integers_that_do_not_fit_are_errors(value, kind):
    wrong = np.zeros((500, 3), kind)
    wrong[3, 1] = value
    with gm.Simulation(LIQUID) as sim:
        before = sim.state.image
        with pytest.raises(ValueError, match=rf"image\[3, 1\] is {value}; it must be in -2147483648…2147483647"):
            sim.state.image = wrong
        np.testing.assert_array_equal(sim.state.image, before)
        largest = wrong.copy()
        largest[3, 1] = 2**31 - 1
        sim.state.image = largest
        np.testing.assert_array_equal(sim.state.image, largest)
    with pytest.raises(ValueError, match=rf"image\[3, 1\] is {value}"):
        gm.Frame(np.zeros((500, 3)), [5.0, 5.0, 5.0], image=wrong)
    frame = gm.Frame(np.zeros((4, 3)), [5.0, 5.0, 5.0], arrays={"molecule": wrong[:4, 1]})
    with pytest.raises(ValueError, match=rf"molecule\[3\] is {value}"):
        gm.Simulation(LIQUID, state=frame)
    frame.arrays.clear()
    if not 0 <= value < 2**32:
        frame.type = wrong[:4, 1]
        with pytest.raises(ValueError, match=rf"type\[3\] is {value}"):
            gm.Simulation(LIQUID, state=frame)
        with pytest.raises(ValueError, match=rf"members\[0, 1\] is {value}"):
            gm.Links(["b"], [0], wrong[3:4, :2])


def test_wrong_arguments_are_errors_of_the_call():
    sim, seen = gm.Simulation(LIQUID), []
    for wrong, message in [
        (lambda: sim.every(10, 5), "a callback must be a function"),
        (lambda: sim.every(10)(5), "a callback must be a function"),
        (lambda: sim.every(1.5, seen.append), "the period must be whole"),
        (lambda: sim.every("a", seen.append), "the period must be whole"),
        (lambda: sim.every(True, seen.append), "the period must be whole"),
        (lambda: sim.every(seen.append), "the period must be whole"),
        (lambda: sim.run(True), "the number of steps must be whole, not True"),
        (lambda: sim.run(np.float64(2.5)), "the number of steps must be whole"),
        (lambda: sim.run("10"), "the number of steps must be whole"),
        (lambda: gm.Simulation(LIQUID, set="stages[0].dt=1"), "`set` must be a dict .*, not str"),
        (lambda: gm.Simulation(LIQUID, state=5), "`state` must be a Frame or .*, not int"),
        (lambda: gm.Simulation(5), "`pipeline` must be a file name, .*, not int"),
    ]:
        with pytest.raises(TypeError, match=message):
            wrong()
    for steps in (10**30, 2**63, 1e30):
        with pytest.raises(ValueError, match="the run would end beyond step 9223372036854775807"):
            sim.run(steps)
    with pytest.raises(ValueError, match="negative"):
        sim.run(-1)
    sim.every(np.int64(2), lambda s: seen.append(s.step))
    assert sim.run(np.int64(3)).run(np.uint8(1)).run(2.0).step == 6
    assert sim.run(np.float64(1.0)).run(np.float32(1.0)).step == 8
    assert seen == [2, 4, 6, 8]
    sim.close()


@pytest.mark.parametrize("wrong, kind, message", [
    ({"dimensions": 2.5}, TypeError, "`dimensions` must be whole, not 2.5"), ({"step": 1.5}, TypeError, "`step` must be whole, not 1.5"),
    ({"type": [1.5, 0]}, ValueError, r"type\[0\] is 1.5; it must be a whole number"),
    ({"image": [[0, 0, 0], [0, 0.5, 0]]}, ValueError, r"image\[1, 1\] is 0.5; it must be a whole number"),
])
def test_frames_do_not_round(wrong, kind, message):
    with pytest.raises(kind, match=message):
        gm.Frame(np.zeros((2, 3)), [5.0, 5.0, 5.0], **wrong)
    frame = gm.Frame(np.zeros((2, 3)), [5.0, 5.0, 5.0], types=["A", "B"], type=[1.0, 0.0], step=np.float64(4.0), dimensions=np.int64(3))
    assert (frame.type.tolist(), frame.step, frame.dimensions) == ([1, 0], 4, 3)


def test_frames_are_checked():
    x = np.zeros((2, 3))
    with pytest.raises(ValueError, match="types has 'A' twice"):
        gm.Frame(x, [5.0, 5.0, 5.0], types=["A", "A"], type=[0, 1])
    frame = gm.Frame(x, [5.0, 5.0, 5.0])
    frame.types = ["A", "B", "A"]
    with pytest.raises(ValueError, match="types has 'A' twice"):
        gm.Simulation(LIQUID, state=frame)
    # a third length of 0 makes the system two-dimensional, as in pipelines
    assert gm.Frame(x, [10, 10, 0]).dimensions == 2 and gm.Frame(x, [10, 10, 5]).dimensions == 3
    flat = gm.Frame([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [10, 10, 0])
    with gm.Simulation(gm.Pipeline(device="Cpu", integrators=[gm.VelocityVerlet()], stages=[{"steps": 1, "dt": 0.001}]), state=flat) as sim:
        assert sim.run().state.dimensions == 2


def test_links_of_frames():
    x = [[-1.5, 0.0, 0.0], [-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]
    given = {"types": ["b"], "type": [0, 0], "members": [[0, 1], [1, 2]]}
    frame = gm.Frame(x, [9.0, 9.0, 9.0], bonds=given, angles={"types": ["a"], "type": [0], "members": [[0, 1, 2]]})
    assert isinstance(frame.bonds, gm.Links) and frame.bonds.members.tolist() == given["members"]
    assert frame.angles.members.shape == (1, 3) and len(frame.dihedrals) == 0
    frame.bonds = None
    assert len(frame.bonds) == 0
    frame.bonds = gm.Links(**given)
    assert len(frame.bonds) == 2
    for wrong, found in ((given["members"], "list"), ({"types": ["b"], "group": []}, "a dict of 'types', 'group'")):
        with pytest.raises(TypeError, match=rf"`bonds` must be gm.Links\(types, type, members, width=2\) or a dict .*, not {found}"):
            frame.bonds = wrong
    with pytest.raises(ValueError, match="`angles` have 3 members each, not 2"):
        frame.angles = gm.Links(**given)


def test_arrays_of_the_engine_have_its_numbers():
    text = LIQUID.replace("device: Cpu", "device: Cpu, neighbors: (only: SameMolecule)")
    text = text.replace("initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.8), Velocities(kT: 1.0) ]", "initial: []")
    x = [[-0.6, 0.0, 0.0], [0.6, 0.0, 0.0], [0.0, 1.2, 0.0]]
    frame = gm.Frame(x, [9.0, 9.0, 9.0], arrays={"molecule": np.array([0.0, 0.0, 1.0]), "charge": np.array([1, -1, 0])})
    with gm.Simulation(text, state=frame) as sim:
        # the third particle is another molecule
        force = sim.state.force
        assert np.abs(force[:2, 0]).min() > 0.1 and not force[2].any()
        assert sim.state.copy().arrays["molecule"].tolist() == [0, 0, 1]
    frame.arrays["molecule"] = np.array([0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match=r"molecule\[1\] is 0.5; it must be a whole number"):
        gm.Simulation(text, state=frame)


def test_a_second_simulation_of_the_same_name():
    first = gm.Simulation(LIQUID)
    with pytest.raises(gm.PipelineError, match=r"another Simulation of this program: call its close\(\), or use `with`; .*`name=`") as e:
        gm.Simulation(LIQUID)
    assert "stop it" not in str(e.value)
    with pytest.raises(gm.PipelineError, match=r"`thermo.csv` is in use by another Simulation of this program: .* choose another file"):
        gm.Simulation(LIQUID, name="other")
    first.run().close()
    gm.Simulation(LIQUID).close()


def test_changed_settings_are_resumed_on_demand(folder):
    with gm.Simulation(LIQUID, name="r") as sim:
        sim.run(20).save()
    warmer = {"set": {"integrators[0].kT": 1.5}, "name": "r"}
    with pytest.raises(gm.PipelineError, match='resume="changed" accepts it') as e:
        gm.Simulation(LIQUID, resume=True, **warmer)
    assert "--" not in str(e.value) and "--" not in e.value.errors[0].message
    for wrong in ("auto", "Changed", ""):
        with pytest.raises(ValueError, match=f"`resume` must be True, False or \"changed\", not '{wrong}'"):
            gm.Simulation(LIQUID, resume=wrong, **warmer)
    with pytest.warns(gm.GalamostWarning, match="the results will differ"):
        sim = gm.Simulation(LIQUID, resume="changed", **warmer)
    assert sim.step == 20 and sim.run(5).step == 25
    sim.close()
    # another system is refused in any case
    with pytest.raises(gm.PipelineError, match="number of particles"):
        gm.Simulation(LIQUID.replace("[5, 5, 5]", "[4, 4, 4]"), resume="changed", name="r")


def test_messages_name_arguments_of_the_package(folder):
    (folder / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(gm.PipelineError, match="choose one with `format=`"):
        gm.read("t.csv")
    with pytest.raises(gm.PipelineError) as e:
        gm.Simulation(LIQUID, set={"stages[0].dt": -1})
    assert "`set` stages[0].dt=-1" in str(e.value) and "--set" not in str(e.value) + e.value.errors[0].file


def test_errors_survive_pickle():
    with pytest.raises(gm.PipelineError) as e:
        gm.Simulation(LIQUID.replace("sigma: 1.0", "sigma: -1.0"))
    copy = pickle.loads(pickle.dumps(e.value))
    assert type(copy) is gm.PipelineError and str(copy) == str(e.value) and copy.errors == e.value.errors
    copy = pickle.loads(pickle.dumps(gm.RunError("text", "message", ["note"])))
    assert type(copy) is gm.RunError and (str(copy), copy.message, copy.notes) == ("text", "message", ["note"])


def test_one_run_at_a_time():
    sim, in_callback, released = gm.Simulation(LIQUID), threading.Event(), threading.Event()

    @sim.every(10)
    def wait(s):
        in_callback.set()
        assert released.wait(60)

    thread = threading.Thread(target=sim.run, args=(20,))
    thread.start()
    try:
        assert in_callback.wait(60)
        for use in (lambda: sim.run(1), sim.close):
            with pytest.raises(gm.RunError, match="another thread is using the simulation"):
                use()
        assert not sim.closed
    finally:
        released.set()
        thread.join(60)
    assert sim.step == 20 and sim.run(1).step == 21
    # a callback may close its simulation
    sim.remove(wait)
    sim.every(1, lambda s: s.close())
    with pytest.raises(gm.RunError, match="closed"):
        sim.run(5)
    assert sim.closed


FORK = """
import gc, multiprocessing, sys
import galamost as gm

text, before, job = sys.argv[1:]
sim = None

def work(job):
    global sim
    if job == "run":
        with gm.Simulation(text) as own:
            return own.run(2).step
    if job == "check":
        return gm.Pipeline.from_ron(text).check()
    if job == "step":
        return sim.step
    if job == "close":
        return sim.close()
    if job == "forget":
        sim = None
        gc.collect()
        return "forgotten"

if before == "pipeline":
    gm.Pipeline.from_ron(text)
if before == "check":
    gm.Pipeline.from_ron(text).check()
if before == "run":
    sim = gm.Simulation(text)
    sim.run(2)
with multiprocessing.get_context("fork").Pool(1) as pool:
    try:
        print("returned", pool.apply_async(work, (job,)).get(timeout=60))
    except gm.RunError as e:
        print("RunError", isinstance(e, RuntimeError), e)
if sim is not None:
    # the parent is as before
    assert sim.run(3).step == 5
    sim.close()
"""


@pytest.mark.parametrize("before, job, expected", [
    ("nothing", "run", "returned 2"), ("pipeline", "run", "returned 2"), ("pipeline", "check", "returned 500"),
    ("check", "run", "RunError"), ("check", "check", "RunError"), ("run", "run", "RunError"),
    ("run", "check", "RunError"), ("run", "step", "RunError"), ("run", "close", "RunError"),
    ("run", "forget", "returned forgotten"),
])
def test_forked_processes(before, job, expected):
    text = LIQUID.replace('analyzers: [ Thermo(every: 10, file: "thermo.csv") ],', "")
    done = subprocess.run([sys.executable, "-c", FORK, text, before, job], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.strip()
    assert shown.startswith(expected), shown
    if expected == "RunError":
        assert shown.startswith("RunError True this process was forked") and 'get_context("spawn")' in shown


def test_arrays_are_not_reshaped():
    x = np.zeros((4, 3))
    with pytest.raises(ValueError, match=r"position has the shape \(3, 4\), not \(n, 3\)"):
        gm.Frame(x.T, [10, 10, 10])
    with pytest.raises(ValueError, match=r"members has the shape \(2, 3\), not \(n, 2\); give `width`"):
        gm.Links(types=["x"], type=[0] * 3, members=np.array([[0, 1, 2], [1, 2, 3]]))
    # a list of numbers, as files have it
    assert gm.Frame(x.ravel(), [10, 10, 10]).position.shape == (4, 3)
    assert gm.Links(types=["x"], type=[0, 0], members=[0, 1, 1, 2]).members.tolist() == [[0, 1], [1, 2]]


def test_names_with_dots_are_different_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pipeline = gm.Pipeline(
        seed=1, initial=[gm.Lattice(lattice="Sc", cells=[5, 5, 5], density=0.5), gm.Velocities(kT=1.0)],
        integrators=[gm.VelocityVerlet()], checkpoint={"every": 10}, stages=[{"steps": 100, "dt": 0.01}])
    for name, steps in [("kT-0.8", 10), ("kT-0.9", 20)]:
        with gm.Simulation(pipeline, device="cpu", name=name) as sim:
            sim.run(steps)
    for name, steps in [("kT-0.8", 10), ("kT-0.9", 20)]:
        assert (tmp_path / f"{name}.checkpoint").exists()
        with gm.Simulation(pipeline, device="cpu", name=name, resume=True) as sim:
            assert sim.step == steps
