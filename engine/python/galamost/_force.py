"""Forces in Python."""

import itertools

import numpy as np

from ._notation import Variant

_numbers = itertools.count(1)


class Particles:
    """What a force in Python gets: `step`, `box`, and `position`, `velocity`, `mass`, `type` in tag order.
    NumPy arrays of the CPU; `torch.from_dlpack` and others take them without a copy."""

    def __init__(self, step, box, position, velocity, mass, kind):
        self.step, self.box = step, np.array(box)
        self.position = np.frombuffer(position).reshape(-1, 3)
        self.velocity = np.frombuffer(velocity).reshape(-1, 3)
        self.mass = np.frombuffer(mass)
        self.type = np.frombuffer(kind, dtype=np.uint32)

    def __len__(self):
        return len(self.mass)


class Force:
    """A force in Python, on the CPU, to try ideas. Derive a class and put an instance into `Pipeline.forces`:

        class Trap(gm.Force):
            def compute(self, particles):
                x = particles.position
                return -x, 0.5 * (x**2).sum(axis=1)

    `compute` returns the forces, forces and energies of the particles, or also the virial tensor Σ r F as xx, xy,
    xz, yy, yz, zz. Without a virial the pressure of the run is NaN. An exception ends the run.
    """

    #: `compute` returns a virial
    virial = False
    #: the forces add up to 0
    conserves_momentum = False
    #: particles on which the force acts, as a `Variant`
    group = Variant("All")

    def compute(self, particles):
        """Returns forces, or forces and energies, or forces, energies and virial."""
        raise NotImplementedError("a force needs the method compute(self, particles)")

    def _numbered(self):
        self._number = getattr(self, "_number", None) or next(_numbers)
        return self._number

    def _variant(self):
        fields = {"number": self._numbered(), "group": self.group, "virial": self.virial,
                  "conserves_momentum": self.conserves_momentum}
        return Variant("PythonForce", fields)

    def _evaluate(self, *given):
        particles = Particles(*given)
        answer = self.compute(particles)
        parts = answer if isinstance(answer, tuple) else (answer,)
        if len(parts) != 3 if self.virial else len(parts) > 2:
            expected = "forces, energies and virial" if self.virial else "forces, or forces and energies"
            raise ValueError(f"{type(self).__name__}.compute returned {len(parts)} values; it must return {expected}")
        n = len(particles)
        forces = _real(parts[0], (n, 3), "forces").tobytes()
        energies = _real(parts[1], (n,), "energies").tobytes() if len(parts) > 1 else None
        virial = _real(parts[2], (6,), "the virial").tolist() if len(parts) > 2 else None
        return forces, energies, virial


def _real(values, shape, name):
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} have the shape {array.shape}, not {shape}")
    return array
