"""The progress bar: a line of text, tqdm's in a terminal, tqdm's in Jupyter."""

import sys

import galamost as gm
import pytest
from conftest import LIQUID


def test_without_tqdm_there_is_a_line(monkeypatch, capfd):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    with gm.Simulation(LIQUID) as sim:
        sim.run(50, progress=True)
        shown = capfd.readouterr().err
        assert shown.startswith("\r1 of 50 steps") and shown.endswith("\r50 of 50 steps\n")
        sim.run(5)
        assert capfd.readouterr().err == ""


def test_tqdm_shows_all_steps_and_ends_with_an_exception(capfd):
    pytest.importorskip("tqdm")
    with gm.Simulation(LIQUID) as sim:
        sim.run(130, progress=True)
        assert "130/130" in capfd.readouterr().err

        @sim.every(20)
        def fail(sim):
            raise LookupError

        with pytest.raises(LookupError):
            sim.run(100, progress=True)
        shown = capfd.readouterr().err
        assert "10.0/100" in shown and shown.endswith("\n") and sim.step == 140


def test_the_bar_does_not_change_the_run():
    with gm.Simulation(LIQUID) as plain, gm.Simulation(LIQUID.replace("thermo", "bar"), name="bar") as sim:
        plain.run(150)
        sim.run(150, progress=True)
        assert (plain.state.unwrapped == sim.state.unwrapped).all()
