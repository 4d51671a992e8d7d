"""Particle files, tables, statistics and pictures."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import warnings

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID, PROGRAM

TRAJECTORY = LIQUID.replace("analyzers: [", 'analyzers: [ GsdTrajectory(every: 100, file: "t.gsd"),')


def gsd_writer():
    """The component that writes GSD files."""
    return next(n for n, ds in gm._plugins.descriptions().items()
                if any(d["kind"] == "Analyzer" and "gsd" in f["extensions"] for d in ds for f in d["fields"]))


def test_frames_of_a_trajectory():
    sim = gm.Simulation(TRAJECTORY.replace("GsdTrajectory", gsd_writer()))
    states = [sim.state.copy()]
    sim.every(100, lambda s: states.append(s.state.copy()))
    sim.run().close()
    frames = gm.read("t.gsd")
    assert len(frames) == 4 and [f.step for f in frames] == [0, 100, 200, 300]
    for frame, state in zip(frames, states):
        np.testing.assert_allclose(frame.unwrapped, state.unwrapped, atol=1e-5)
        assert frame.types == ["A"]
    np.testing.assert_array_equal(frames[-1].position, frames[3].position)
    assert len(frames[1:3]) == 2
    for wrong in (4, -5):
        with pytest.raises(IndexError, match=f"no frame {wrong}: the file has 4 frames"):
            frames[wrong]
    with pytest.raises(gm.PipelineError, match="cannot be read"):
        gm.read("missing.gsd")
    with open("wrong.gsd", "w", encoding="utf-8") as f:
        f.write("x")
    with pytest.raises(gm.PipelineError, match="wrong.gsd"):
        gm.read("wrong.gsd")
    with pytest.raises(gm.PipelineError, match="known extensions"):
        gm.read(__file__)


def test_tables_and_statistics_are_those_of_the_command_line(monkeypatch):
    with gm.Simulation(LIQUID) as sim:
        sim.run()
    table = gm.table("thermo.csv")
    assert list(table["step"]) == list(range(0, 301, 10))
    out = subprocess.run([PROGRAM, "stats", "thermo.csv", "--skip", "5", "--json"], capture_output=True, text=True, check=True)
    theirs = {c["column"]: c for c in json.loads(out.stdout)}
    ours = gm.stats("thermo.csv", skip=5)
    assert set(ours) >= {"kT", "pressure"}
    for name in ("kT", "pressure"):
        assert ours[name].mean == pytest.approx(theirs[name]["mean"], rel=1e-12)
        assert ours[name].error == pytest.approx(theirs[name]["error"], rel=1e-12)
    assert gm.stats(table["kT"], skip=5).mean == ours["kT"].mean
    assert gm.stats([1.0, 2.0]) is None
    assert "±" in str(ours["kT"])
    with pytest.raises(gm.PipelineError):
        gm.table("missing.csv")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(gm.table("thermo.csv"), dict)


def test_warnings_of_tables_are_python_warnings(tmp_path):
    rows = "".join(f"{k},{k * 7 % 5},{'x' if k < 3 else k}\n" for k in range(40))
    path = tmp_path / "t.csv"
    path.write_text("step,L (length),b\n" + rows + "40,1,4", encoding="utf-8")
    with pytest.warns(gm.GalamostWarning, match="the last line has no line break and was left out") as seen:
        table = gm.table(path)
    assert seen[0].filename == __file__
    assert list(table["step"]) == list(range(40)) and "L (length)" not in table
    with pytest.warns(gm.GalamostWarning) as seen:
        found = gm.stats(path)
    text = "\n".join(str(w.message) for w in seen)
    assert "the last line has no line break" in text and "column left out: `b` has 3 rows with text" in text
    assert list(found) == ["L"] and found["L"].rows <= 40
    assert all(w.filename == __file__ for w in seen)


def test_statistics_of_independent_numbers():
    x = np.random.default_rng(1).normal(3.0, 2.0, 4096)
    s = gm.stats(x, skip=0)
    # the error of the mean is 2/64; that of its estimate a few ten percent
    assert s.mean == pytest.approx(x.mean(), rel=1e-12) and s.error == pytest.approx(2 / 64, rel=0.5)
    assert s.rows == 4096
    assert gm.stats(x, skip=np.int64(96)).rows == 4000
    with pytest.raises(TypeError, match="must be whole, not 1.5"):
        gm.stats(x, skip=1.5)
    with pytest.raises(ValueError, match="cannot be negative"):
        gm.stats(x, skip=-1)


def test_values_that_are_left_out_are_counted():
    x = np.random.default_rng(2).normal(size=64)
    x[[3, 9]], x[20] = np.nan, np.inf
    message = " has 1 infinite value and 2 NaN or empty values, left out of its statistics"
    with pytest.warns(gm.GalamostWarning, match="`series`" + message) as seen:
        assert gm.stats(x, skip=0).mean == pytest.approx(x[np.isfinite(x)].mean())
    assert [w.filename for w in seen] == [__file__]
    few = np.full(64, np.nan)
    few[:2] = 1.0
    with pytest.warns(gm.GalamostWarning) as seen:
        assert list(gm.stats({"x": x, "few": few}, skip=0)) == ["x"]
    text = "\n".join(str(w.message) for w in seen)
    assert "`x`" + message in text and "columns left out: `few` has 2 finite numbers" in text
    with pytest.warns(gm.GalamostWarning, match="`series` has 1 NaN or infinite value.* at least four"):
        assert gm.stats([1.0, np.nan, 2.0]) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error", gm.GalamostWarning)
        assert gm.stats(x[30:]).rows > 4


def test_files_of_an_open_simulation():
    tables = 'Thermo(every: 10, file: "t.parquet"), Msd(every: 10, file: "msd.csv")'
    text = TRAJECTORY.replace("GsdTrajectory(every: 100", f"{gsd_writer()}(every: 10")
    text = text.replace('Thermo(every: 10, file: "thermo.csv")', tables)
    # the same time between all samples
    sim = gm.Simulation(text.replace("dt: 0.004", "dt: 0.002"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", gm.GalamostWarning)
        for end, frames in ((50, None), (70, None)):
            sim.run(end - sim.step)
            frames = frames or gm.read("t.gsd")
            assert [f.step for f in frames] == list(range(0, end + 1, 10))
            assert list(gm.table("t.parquet")["step"]) == list(range(0, end + 1, 10))
        # frames that are written later are found
        sim.run(30)
        assert len(frames) == 11 and frames[-1].step == 100
    with pytest.warns(gm.GalamostWarning, match=r"msd.csv is a file of a simulation that is still open: .* complete after close\(\)"):
        with contextlib.suppress(gm.PipelineError):
            gm.table("msd.csv")
    seen = []

    @sim.every(5)
    def look(s):
        with pytest.warns(gm.GalamostWarning, match=r"t.gsd is a file of a simulation that is still open: .* after run\(\)"):
            seen.append(len(gm.read("t.gsd")))
        # the line of the program, whichever function reads the file
        with pytest.warns(gm.GalamostWarning) as warned:
            gm.render("t.gsd", size="160x120")
            [f.step for f in gm.read("t.gsd")]
        assert {w.filename for w in warned} == {__file__}

    sim.run(5)
    assert seen == [11]
    sim.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error", gm.GalamostWarning)
        assert len(gm.table("msd.csv")) > 0 and len(gm.read("t.gsd")) == 11


def test_files_are_flushed_seldom_after_short_runs(monkeypatch):
    monkeypatch.setattr(gm._simulation, "FLUSH_PAUSE", 1e9)
    text = TRAJECTORY.replace("GsdTrajectory(every: 100", f"{gsd_writer()}(every: 10").replace("thermo.csv", "t.parquet")
    sim = gm.Simulation(text)
    calls, call = [], sim._call

    def counting(method, *args):
        calls.append(method)
        return call(method, *args)

    def flushes():
        return calls.count("flush")

    sim._call = counting
    for _ in range(6):
        sim.run(10)
    # only the first one
    assert flushes() == 1 and not sim._flushed
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*still open", gm.GalamostWarning)
        frames = gm.read("t.gsd")
        assert [f.step for f in frames] == list(range(0, 61, 10)) and flushes() == 2 and sim._flushed
        sim.run(10)
        assert list(gm.table("t.parquet")["step"]) == list(range(0, 71, 10)) and flushes() == 3
        sim.run(10)
        assert gm.stats("t.parquet", skip=0)["kT"].rows == 9 and flushes() == 4
        sim.run(10)
        assert len(frames) == 10 and flushes() == 5
    sim.run(10).save()
    assert flushes() == 5 and sim._flushed

    @sim.every(10)
    def fail(s):
        raise ValueError

    with pytest.raises(ValueError):
        sim.run(20)
    assert flushes() == 6 and sim._flushed
    sim.remove(fail)
    # a flush that is long ago
    sim._flush_due = 0.0
    sim.run(10)
    assert flushes() == 7
    sim.close()
    assert [f.step for f in gm.read("t.gsd")] == list(range(0, 121, 10)) and flushes() == 7


def test_energies_after_short_runs_are_those_of_a_long_run():
    # steps with and without a row of the table, a change of the state between them, and the beginning of a stage
    text = LIQUID.replace("steps: 130", "steps: 25")
    with gm.Simulation(text, name="long") as sim:
        whole = [sim.run(35).thermo.potential, sim.thermo.conserved]
    with gm.Simulation(text, name="short", overwrite=True) as sim:
        parts = [sim.run(n).thermo.potential for n in (5, 5, 15, 10)]
        assert len(set(parts)) == 4 and [parts[-1], sim.thermo.conserved] == whole
        kinetic = sim.thermo.kinetic
        sim.state.velocity = 2.0 * sim.state.velocity
        assert sim.thermo.kinetic == pytest.approx(4.0 * kinetic, rel=1e-5)


def test_frames_of_a_file_that_was_replaced_are_errors(folder):
    text = TRAJECTORY.replace("GsdTrajectory", gsd_writer())
    with gm.Simulation(text) as sim:
        sim.run(100)
    frames = gm.read("t.gsd")
    os.chdir("/")
    assert len(frames) == 2
    os.chdir(folder)
    with gm.Simulation(text) as sim:
        sim.run(200)
    for use in (lambda: frames[0], lambda: len(frames), lambda: list(frames)):
        with pytest.raises(gm.Error, match="t.gsd was replaced or shortened after it was opened; call gm.read again"):
            use()
    frames = gm.read("t.gsd")
    assert len(frames) == 3
    os.remove("t.gsd")
    with pytest.raises(gm.Error, match="t.gsd was removed after it was opened"):
        frames[1]


def small(writer, file, seed, steps):
    """Writes a trajectory of few particles. Runs of another seed have other positions."""
    pipeline = gm.Pipeline(
        seed=seed, device="Cpu", initial=[gm.RandomPositions(count=8, box=[6.0, 6.0, 6.0]), gm.Velocities(kT=1.0)],
        integrators=[gm.VelocityVerlet()], analyzers=[getattr(gm, writer)(every=10, file=file)], stages=[{"steps": steps, "dt": 0.001}])
    with gm.Simulation(pipeline, overwrite=True, name="small") as sim:
        sim.run()


@pytest.mark.parametrize("writer, file", [(None, "t.gsd"), ("ExtendedXyz", "t.xyz")])
def test_frames_of_a_file_that_was_rewritten_in_place_are_errors(writer, file, monkeypatch):
    # an index looks for changes each time
    monkeypatch.setattr(gm._files, "PAUSE", 0.0)
    monkeypatch.setattr(gm._files, "PAUSES", 0.0)
    writer = writer or gsd_writer()
    small(writer, file, 1, 30)
    small(writer, "same." + file, 1, 60)
    small(writer, "longer." + file, 2, 60)
    frames = gm.read(file)
    assert (len(frames), frames[1].step) == (4, 10)
    # the same run, longer: a file that has grown
    shutil.copyfile("same." + file, file)
    assert len(frames) == 7 and frames[-1].step == 60
    shutil.copyfile("longer." + file, file)
    for use in (lambda: frames[0], lambda: len(frames)):
        with pytest.raises(gm.Error, match=f"{file} was rewritten after it was opened; call gm.read again"):
            use()
    assert len(gm.read(file)) == 7


def test_a_growing_file_is_opened_again_only_for_new_frames(monkeypatch):
    small("ExtendedXyz", "short.xyz", 1, 30)
    small("ExtendedXyz", "long.xyz", 1, 60)
    opened, opens = gm._files.Frames._open, []

    def counting(*args):
        opens.append(args)
        return opened(*args)

    monkeypatch.setattr(gm._files.Frames, "_open", counting)
    monkeypatch.setattr(gm._files, "PAUSE", 60.0)
    shutil.copyfile("short.xyz", "t.xyz")
    frames = gm.read("t.xyz")
    shutil.copyfile("long.xyz", "t.xyz")
    assert [frames[k].step for k in (0, 1, 2, 3, 0)] == [0, 10, 20, 30, 0] and len(opens) == 1
    assert frames[4].step == 40 and len(opens) == 2
    # a change of the time alone
    os.utime("t.xyz", (1, 1))
    assert frames[1].step == 10 and len(opens) == 2
    frames._due = 0.0
    assert frames[1].step == 10 and len(opens) == 3
    shutil.copyfile("short.xyz", "u.xyz")
    frames = gm.read("u.xyz")
    steps = iter(frames)
    assert next(steps).step == 0 and len(opens) == 4
    shutil.copyfile("long.xyz", "u.xyz")
    assert [next(steps).step for _ in range(3)] == [10, 20, 30] and len(opens) == 4
    # the end of the loop finds the others
    assert next(steps).step == 40 and len(opens) == 5
    assert [f.step for f in steps] == [50, 60] and len(opens) == 5
    steps = iter(frames)
    next(steps)
    os.truncate("u.xyz", 10)
    with pytest.raises(gm.Error, match="u.xyz was replaced or shortened"):
        next(steps)


def test_digests_of_frames_take_a_few_kilobytes():
    taken = []

    class Positions(bytearray):
        def __getitem__(self, k):
            taken.append(len(super().__getitem__(k)))
            return super().__getitem__(k)

    long = Positions(1_000_000)
    digest = gm._files._digest({"position": long})
    assert 0 < sum(taken) <= 8192
    long[-1] = 1
    assert gm._files._digest({"position": long}) != digest


def test_numbers_of_frames_are_whole():
    small("ExtendedXyz", "t.xyz", 1, 10)
    frames = gm.read("t.xyz")
    assert frames[np.int64(1)].step == 10
    with pytest.raises(TypeError, match="the number of a frame must be whole, not 'a'"):
        frames["a"]
    with pytest.raises(ValueError, match="the number of a frame has masked values"):
        frames[np.ma.array(1, mask=True)]


@pytest.mark.parametrize("series, kind, message", [
    ({"a": np.ones((5, 3))}, ValueError, "`a` must be a series with one dimension, not 2"),
    ({"a": 3}, ValueError, "`a` must be a series with one dimension, not 0"),
    (np.ones((5, 3)), ValueError, "`series` must be a series with one dimension, not 2"),
    ({"a": np.arange(9) + 1j}, TypeError, "`a` has complex numbers"), (np.arange(9) + 1j, TypeError, "`series` has complex numbers"),
])
def test_statistics_need_series_of_real_numbers(series, kind, message):
    with pytest.raises(kind, match=message):
        gm.stats(series)


def test_columns_of_one_name_are_both_kept(folder):
    x = np.random.default_rng(3).normal(size=64)
    found = gm.stats({"a": x, 1: x, "1": x + 1.0, "text": ["x"] * 64}, skip=0)
    assert list(found) == ["a", "1", "1:2"] and found["1:2"].mean == pytest.approx(found["1"].mean + 1.0)
    (folder / "t.csv").write_text("L (length),L (time)\n" + "".join(f"{v},{v + 1.0}\n" for v in x))
    assert list(gm.table("t.csv")) == list(gm.stats("t.csv")) == ["L", "L:2"]


def test_statistics_that_overflow_are_warned_of():
    with pytest.warns(gm.GalamostWarning, match="`series`: the numbers are too large") as seen:
        gm.stats([1e308, -1e308, 1e308, 1e308, 3.0])
    assert [w.filename for w in seen] == [__file__]


def test_pictures():
    with gm.Simulation(LIQUID) as sim:
        picture = gm.render(sim, size="160x120", color="tag", key=True)
        assert picture._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(picture.data[16:20], "big") == 160
        assert gm.render(sim.state, size="160x120", color="tag", key=True).data == picture.data
        assert sim._repr_png_()[:4] == b"\x89PNG"
        with pytest.raises(gm.PipelineError, match="not a size"):
            gm.render(sim, size="big")
        with pytest.raises(gm.PipelineError, match="no option `colour`"):
            gm.render(sim, colour="type")
    one = gm.Frame(np.zeros((1, 3)), [6.0, 6.0, 6.0])
    one.type[0] = 4
    with pytest.raises(ValueError, match=r"type\[0\] is 4, but there is 1 type, numbered from 0"):
        gm.render(one)
    one.type[0], one.bonds = 0, gm.Links(["b"], [0], [[0, 9]])
    with pytest.raises(ValueError, match=r"bonds.members\[0, 1\] is 9, but there is 1 particle"):
        gm.render(one)
    with pytest.raises(TypeError, match="must be a simulation, a Frame or a file name, not int"):
        gm.render(5)
    picture.save("p.png")
    assert open("p.png", "rb").read() == picture.data


def test_pictures_have_the_options_of_the_command(folder):
    rng = np.random.default_rng(4)
    with gm.Simulation(TRAJECTORY.replace("GsdTrajectory", gsd_writer()).replace("steps: 130", "steps: 100").replace("170", "100")) as sim:
        sim.run()
    size = {"size": "320x240"}
    cases = [
        ({}, []), ({"frame": 0}, ["--frame", "0"]), ({"frame": -2}, ["--frame", "-2"]), ({"no_box": True}, ["--no-box"]),
        ({"no_scale_bar": True}, ["--no-scale-bar"]), ({"opaque": True}, ["--opaque"]), ({"slice": ("z", -1, 1)}, ["--slice", "z,-1,1"]),
        ({"slice": ["z,-1,1", ("x", 0, 9)]}, ["--slice", "z,-1,1", "--slice", "x,0,9"]), ({"translucent": ["A"]}, ["--translucent", "A"]),
        ({"key": True, "hide": []}, ["--key"]), ({"bonds": "off", "view": "top"}, ["--bonds", "off", "--view", "top"]),
    ]
    seen = {}
    for options, arguments in cases:
        gm.command("render", "t.gsd", "--out", "c.png", "--overwrite", "--size", "320x240", *arguments)
        seen[str(options)] = gm.render("t.gsd", **size, **options).data
        assert seen[str(options)] == (folder / "c.png").read_bytes(), options
    # all but those that this system does not show
    assert len(set(seen.values())) == len(cases) - 1
    for same in ({"box": False}, {"scale_bar": False}):
        (name, _), = same.items()
        assert gm.render("t.gsd", **size, **same).data == seen[str({f"no_{name}": True})]
    frame = gm.Frame(rng.uniform(-2, 2, (9, 3)), [5.0, 5.0, 5.0])
    for wrong, message in (({"opaque": 3}, "`opaque` must be True or False, not 3"), ({"slice": "z"}, "not a slice"),
                           ({"range": (np.nan, 1), "color": "tag"}, "`range`: "), ({"radius": -1}, "`radius`: the radius -1 is negative"),
                           ({"bonds": "on"}, "the state has no bonds"), ({"opaque": True, "translucent": "A"}, "exclude each other")):
        with pytest.raises(gm.PipelineError, match=message):
            gm.render(frame, **wrong)
    frame.arrays["molecule"] = np.zeros(9, np.int32)
    with pytest.raises(gm.PipelineError) as e:
        gm.render(frame, color="nope")
    assert str(e.value).count("molecule") == 1
    with pytest.raises(TypeError, match="`frame` selects a frame of a file"):
        gm.render(frame, frame=0)
    with pytest.raises(IndexError, match="no frame 7"):
        gm.render("t.gsd", frame=7)


@pytest.mark.parametrize("writer, file", [("Xtc", "t.xtc"), ("Dcd", "t.dcd"), ("Trr", "t.trr")])
def test_trajectories_without_types_are_read_with_a_topology(writer, file):
    two = LIQUID.replace("analyzers: [", f'analyzers: [ {gsd_writer()}(every: 100, file: "t.gsd"), {writer}(every: 100, file: "{file}"),')
    with gm.Simulation(two.replace("steps: 130, dt: 0.002", "steps: 100, dt: 0.004").replace("steps: 170", "steps: 100")) as sim:
        sim.run()
    with pytest.raises(gm.PipelineError, match="name a file of them with `topology=` of gm.read"):
        gm.read(file)[0]
    frames, complete = gm.read(file, topology="t.gsd"), gm.read("t.gsd")
    assert len(frames) == len(complete) == 3
    for frame, other in zip(frames, complete):
        assert (frame.step, frame.types, len(frame)) == (other.step, ["A"], 500)
        np.testing.assert_array_equal(frame.mass, other.mass)
        np.testing.assert_allclose(frame.box, other.box, rtol=1e-5)
        # XTC rounds to 0.001, and a position at a face may be at the other one
        apart = frame.position - other.position
        assert np.abs(apart - other.box * np.round(apart / other.box)).max() < 2e-3
    small = gm.Simulation(LIQUID.replace("[5, 5, 5]", "[4, 4, 4]").replace("Thermo(every: 10, file: \"thermo.csv\")", f'{gsd_writer()}(every: 1, file: "s.gsd")'))
    small.run(1).close()
    with pytest.raises(gm.PipelineError, match="500 particles, but the state has 256"):
        gm.read(file, topology="s.gsd")[0]
    with pytest.raises(gm.PipelineError, match="missing.gsd"):
        gm.read(file, topology="missing.gsd")
