"""Simulations: the same bits as the command line, state, sums, callbacks, errors, interrupts, lifetime."""

import copy
import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID, PROGRAM, SHARE


def command(*args):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


CASES = {
    "liquid": LIQUID,
    # an updater, random numbers, a barostat, and forces that depend on velocities
    "dpd": """(
        seed: 3, device: Cpu,
        initial: [ RandomPositions(count: 600, box: [6.0, 6.0, 6.0]), Velocities(kT: 1.0) ],
        forces: [ Dpd(r_cut: 1.0, kT: 1.0, pairs: { ("A", "A"): (a: 25.0, sigma: 3.0) }) ],
        integrators: [ GrootWarren() ],
        updaters: [ ZeroMomentum(every: 25) ],
        analyzers: [ Thermo(every: 20, file: "thermo.csv") ],
        checkpoint: (every: 100),
        stages: [ (steps: 300, dt: 0.02) ],
    )""",
    "npt": LIQUID.replace("NoseHoover(kT: 1.0, tau: 0.5)", "MtkNpt(kT: 1.0, tau: 0.5, pressure: 1.0, tau_p: 2.0)"),
    "double": LIQUID.replace("seed: 7", "seed: 7, precision: Double"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chunks", [[300], [1, 7, 122, 10, 60, 100], [130, 170]])
def test_files_are_those_of_the_command_line(case, chunks, folder):
    for name in ("command", "python"):
        (folder / name).mkdir()
        (folder / name / "sim.ron").write_text(CASES[case])
    command("--pipeline", folder / "command/sim.ron", "--quiet")
    with gm.Simulation(folder / "python/sim.ron") as sim:
        assert sim.remaining == 300
        for steps in chunks:
            sim.run(steps)
            assert sim.thermo.kT > 0  # looking changes nothing
            sim.state.position
        assert (sim.step, sim.remaining) == (300, 0)
    expected = (folder / "command/thermo.csv").read_bytes()
    assert (folder / "python/thermo.csv").read_bytes() == expected
    assert len(expected.splitlines()) == 32 if case != "dpd" else 17
    if case == "dpd":
        assert "checkpoint" in command("info", folder / "python/sim.checkpoint").stdout.lower()


def test_values_are_those_of_the_table(liquid):
    sim = gm.Simulation(liquid)
    rows = []
    sim.every(50, lambda s: rows.append((s.step, s.thermo.kT, s.thermo.pressure, s.forces["LennardJones"].energy)))
    sim.run()
    sim.close()
    table = gm.table("thermo.csv")
    for step, kt, pressure, energy in rows:
        row = list(table["step"]).index(step)
        for name, value in (("kT", kt), ("pressure", pressure), ("LennardJones", energy)):
            written = table[name][row]
            assert written == pytest.approx(value, rel=1e-7), (step, name)
    assert [r[0] for r in rows] == [50, 100, 150, 200, 250, 300]


def test_resume_continues_bit_for_bit(folder):
    text = LIQUID.replace("stages:", "checkpoint: (every: 1000),\n    stages:")
    for name in ("whole", "parts"):
        (folder / name).mkdir()
        (folder / name / "sim.ron").write_text(text)
    gm.Simulation(folder / "whole/sim.ron").run().close()
    gm.Simulation(folder / "parts/sim.ron").run(140).close()
    with gm.Simulation(folder / "parts/sim.ron", resume=True) as sim:
        assert (sim.step, sim.remaining) == (140, 160)
        sim.run()
    assert (folder / "parts/thermo.csv").read_bytes() == (folder / "whole/thermo.csv").read_bytes()
    with pytest.raises(gm.PipelineError, match="no checkpoint to resume from"):
        gm.Simulation(LIQUID, resume=True)


def test_the_state_is_in_tag_order_and_complete():
    sim = gm.Simulation(LIQUID)
    first = sim.state.copy()
    assert first.position.shape == (500, 3) and first.position.dtype == np.float64
    assert (sim.n, len(sim.state), sim.state.types, sim.state.dimensions) == (500, 500, ("A",), 3)
    assert np.all(np.abs(first.position) <= 0.5 * first.box) and np.all(first.mass == 1)
    sim.run(100)
    # particles keep their rows: in 0.2 time units at kT 1 none moves by more than one diameter
    moved = np.linalg.norm(sim.state.unwrapped - first.unwrapped, axis=1)
    assert 0.01 < moved.mean() and moved.max() < 1.0
    thermo = sim.thermo
    kinetic = 0.5 * (sim.state.mass * (sim.state.velocity**2).sum(axis=1)).sum()
    assert kinetic == pytest.approx(thermo.kinetic, rel=1e-6)
    assert thermo.kT == pytest.approx(2 * kinetic / (3 * 499), rel=1e-6)
    assert np.abs(sim.state.force.sum(axis=0)).max() < 1e-2 * np.abs(sim.state.force).max()
    # the virial pressure from kinetic energy and virial
    virial = sim.forces["LennardJones"].virial
    trace = 2 * thermo.kinetic + virial[0] + virial[3] + virial[5]
    assert trace / (3 * thermo.volume) == pytest.approx(thermo.pressure, rel=1e-9)
    sim.close()


def test_setting_the_state_is_checked_and_computes_forces():
    sim = gm.Simulation(LIQUID)
    sim.run(60)
    state, before = sim.state.copy(), sim.thermo
    sim.state.velocity = 2 * state.velocity
    assert sim.thermo.kinetic == pytest.approx(4 * before.kinetic, rel=1e-6)
    assert sim.thermo.potential == pytest.approx(before.potential, rel=1e-6)
    sim.state.velocity = state.velocity
    # all particles moved by a vector: the same energy
    shifted = state.position + [0.3, -0.2, 0.1]
    shifted -= state.box * np.floor(shifted / state.box + 0.5)
    sim.state.position = shifted
    np.testing.assert_allclose(sim.state.position, shifted, atol=1e-6)
    assert sim.thermo.potential == pytest.approx(before.potential, rel=1e-4)
    sim.run(20)
    step, state_before = sim.step, sim.state.copy()
    outside = shifted.copy()
    outside[3, 1] = 100.0
    with pytest.raises(ValueError, match="particle 3 is outside the box") as e:
        sim.state.position = outside
    assert isinstance(e.value, gm.PipelineError) and len(e.value.errors) == 1
    nan = state.velocity.copy()
    nan[7, 0] = np.nan
    with pytest.raises(ValueError, match="particle 7: velocity x is NaN"):
        sim.state.velocity = nan
    # nothing was taken
    np.testing.assert_array_equal(sim.state.position, state_before.position)
    np.testing.assert_array_equal(sim.state.velocity, state_before.velocity)
    with pytest.raises(ValueError, match="shape"):
        sim.state.position = shifted[:10]
    with pytest.raises(TypeError, match="type"):
        sim.state.image = np.zeros((500, 3))
    with pytest.raises(AttributeError, match="cannot be set"):
        sim.state.mass = state.mass
    with pytest.raises(ValueError, match="read-only"):
        sim.state.position[0] = 0
    sim.run(10)
    assert sim.step == step + 10
    sim.close()


@pytest.mark.parametrize("precision", ["Single", "Mixed", "Double"])
def test_setting_the_same_state_changes_nothing_but_rounding(precision):
    text = LIQUID.replace("seed: 7", f"seed: 7, precision: {precision}").replace("NoseHoover(kT: 1.0, tau: 0.5)", "VelocityVerlet()")
    sims = [gm.Simulation(text.replace("thermo.csv", f"{name}.csv"), name=name) for name in ("a", "b")]
    for sim in sims:
        sim.run(30)
    sims[0].state.position = sims[0].state.position
    sims[0].state.velocity = sims[0].state.velocity
    for sim in sims:
        sim.run(20)
    a, b = (s.state.unwrapped for s in sims)
    # the sums of forces have another order, which 20 steps of 0.002 amplify little
    assert np.abs(a - b).max() < (1e-10 if precision == "Double" else 1e-4)
    for sim in sims:
        sim.close()


def test_a_frame_is_an_initial_state():
    sim = gm.Simulation(LIQUID)
    frame = sim.state.copy()
    sim.close()
    text = LIQUID.replace("initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.8), Velocities(kT: 1.0) ]", "initial: []")
    with gm.Simulation(text, state=frame) as again:
        np.testing.assert_array_equal(again.state.position, frame.position)
        np.testing.assert_array_equal(again.state.velocity, frame.velocity)
    with pytest.raises(gm.PipelineError, match="`initial` is empty"):
        gm.Simulation(text)


def test_another_frame_is_no_resumed_run():
    with gm.Simulation(LIQUID) as sim:
        frame = sim.state.copy()
    text = LIQUID.replace("initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.8), Velocities(kT: 1.0) ]", "initial: []")
    with gm.Simulation(text, state=frame, name="given") as sim:
        sim.run(20).save()
    with gm.Simulation(text, state=frame, name="given", resume=True) as sim:
        assert sim.step == 20
    frame.velocity[3, 1] += 0.5
    with pytest.raises(gm.PipelineError, match="initial state has other contents"):
        gm.Simulation(text, state=frame, name="given", resume=True)


@pytest.mark.parametrize("name", [None, "named"])
def test_a_change_of_the_working_directory_moves_no_files(name, liquid, folder):
    (folder / "sub").mkdir()
    sim = gm.Simulation(LIQUID if name else "liquid.ron", name=name).run(20)
    os.chdir("sub")
    try:
        assert sim.save().samefile(folder / f"{name or 'liquid'}.checkpoint")
        sim.close()
    finally:
        os.chdir(folder)
    assert not list((folder / "sub").iterdir()) and not list(folder.glob("*.lock"))
    assert name or (folder / "liquid.run.json").exists()


def test_errors_have_text_file_line_and_column(folder):
    wrong = LIQUID.replace("sigma: 1.0", "sigma: -1.0").replace("NoseHoover(kT", "NoseHover(kT")
    (folder / "wrong.ron").write_text(wrong)
    done = subprocess.run([PROGRAM, "--pipeline", "wrong.ron"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    with pytest.raises(gm.PipelineError) as e:
        gm.Simulation("wrong.ron")
    assert str(e.value) == done.stderr.strip()
    found = [(d.file, d.line, d.column) for d in e.value.errors]
    assert [(f, line) for f, line, _ in found] == [("wrong.ron", 5), ("wrong.ron", 6)]
    assert wrong.splitlines()[5][found[1][2] - 1:].startswith("NoseHover")
    assert e.value.errors[0].component == "LennardJones"
    with pytest.raises(gm.PipelineError, match="not a device"):
        gm.Simulation(LIQUID, device="tpu")
    with pytest.raises(gm.PipelineError, match="no field `foo`"):
        gm.Simulation(LIQUID, set={"foo.bar": 1})


def test_a_fault_of_a_run_is_an_exception_and_ends_it():
    sim = gm.Simulation(LIQUID, set={"stages[0].dt": 5.0, "integrators[0].tau": 50.0})
    with pytest.raises(gm.RunError, match="step .*particles overlap, or dt is too long"):
        sim.run()
    with pytest.raises(gm.RunError, match="the run failed at step"):
        sim.run(1)
    sim.close()


def test_warnings_are_python_warnings():
    text = LIQUID.replace(", Velocities(kT: 1.0)", "")
    with pytest.warns(gm.GalamostWarning, match="cannot heat particles at rest"):
        gm.Simulation(text).close()


def test_overrides_and_names():
    with gm.Simulation(LIQUID, set={"stages[1].steps": 20, "integrators[0].kT": "2.0"}) as sim:
        assert sim.remaining == 150
        assert "500 particles at step 0 on cpu" in repr(sim)
    assert repr(sim) == "<Simulation, closed>"


def test_earlier_files_are_set_aside(liquid, folder):
    gm.Simulation(liquid).run().close()
    first = (folder / "thermo.csv").read_bytes()
    gm.Simulation(liquid).run(50).close()
    assert (folder / "thermo.csv.old").read_bytes() == first
    gm.Simulation(liquid, overwrite=True).run(50).close()
    assert not (folder / "thermo.csv.old.2").exists()
    assert '"status": "done"' in (folder / "liquid.run.json").read_text()


def test_a_run_is_locked(liquid):
    with gm.Simulation(liquid):
        with pytest.raises(gm.Error, match="another Simulation of this program"):
            gm.Simulation(liquid)
    gm.Simulation(liquid).close()


def test_callbacks_and_their_exceptions():
    sim, seen = gm.Simulation(LIQUID.replace("thermo.csv", "t.parquet")), []

    @sim.every(20)
    def note(s):
        seen.append(s.step)

    @sim.every(50)
    def fail(s):
        if s.step == 100:
            raise KeyError("from a callback")

    with pytest.raises(KeyError, match="from a callback"):
        sim.run(200)
    assert sim.step == 100 and seen == [20, 40, 60, 80, 100]
    # files are complete up to the exception
    assert len(gm.table("t.parquet")) == 11
    sim.remove(fail)
    sim.run(30)
    assert sim.step == 130 and seen[-1] == 120

    @sim.every(1)
    def nested(s):
        s.run(1)

    with pytest.raises(gm.RunError, match="callback"):
        sim.run(1)
    sim.close()
    with pytest.raises(ValueError):
        sim.every(0)


def test_interrupt_stops_after_a_step_and_leaves_a_usable_simulation(folder):
    (folder / "cut").mkdir()
    (folder / "whole").mkdir()
    text = LIQUID.replace("steps: 170", "steps: 100_000_000")
    for name in ("cut", "whole"):
        (folder / name / "sim.ron").write_text(text)
    sim = gm.Simulation(folder / "cut/sim.ron")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    # the background jobs of a shell ignore it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            sim.run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 20
    step = sim.step
    assert 0 < step < 100_000_000
    assert sim.thermo.kT > 0 and np.isfinite(sim.state.position).all()
    sim.run(50)
    assert sim.step == step + 50
    end, position = sim.step, sim.state.unwrapped
    sim.close()
    with gm.Simulation(folder / "whole/sim.ron") as whole:
        whole.run(end)
        np.testing.assert_array_equal(whole.state.unwrapped, position)
    assert (folder / "cut/thermo.csv").read_bytes() == (folder / "whole/thermo.csv").read_bytes()


def test_what_another_thread_reads_just_before_a_run_is_not_kept():
    sim = gm.Simulation(LIQUID)
    before, call = sim.state.position, sim._call

    def reading(method, *args):
        if method == "advance":
            sim._frame()
        return call(method, *args)

    sim._call = reading
    sim.run(3)
    assert not np.array_equal(sim.state.position, before)


def test_several_simulations_at_once(folder):
    texts = {name: LIQUID.replace("seed: 7", f"seed: {seed}").replace("thermo", name) for seed, name in enumerate("abc")}
    alone = {}
    for name, text in texts.items():
        with gm.Simulation(text, name=name) as sim:
            sim.run(80)
            alone[name] = sim.state.unwrapped
    sims = {name: gm.Simulation(text, name=name) for name, text in texts.items()}
    threads = [threading.Thread(target=s.run, args=(80,)) for s in sims.values()]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for name, sim in sims.items():
        np.testing.assert_array_equal(sim.state.unwrapped, alone[name])
        sim.close()


def test_use_after_close():
    sim = gm.Simulation(LIQUID)
    state, frame = sim.state, sim.state.copy()
    sim.run(10)
    sim.close()
    sim.close()
    assert sim.closed and len(frame) == 500
    for use in (lambda: sim.run(1), lambda: sim.step, lambda: state.position, lambda: sim.thermo, lambda: sim.forces,
                sim.save, lambda: setattr(state, "velocity", frame.velocity), lambda: state.force, sim.__enter__,
                lambda: sim.every(1, print)):
        with pytest.raises(gm.RunError, match="closed"):
            use()


def test_a_copy_does_not_close_the_original():
    with gm.Simulation(LIQUID) as sim:
        for use in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="a simulation cannot be copied or pickled"):
                use(sim)
        gc.collect()
        assert sim.run(1).step == 1


def test_a_simulation_that_is_forgotten_ends(folder):
    sim = gm.Simulation(LIQUID)
    sim.run(50)
    dead = weakref.ref(sim)
    del sim
    gc.collect()
    assert dead() is None
    rows = (folder / "thermo.csv").read_text().splitlines()
    assert rows[-1].startswith("50,")


def test_save_writes_a_checkpoint(liquid):
    with gm.Simulation(liquid) as sim:
        sim.run(40)
        file = sim.save()
    assert file.name == "liquid.checkpoint" and file.exists()
    with gm.Simulation(liquid, resume=True) as sim:
        assert sim.step == 40


def test_the_end_writes_no_checkpoint_twice(liquid, folder):
    with gm.Simulation(liquid) as sim:
        first = sim.run(20).save().read_bytes()
        second = sim.run(20).save().read_bytes()
        assert first != second
    assert (folder / "liquid.checkpoint").read_bytes() == second
    assert (folder / "liquid.checkpoint.1").read_bytes() == first and not (folder / "liquid.checkpoint.2").exists()
    # a state that the program has changed since is saved, as are further steps
    with gm.Simulation(liquid, overwrite=True) as sim:
        sim.run(20).save()
        sim.state.velocity = velocity = 0.5 * sim.state.velocity
    with gm.Simulation(liquid, resume=True) as sim:
        np.testing.assert_allclose(sim.state.velocity, velocity, rtol=1e-6)
        sim.run(20).save()
        sim.run(1)
    with gm.Simulation(liquid, resume=True) as sim:
        assert sim.step == 41
        # without a step
        sim.state.velocity = velocity = 0.5 * sim.state.velocity
    with gm.Simulation(liquid, resume=True) as sim:
        np.testing.assert_allclose(sim.state.velocity, velocity, rtol=1e-6)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_kernels_of_a_gpu_are_driven_alike(folder):
    """On the emulated device: the bits of the command line, and a new state."""
    text = LIQUID.replace("cells: [5, 5, 5]", "cells: [4, 4, 4]").replace("steps: 130", "steps: 12")
    text = text.replace("steps: 170", "steps: 18")
    for name in ("command", "python"):
        (folder / name).mkdir()
        (folder / name / "sim.ron").write_text(text)
    command("--pipeline", folder / "command/sim.ron", "--quiet", "--device", "emulated")
    with gm.Simulation(folder / "python/sim.ron", device="emulated") as sim:
        for steps in (5, 7, 11, 7):
            sim.run(steps)
            assert sim.thermo.kT > 0 and sim.state.position.shape == (256, 3)
    assert (folder / "python/thermo.csv").read_bytes() == (folder / "command/thermo.csv").read_bytes()
    with gm.Simulation(text, device="emulated") as sim, gm.Simulation(text.replace("thermo", "cpu"), name="cpu") as cpu:
        sim.run(10)
        state = sim.state.copy()
        for s in (sim, cpu):
            s.state.position, s.state.velocity, s.state.image = state.position, -state.velocity, state.image
        np.testing.assert_allclose(sim.state.force, cpu.state.force, atol=2e-3)
        assert sim.thermo.potential == pytest.approx(cpu.thermo.potential, rel=1e-5)
        assert sim.thermo.kinetic == pytest.approx(cpu.thermo.kinetic, rel=1e-6)
        sim.run(5)


def test_samplers_are_refused():
    shutil.copy(next((SHARE / "examples").glob("*rosenbluth*.ron")), "chains.ron")
    with pytest.raises(gm.RunError, match="samplers"):
        gm.Simulation("chains.ron")


LIFETIMES = """
import gc, os, pathlib, sys
import galamost as gm

def memory():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def start_and_end(times):
    for _ in range(times):
        with gm.Simulation(sys.argv[1]) as sim:
            sim.run(2)
            sim.state.position, sim.thermo
    gc.collect()

start_and_end(200)
before = memory()
start_and_end(1000)
print(before, memory(), len(os.listdir("/proc/self/task")))
"""


@pytest.mark.seconds
def test_a_thousand_simulations_leave_no_memory():
    text = LIQUID.replace("cells: [5, 5, 5]", "cells: [3, 3, 3]").replace("r_cut: 2.5", "r_cut: 1.5")
    text = text.replace('analyzers: [ Thermo(every: 10, file: "thermo.csv") ],', "")
    done = subprocess.run([sys.executable, "-c", LIFETIMES, text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after, threads = map(int, done.stdout.split())
    print(f"resident memory: {before / 1e6:.2f} MB before, {after / 1e6:.2f} MB after")
    assert after < 1.01 * before
    # the interpreter, threads of NumPy, and the threads of the CPU's pool
    assert threads <= 1 + 2 * (os.cpu_count() or 1)
