"""Forces in Python."""

import gc
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID


class Trap(gm.Force):
    """Harmonic trap, U = k r²/2 with k = 2."""

    virial = True

    def compute(self, particles):
        x = particles.position
        tensor = -2.0 * x.T @ x
        return -2.0 * x, (x**2).sum(axis=1), tensor[np.triu_indices(3)]


def ideal(force, steps=100, precision="Double"):
    return gm.Pipeline(
        seed=5, device="Cpu", precision=precision,
        initial=[gm.Lattice(lattice="Sc", cells=[4, 4, 4], density=0.5), gm.Velocities(kT=0.1)],
        forces=[force], integrators=[gm.VelocityVerlet()], stages=[{"steps": steps, "dt": 0.01}],
    )


def test_a_force_is_that_of_the_same_component():
    own = gm.Simulation(ideal(Trap()))
    formula = gm.ExternalExpression(energy="k*(x^2 + y^2 + z^2)", parameters={"k": 1.0})
    theirs = gm.Simulation(ideal(formula))
    for _ in range(5):
        own.run(20)
        theirs.run(20)
        np.testing.assert_allclose(own.state.unwrapped, theirs.state.unwrapped, atol=1e-10)
        a, b = own.forces["PythonForce"], theirs.forces["ExternalExpression"]
        assert a.energy == pytest.approx(b.energy, rel=1e-9)
        # Σ r F = −2 Σ r² for this field
        assert a.virial[0] + a.virial[3] + a.virial[5] == pytest.approx(-2 * a.energy, rel=1e-9)
    own.close()
    theirs.close()


def test_energy_is_conserved_and_without_a_virial_there_is_no_pressure():
    class Bare(Trap):
        virial = False

        def compute(self, particles):
            return super().compute(particles)[:2]

    with gm.Simulation(ideal(Bare())) as sim:
        total = sim.thermo.total
        sim.run()
        # velocity Verlet: the error is of the order (ω dt)² = 2e-4 of the energy
        assert sim.thermo.total == pytest.approx(total, rel=2e-4)
        assert np.isnan(sim.thermo.pressure)


def test_an_exception_ends_the_run_and_is_the_cause():
    class Late(gm.Force):
        calls = 0

        def compute(self, particles):
            self.calls += 1
            if particles.step == 7:
                raise LookupError("at step 7")
            return np.zeros_like(particles.position)

    sim = gm.Simulation(ideal(Late()))
    with pytest.raises(gm.RunError, match="LookupError: at step 7") as e:
        sim.run()
    assert isinstance(e.value.__cause__, LookupError) and e.value.component == "PythonForce"
    with pytest.raises(gm.RunError, match=f"the run failed at step {e.value.step}"):
        sim.thermo
    sim.close()


@pytest.mark.parametrize("answer, message", [
    (np.zeros((3, 3)), "shape"), (None, "Wrong.compute returned None; it must return forces, or forces and energies"),
    ((1, 2, 3), "returned 3 values"), ((), "returned 0 values"), ("x", "forces must be an array of real numbers, not str"),
    ((np.zeros((64, 3)), "x"), "energies must be an array of real numbers, not str"), ({"f": 1}, "forces must be .*, not dict"),
    ([np.zeros((64, 3)), np.zeros(64)], r"forces must be an array of the shape \(64, 3\); give several results as a tuple"),
    ((np.zeros((64, 3)), np.ma.array(np.zeros(64), mask=True)), "the array of energies has masked values"),
])
def test_wrong_answers_are_errors(answer, message):
    class Wrong(gm.Force):
        def compute(self, particles):
            return answer

    with pytest.raises(gm.RunError, match=message) as e:
        gm.Simulation(ideal(Wrong()))
    assert (e.value.step, e.value.component, e.value.tag) == (0, "PythonForce", None)


@pytest.mark.parametrize("answer", [
    lambda x: 1j * x, lambda x: (1j * x).tolist(), lambda x: (-x, 1j * x[:, 0]), lambda x: x.astype(np.complex64),
])
def test_complex_answers_are_errors(answer):
    class Complex(gm.Force):
        def compute(self, particles):
            return answer(particles.position)

    with pytest.raises(gm.RunError, match="TypeError: (forces|energies) have the type complex(64|128); they must be real") as e:
        gm.Simulation(ideal(Complex()))
    assert isinstance(e.value.__cause__, TypeError)


def test_a_virial_has_six_numbers():
    class Full(Trap):
        def compute(self, particles):
            x = particles.position
            return -2.0 * x, (x**2).sum(axis=1), -2.0 * x.T @ x

    with pytest.raises(gm.RunError, match=r"xx, xy, xz, yy, yz, zz of the virial have the shape \(3, 3\), not \(6,\)"):
        gm.Simulation(ideal(Full()))


def test_a_virial_is_not_optional():
    class Bare(gm.Force):
        virial = True

        def compute(self, particles):
            return -particles.position

    with pytest.raises(gm.RunError, match="returned 1 value; it must return forces, energies and virial"):
        gm.Simulation(ideal(Bare()))


def test_two_forces_have_the_names_of_the_table(folder):
    pipeline = ideal(Trap())
    pipeline.forces += [Trap()]
    pipeline.analyzers = [gm.Thermo(every=10, file="two.csv")]
    with gm.Simulation(pipeline) as sim:
        sim.run(10)
        assert list(sim.forces) == ["PythonForce", "PythonForce:2"]
        energies = {name: sums.energy for name, sums in sim.forces.items()}
        potential = sim.thermo.potential
    assert sum(energies.values()) == pytest.approx(potential, rel=1e-12)
    table = gm.table("two.csv")
    for name, energy in energies.items():
        assert table[name][list(table["step"]).index(10)] == pytest.approx(energy, rel=1e-7)


def test_a_simulation_that_another_thread_uses_cannot_be_closed():
    computing, released = threading.Event(), threading.Event()

    class Slow(Trap):
        def compute(self, particles):
            if particles.step == 3:
                computing.set()
                assert released.wait(60)
            return super().compute(particles)

    sim = gm.Simulation(ideal(Slow()))
    thread = threading.Thread(target=sim.run, args=(5,))
    thread.start()
    try:
        assert computing.wait(60)
        for use in (sim.close, lambda: sim.run(1), sim._native.close):
            with pytest.raises(gm.RunError, match="another thread is using the simulation"):
                use()
        assert not sim.closed
    finally:
        released.set()
        thread.join(60)
    assert sim.step == 5
    sim.close()
    assert sim.closed


def test_a_force_cannot_use_its_simulation():
    seen = []

    class Curious(Trap):
        def compute(self, particles):
            if particles.step == 2:
                for use in uses:
                    with pytest.raises(gm.RunError, match="cannot be used in `compute` of one of its forces"):
                        use()
                    seen.append(use)
            return super().compute(particles)

    sim = gm.Simulation(ideal(Curious()))
    velocity = sim.state.velocity
    sim.thermo
    uses = [lambda: sim.step, lambda: sim.remaining, lambda: sim.state.position, lambda: sim.state.force, lambda: sim.state.copy(),
            lambda: sim.state.dlpack, lambda: sim.thermo, lambda: sim.forces, lambda: setattr(sim.state, "velocity", velocity),
            lambda: repr(sim), sim.save, sim.close, lambda: sim.run(1)]
    assert sim.run(5).step == 5 and seen == uses
    sim.close()


OTHER = """
import galamost as gm
from test_force import Trap, ideal

other, seen = gm.Simulation(ideal(Trap()), name="other"), []
velocity = other.state.velocity
uses = [lambda: other.run(1), lambda: gm.Simulation(ideal(Trap()), name="third"), lambda: setattr(other.state, "velocity", velocity)]

class Nested(Trap):
    def compute(self, particles):
        if particles.step == 2:
            for use in uses:
                try:
                    use()
                except gm.RunError as e:
                    seen.append("cannot be opened, run or changed in `compute` of a force" in str(e))
            # what needs no thread of the pool
            seen.append((other.step, other.thermo.kT > 0, other.state.position.shape))
        return super().compute(particles)

gm.Simulation(ideal(Nested())).run(5).close()
print(seen, other.run(1).step)
"""


def test_a_force_cannot_run_another_simulation():
    # with one thread in the pool, each of the calls would wait for itself
    done = subprocess.run([sys.executable, "-c", OTHER], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, check=False,
                          timeout=60, env={**os.environ, "RAYON_NUM_THREADS": "1"})
    assert done.stdout.strip() == "[True, True, True, (0, True, (64, 3))] 1", done.stderr


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_the_end_of_a_program_is_no_fault_of_a_force(kind):
    class Ending(Trap):
        def compute(self, particles):
            if particles.step == 3:
                raise kind
            return super().compute(particles)

    sim = gm.Simulation(ideal(Ending()))
    with pytest.raises(kind) as e:
        sim.run()
    assert isinstance(e.value.__cause__, gm.RunError) and e.value.__cause__.step == 3
    with pytest.raises(gm.RunError, match="the run failed at step 3"):
        sim.step
    sim.close()


def test_arrays_of_compute_are_copies():
    class Writing(gm.Force):
        def compute(self, particles):
            particles.position[:] = particles.velocity[:] = 7.0
            return np.zeros_like(particles.position)

    seen = []

    class Reading(gm.Force):
        def compute(self, particles):
            seen.append(np.abs(particles.velocity).max())
            return np.zeros_like(particles.position)

    pipeline = ideal(Writing())
    pipeline.forces.append(Reading())
    with gm.Simulation(pipeline) as sim:
        assert np.abs(sim.run(2).state.velocity).max() < 7.0
    assert seen and max(seen) < 7.0


def test_a_force_that_refers_to_its_simulation_is_collected(folder):
    class Attached(Trap):
        sim = None

    def tasks():
        return len(os.listdir("/proc/self/task"))

    dead, before = [], None
    for k in range(12):
        force, pipeline = Attached(), ideal(Attached())
        pipeline.forces, pipeline.analyzers = [force, force], [gm.Thermo(every=10, file=f"{k}.csv")]
        sim = gm.Simulation(pipeline, name=f"n{k}")
        force.sim = sim
        sim.run(10)
        dead += [weakref.ref(sim), weakref.ref(force)]
        del sim, force, pipeline
        gc.collect()
        # the first one starts the threads of the CPU's pool
        before = before or tasks()
    assert all(d() is None for d in dead)
    assert tasks() <= before and not list(folder.glob("*.lock"))
    # the tables are complete
    assert (folder / "11.csv").read_text().splitlines()[-1].startswith("10,")


def test_undefined_energies_end_the_run():
    class Undefined(gm.Force):
        def compute(self, particles):
            energies = np.zeros(len(particles))
            energies[3] = np.nan if particles.step == 5 else 0.0
            return np.zeros_like(particles.position), energies

    sim = gm.Simulation(ideal(Undefined()))
    with pytest.raises(gm.RunError, match="PythonForce: the energy of the class Undefined is NaN or infinite .particle with tag 3") as e:
        sim.run()
    assert (e.value.step, e.value.component, e.value.tag) == (5, "PythonForce", 3)
    sim.close()


class Nan(gm.Force):
    """A force of which one number is NaN from step 5 on."""

    virial = True

    def __init__(self, part, index):
        self.part, self.index = part, index

    def compute(self, particles):
        parts = np.zeros((len(particles), 3)), np.zeros(len(particles)), np.zeros(6)
        parts[self.part][self.index] = np.nan if particles.step >= 5 else 0.0
        return parts


def frozen(force):
    """A pipeline that moves only the first particles."""
    pipeline = ideal(force)
    pipeline.integrators = [gm.VelocityVerlet(group=gm.variant.Tags(first=0, last=3))]
    return pipeline


@pytest.mark.parametrize("part, index, what, tag", [(0, (9, 1), "force", 9), (1, 9, "energy", 9), (2, 4, "virial", None)])
def test_undefined_numbers_of_particles_that_do_not_move_end_the_run(part, index, what, tag):
    sim = gm.Simulation(frozen(Nan(part, index)))
    with pytest.raises(gm.RunError, match=f"PythonForce: the {what} of the class Nan is NaN or infinite") as e:
        sim.run()
    assert (e.value.step, e.value.component, e.value.tag) == (5, "PythonForce", tag)
    sim.close()


def test_forces_outside_of_the_group_are_not_used():
    class Part(Nan):
        group = gm.variant.Tags(first=0, last=3)

    with gm.Simulation(ideal(Part(0, (9, 1)))) as sim:
        assert sim.run(10).step == 10


def test_forces_are_numbered_by_their_pipeline(folder):
    shared = Trap()
    pipeline = ideal(shared)
    pipeline.forces += [Trap(), shared]
    pipeline.stages = [{"steps": 100, "dt": 0.01, "forces": [pipeline.forces[1]]}]
    assert list(pipeline.python_forces().values()) == [shared, pipeline.forces[1]]
    assert [line.strip() for line in pipeline.ron.splitlines() if "number" in line] == ["number: 1,", "number: 2,", "number: 1,", "number: 2,"]
    with gm.Simulation(ideal(Trap()), name="trap") as sim:
        sim.run(10).save()
    with gm.Simulation(ideal(Trap()), name="trap", resume=True) as sim:
        assert sim.run(1).step == 11
    # several at a time keep their objects
    class Stiff(Trap):
        def compute(self, particles):
            return tuple(2.0 * part for part in super().compute(particles))

    with gm.Simulation(ideal(Trap())) as one, gm.Simulation(ideal(Stiff())) as two:
        assert two.thermo.potential == pytest.approx(2.0 * one.thermo.potential, rel=1e-12)


MANY = """
import threading
import galamost as gm
from test_force import Trap, ideal

closed = []

def work():
    for _ in range(10):
        gm.Simulation(ideal(Trap())).close()
        closed.append(1)

threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(closed))
"""


def test_threads_can_start_simulations_with_forces():
    done = subprocess.run([sys.executable, "-c", MANY], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.stdout.strip() == "60", done.stderr


def test_forces_belong_to_python():
    pipeline = ideal(Trap())
    with pytest.raises(ValueError, match="force in Python"):
        pipeline.save("trap.ron")
    with pytest.raises(gm.PipelineError, match="only in the Python program"):
        gm.Simulation(pipeline.ron)


def test_a_force_beside_others():
    class Field(gm.Force):
        def compute(self, particles):
            return np.tile([0.1, 0.0, 0.0], (len(particles), 1))

    pipeline = gm.Pipeline.from_ron(LIQUID)
    pipeline.forces.append(Field())
    with gm.Simulation(pipeline) as sim, gm.Simulation(LIQUID.replace("thermo", "other"), name="other") as without:
        np.testing.assert_allclose(sim.state.force - without.state.force, [[0.1, 0.0, 0.0]] * 500, atol=1e-5)
        assert set(sim.forces) == {"LennardJones", "PythonForce"}
        sim.run(10)


@pytest.mark.parametrize("end", ["", "raise KeyError('end of the script')"])
def test_a_script_ends_without_close(tmp_path, end):
    script = f"""
import galamost as gm, numpy as np
class Nothing(gm.Force):
    def compute(self, particles):
        return np.zeros_like(particles.position)
pipeline = gm.Pipeline(
    seed=5, device="Cpu", initial=[gm.Lattice(lattice="Sc", cells=[4, 4, 4], density=0.5), gm.Velocities(kT=0.1)],
    forces=[Nothing()], integrators=[gm.VelocityVerlet()], stages=[{{"steps": 100, "dt": 0.01}}],
)
simulation = gm.Simulation(pipeline)
simulation.run(10)
{end}
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == (1 if end else 0), done.stderr
    assert ("end of the script" in done.stderr) == bool(end)
