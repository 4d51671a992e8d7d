"""Arrays of a device and forces on it, on the emulated device, whose memory is that of the host."""

import gc
import shutil

import galamost as gm
import numpy as np
import pytest
from conftest import LIQUID
from test_force import Nan, Trap, frozen, ideal

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
SMALL = LIQUID.replace("cells: [5, 5, 5]", "cells: [4, 4, 4]")


class Tensor:
    """An array of another library."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class DeviceTrap(gm.Force):
    """The trap of `test_force` with arrays of the device."""

    on_device = virial = True
    kind = np.float64

    def compute(self, particles):
        assert isinstance(particles.position, gm.DeviceArray) and len(particles) == len(particles.mass)
        x = np.from_dlpack(particles.position)
        tensor = (-2.0 * x.T @ x)[np.triu_indices(3)]
        return tuple(Tensor(a.astype(self.kind)) for a in (-2.0 * x, (x**2).sum(axis=1), tensor))


@pytest.mark.parametrize("precision", ["Single", "Mixed", "Double"])
def test_arrays_are_those_of_the_state(precision):
    with gm.Simulation(SMALL.replace("seed: 7", f"seed: 7, precision: {precision}"), device="emulated") as sim:
        sim.run(7)
        arrays, state = sim.state.dlpack, sim.state.copy()
        for name in ("position", "velocity", "image", "mass", "type"):
            np.testing.assert_array_equal(np.from_dlpack(getattr(arrays, name)), getattr(state, name))
            assert getattr(arrays, name).dtype == getattr(state, name).dtype
        np.testing.assert_array_equal(np.asarray(arrays.force), sim.state.force)


def test_kernels_compile_for_a_gpu():
    pytest.importorskip("nvidia.cu13")
    gm._plugins.load()
    kernels = gm._galamost.compile_kernels("sm_90")
    assert sorted((name, precision) for name, precision, _ in kernels) == [
        (name, precision) for name in ("add_python_force", "gather_columns") for precision in ("Double", "Mixed", "Single")
    ]
    # machine code is an ELF file: its header alone has 64 bytes
    assert all(size > 64 for *_, size in kernels)


def test_arrays_are_shared_and_outlive_the_simulation():
    sim = gm.Simulation(SMALL, device="emulated")
    array = sim.state.dlpack.position
    assert array.shape == (256, 3) and array.__dlpack_device__() == (1, 0) and len(array) == 256
    one, two = np.from_dlpack(array), np.from_dlpack(array)
    assert np.shares_memory(one, two) and not np.shares_memory(one, np.asarray(array))
    before = one.copy()
    sim.run(5)
    sim.close()
    del sim, array, two
    gc.collect()
    np.testing.assert_array_equal(one, before)
    with gm.Simulation(SMALL, name="other", overwrite=True) as sim:
        np.testing.assert_array_equal(np.from_dlpack(sim.state.dlpack.position), sim.state.position)
    with pytest.raises(gm.RunError, match="closed"):
        sim.state.dlpack


def test_what_a_consumer_may_ask_for():
    with gm.Simulation(SMALL, device="emulated") as sim:
        array = sim.state.dlpack.velocity
    for wrong in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match="without a copy"):
            array.__dlpack__(**wrong)
    with pytest.raises(ValueError, match="must be copied"):
        array.__array__(copy=False)
    assert not hasattr(array, "__cuda_array_interface__")
    # a capsule that nobody takes frees its tensor
    del array
    gc.collect()


@pytest.mark.parametrize("force", [Trap, DeviceTrap])
def test_a_force_is_that_of_the_same_component(force):
    formula = gm.ExternalExpression(energy="k*(x^2 + y^2 + z^2)", parameters={"k": 1.0})
    with gm.Simulation(ideal(force()), device="emulated") as own, gm.Simulation(ideal(formula)) as theirs:
        for _ in range(3):
            own.run(10)
            theirs.run(10)
            np.testing.assert_allclose(own.state.unwrapped, theirs.state.unwrapped, atol=1e-10)
            a, b = own.forces["PythonForce"], theirs.forces["ExternalExpression"]
            assert a.energy == pytest.approx(b.energy, rel=1e-9)
            assert a.virial[0] + a.virial[3] + a.virial[5] == pytest.approx(-2 * a.energy, rel=1e-9)


def test_single_precision_and_a_pair_force_beside_it():
    class Half(DeviceTrap):
        kind = np.float32

    pipeline = gm.Pipeline.from_ron(SMALL)
    with gm.Simulation(pipeline, device="emulated") as plain:
        without = plain.state.force
    pipeline.forces.append(Half())
    with gm.Simulation(pipeline, device="emulated", name="half", overwrite=True) as sim:
        x = sim.state.position
        np.testing.assert_allclose(sim.state.force - without, -2 * x, atol=2e-5)
        assert sim.forces["PythonForce"].energy == pytest.approx((x**2).sum(), rel=1e-6)
        sim.run(60)
        assert np.isfinite(sim.thermo.pressure)


@pytest.mark.parametrize("answer, message", [
    (lambda x: Tensor(np.zeros((3, 3))), r"forces have the shape \[3, 3\], not \[64, 3\]"),
    (lambda x: Tensor(np.zeros((3, 64)).T), "forces must be contiguous"),
    (lambda x: Tensor(np.zeros((64, 3), np.int64)), "forces must be float64 or float32"),
    (lambda x: np.zeros((3, 3)), "shape"),
    (lambda x: 1 / 0, "ZeroDivisionError"),
])
def test_wrong_answers_are_errors(answer, message):
    class Wrong(gm.Force):
        on_device = True

        def compute(self, particles):
            return answer(particles.position)

    with pytest.raises(gm.RunError, match=message) as e:
        gm.Simulation(ideal(Wrong()), device="emulated")
    assert e.value.__cause__ is not None


class DeviceNan(Nan):
    """The force of `test_force` with arrays of the device."""

    on_device = True

    def compute(self, particles):
        return tuple(Tensor(part) for part in super().compute(particles))


@pytest.mark.parametrize("force", [Nan, DeviceNan])
@pytest.mark.parametrize("part, index, what, tag", [(0, (9, 1), "force", 9), (1, 9, "energy", 9), (2, 4, "virial", None)])
def test_undefined_numbers_of_particles_that_do_not_move_end_the_run(force, part, index, what, tag):
    sim = gm.Simulation(frozen(force(part, index)), device="emulated")
    with pytest.raises(gm.RunError, match=f"PythonForce: the {what} of the class {force.__name__} is NaN or infinite") as e:
        # a virial is read in steps that need it, as the last one of a run
        sim.run(10)
    assert (e.value.component, e.value.tag) == ("PythonForce", tag) and e.value.step >= 5
    sim.close()


def test_a_force_on_the_cpu_gets_numpy_arrays():
    class Plain(gm.Force):
        on_device = True

        def compute(self, particles):
            return -2.0 * np.from_dlpack(particles.position)

    with gm.Simulation(ideal(Plain())) as sim:
        np.testing.assert_allclose(sim.state.force, -2.0 * sim.state.position, rtol=1e-12)
