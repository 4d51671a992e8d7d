"""Runs that fail: what the error has, and what can be used afterwards."""

import pickle

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID


def fields(e):
    return e.step, e.component, e.tag


def uses(sim, state):
    """What needs the state of a simulation."""
    return (sim.run, sim.save, state.copy, lambda: sim.step, lambda: sim.remaining, lambda: state.position, lambda: state.force,
            lambda: state.dlpack, lambda: sim.thermo, lambda: sim.forces, lambda: setattr(state, "velocity", np.zeros((500, 3))),
            lambda: gm.render(sim))


def test_a_failed_run_says_where_it_failed(liquid, folder):
    sim = gm.Simulation(liquid, set={"stages[0].dt": 5.0, "integrators[0].tau": 50.0})
    state = sim.state
    with pytest.raises(gm.RunError, match="particles overlap, or dt is too long") as e:
        sim.run()
    error = e.value
    assert error.component == "NoseHoover"
    assert f"step {error.step}:" in error.message and f"tag {error.tag})" in error.message
    assert fields(pickle.loads(pickle.dumps(error))) == fields(error)
    for use in uses(sim, state):
        with pytest.raises(gm.RunError, match=f"the run failed at step {error.step}: its state cannot be used.*there is no checkpoint") as e:
            use()
        assert fields(e.value) == fields(error)
    assert repr(sim) == f"<Simulation of 500 particles on cpu, failed at step {error.step}>" and not sim.closed
    sim.close()
    assert sim.closed and (folder / "thermo.csv").read_text().startswith("step")
    assert '"status": "failed"' in (folder / "liquid.run.json").read_text()
    with pytest.raises(gm.RunError, match=f"closed, and the run failed at step {error.step}") as e:
        sim.run(1)
    assert fields(e.value) == fields(error)
    assert any("the failure was: " in note and "particles overlap, or dt is too long" in note for note in e.value.notes)


def test_later_errors_have_the_cause_of_the_failure():
    class Failing(gm.Force):
        def compute(self, particles):
            if particles.step == 3:
                raise LookupError("at step 3")
            return np.zeros_like(particles.position)

    pipeline = gm.Pipeline.from_ron(LIQUID)
    pipeline.forces.append(Failing())
    sim = gm.Simulation(pipeline)

    def position():
        return sim.state.position

    for use, closed in ((sim.run, False), (position, False), (position, True)):
        if closed:
            sim.close()
        with pytest.raises(gm.RunError, match="at step 3") as e:
            use()
        assert isinstance(e.value.__cause__, LookupError) and e.value.step == 3


def test_the_checkpoint_of_a_failed_run_is_named_and_continued(liquid):
    sim = gm.Simulation(liquid)
    sim.run(20).save()
    sim.state.velocity = 1e6 * sim.state.velocity
    with pytest.raises(gm.RunError) as e:
        sim.run(10)
    assert e.value.component == "NoseHoover" and e.value.step > 0
    with pytest.raises(gm.RunError, match=r"continue its checkpoint .*liquid\.checkpoint with gm.Simulation\(…, resume=True\)"):
        sim.state.position
    sim.close()
    with gm.Simulation(liquid, resume=True) as sim:
        assert sim.step == 20 and sim.run(10).step == 30


def test_other_errors_have_no_place():
    assert fields(gm.RunError("text", "message", [])) == (None, None, None)
    sim = gm.Simulation(LIQUID)
    sim.close()
    with pytest.raises(gm.RunError, match="closed") as e:
        sim.run(1)
    assert fields(e.value) == (None, None, None)
