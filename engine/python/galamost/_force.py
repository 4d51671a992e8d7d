"""Forces in Python."""

import threading

import numpy as np

from ._errors import require_unmasked
from ._notation import Variant


class Particles:
    """What a force in Python gets: `step`, `box`, and `position`, `velocity`, `mass`, `type` in tag order, valid during
    the call. NumPy arrays, or with `on_device` in a run on a GPU, a `DeviceArray` each. They are copies for this call: what a
    force writes into them changes neither the particles nor what other forces get."""

    def __init__(self, step, box, position, velocity, mass, kind):
        self.step, self.box = step, np.array(box)
        self.position, self.velocity, self.mass, self.type = position, velocity, mass, kind

    def __len__(self):
        return len(self.mass)


class Force:
    """A force in Python, to try ideas. Derive a class and put an instance into `Pipeline.forces`:

        class Trap(gm.Force):
            def compute(self, particles):
                x = particles.position
                return -x, 0.5 * (x**2).sum(axis=1)

    `compute` returns the forces, forces and energies of the particles, or also the virial tensor Σ r F as xx, xy,
    xz, yy, yz, zz. Without a virial the pressure of the run is NaN. An exception ends the run, as does a number that is NaN
    or infinite. `compute` cannot use its simulation, nor open, run or change another one.

    With `on_device`, a run on a GPU gives and takes arrays of the GPU, without a copy to the host:

        class Trap(gm.Force):
            on_device = True

            def compute(self, particles):
                x = cupy.from_dlpack(particles.position)
                return -x, 0.5 * (x**2).sum(axis=1)
    """

    #: `compute` returns a virial
    virial = False
    #: the forces add up to 0
    conserves_momentum = False
    #: `compute` uses the GPU of the run, by CuPy, PyTorch or another library that knows DLPack
    on_device = False
    #: particles on which the force acts, as a `Variant`
    group = Variant("All")

    def compute(self, particles):
        """Returns forces, or forces and energies, or forces, energies and virial."""
        raise NotImplementedError("a force needs the method compute(self, particles)")

    def _variant(self, number):
        fields = {"number": number, "group": self.group, "virial": self.virial,
                  "conserves_momentum": self.conserves_momentum, "on_device": self.on_device}
        return Variant("PythonForce", fields)

    def _evaluate(self, step, box, position, velocity, mass, kind, place):
        position, velocity = (np.frombuffer(b).reshape(-1, 3) for b in (position, velocity))
        particles = Particles(step, box, position, velocity, np.frombuffer(mass), np.frombuffer(kind, dtype=np.uint32))
        return self._answer(particles, place)

    def _evaluate_on_device(self, step, box, position, velocity, mass, kind, place):
        return self._answer(Particles(step, box, position, velocity, mass, kind), place)

    def _answer(self, particles, place):
        """Forces, energies and virial: arrays on the device `place` as they are, others as bytes."""
        answer = self.compute(particles)
        parts = answer if isinstance(answer, tuple) else (answer,)
        expected = "forces, energies and virial" if self.virial else "forces, or forces and energies"
        name = f"{type(self).__name__}.compute"
        if answer is None:
            raise TypeError(f"{name} returned None; it must return {expected}: `return` is missing")
        if len(parts) != 3 if self.virial else len(parts) not in (1, 2):
            count = "1 value" if len(parts) == 1 else f"{len(parts)} values"
            raise ValueError(f"{name} returned {count}; it must return {expected}")
        n = len(particles)
        forces = _given(parts[0], (n, 3), "forces", place)
        energies = _given(parts[1], (n,), "energies", place) if len(parts) > 1 else None
        virial = _given(parts[2], (6,), "xx, xy, xz, yy, yz, zz of the virial", place) if len(parts) > 2 else None
        return forces, energies, np.frombuffer(virial).tolist() if place is None and virial is not None else virial


#: threads that compute a force of any simulation
_COMPUTING = []


def is_computing():
    """Whether this thread computes a force. It then holds a thread of the engine's pool, for which other runs may wait."""
    return threading.get_ident() in _COMPUTING


class Computed:
    """A force of one simulation. While a thread computes it, `threads` contains the thread."""

    def __init__(self, force, threads):
        self._force, self._threads = force, threads
        #: for messages of the native part
        self.name = type(force).__name__

    def _call(self, evaluate, given):
        thread = threading.get_ident()
        for threads in (self._threads, _COMPUTING):
            threads.append(thread)
        try:
            return evaluate(*given)
        finally:
            for threads in (self._threads, _COMPUTING):
                threads.remove(thread)

    def _evaluate(self, *given):
        return self._call(self._force._evaluate, given)

    def _evaluate_on_device(self, *given):
        return self._call(self._force._evaluate_on_device, given)


def _given(values, shape, name, place):
    """An array that is on the device `place` itself, otherwise its bytes."""
    if place is not None and hasattr(values, "__dlpack_device__") and not isinstance(values, np.ndarray):
        if tuple(values.__dlpack_device__()) == place:
            return values
    array = _real(values, shape, name)
    return array if place == HOST and array.flags.writeable else array.tobytes()


#: the memory of the host in DLPack
HOST = (1, 0)


def _real(values, shape, name):
    require_unmasked(values, f"the array of {name}")
    try:
        array = np.asarray(values)
    except ValueError:
        hint = "; give several results as a tuple, not as a list" if isinstance(values, list) else ""
        raise ValueError(f"{name} must be an array of the shape {shape}{hint}") from None
    if np.iscomplexobj(array):
        raise TypeError(f"{name} have the type {array.dtype}; they must be real numbers")
    try:
        # NumPy would make numbers of texts
        if array.dtype.kind in "US":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of real numbers, not {type(values).__name__}") from None
    if array.shape != shape:
        raise ValueError(f"{name} have the shape {array.shape}, not {shape}")
    return array
