"""Cost of driving a run on a GPU from Python, for 8,000 Lennard-Jones particles.

    python3 benches/python_gpu.py [ROUNDS]

Compares `sim.run(1000)` in a loop with the `galamost` command, and measures the time that a force in Python adds to a
step: in NumPy, in CuPy, and in PyTorch, where they are installed. Prints one JSON object.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import galamost as gm
import numpy as np

CHUNK, CHUNKS, FEW = 1000, 500, 1000
PREFIX = pathlib.Path(gm._plugins.PREFIX)
DEVICE = os.environ.get("GALAMOST_BENCH_DEVICE", "cuda:0")


class NumpyForce(gm.Force):
    def compute(self, particles):
        return -0.01 * particles.position


class CupyForce(gm.Force):
    on_device = True

    def compute(self, particles):
        return -0.01 * cupy.from_dlpack(particles.position)


class TorchForce(gm.Force):
    on_device = True

    def compute(self, particles):
        return -0.01 * torch.from_dlpack(particles.position)


class NothingForce(gm.Force):
    """The forces that the first call made: what a call costs without any work."""

    on_device = True
    zeros = None

    def compute(self, particles):
        if self.zeros is None:
            self.zeros = 0.0 * cupy.from_dlpack(particles.position)
        return self.zeros


def pipeline(force=None):
    forces = [gm.LennardJones(r_cut=3.0, pairs={("A", "A"): {"epsilon": 1.0, "sigma": 1.0}})]
    return gm.Pipeline(
        seed=1,
        initial=[gm.Lattice(lattice="Sc", cells=[20, 20, 20], density=0.381972), gm.Velocities(kT=1.2)],
        forces=forces + [force] * (force is not None),
        integrators=[gm.NoseHoover(kT=1.2, tau=0.5)], stages=[{"steps": CHUNK * (CHUNKS + 1), "dt": 0.005}],
    )


def command():
    """Steps per second of the command: the difference of a long and a short run, which both start the program."""
    def seconds(steps):
        args = [PREFIX / "bin/galamost", "--pipeline", "lj.ron", "--device", DEVICE, "-q", "--no-record", "--overwrite"]
        begun = time.perf_counter()
        subprocess.run([*args, "--steps", str(steps)], check=True)
        return time.perf_counter() - begun

    return CHUNK * CHUNKS / (seconds(CHUNK * (CHUNKS + 1)) - seconds(CHUNK))


def python(chunk=CHUNK, steps=CHUNK * CHUNKS, force=None):
    """Steps per second from Python."""
    with gm.Simulation(pipeline(force), device=DEVICE) as sim:
        sim.run(CHUNK if force is None else 50)
        begun = time.perf_counter()
        for _ in range(steps // chunk):
            sim.run(chunk)
        return steps / (time.perf_counter() - begun)


def check(force):
    """Compares the forces with the formula, and the arrays of the device with those of the host."""
    with gm.Simulation(pipeline(), device=DEVICE) as plain, gm.Simulation(pipeline(force), device=DEVICE, name="f") as sim:
        x = sim.state.position
        error = np.abs(sim.state.force - plain.state.force + 0.01 * x).max()
        assert error < 1e-3, error
        sim.run(20)
        module = torch if isinstance(force, TorchForce) else cupy
        on_device = module.from_dlpack(sim.state.dlpack.position)
        on_host = on_device.cpu().numpy() if module is torch else cupy.asnumpy(on_device)
        assert np.array_equal(on_host, sim.state.position)
        velocity = module.from_dlpack(sim.state.dlpack.velocity)
    # the array outlives the simulation
    assert float((velocity**2).sum()) > 0
    return float(error)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.chdir(tempfile.mkdtemp())
    pipeline().save("lj.ron")
    libraries = [name for name, module in (("cupy", cupy), ("torch", torch)) if module is not None]
    forces = {"numpy": NumpyForce}
    if cupy is not None:
        forces |= {"cupy": CupyForce, "nothing": NothingForce}
    if torch is not None:
        forces |= {"torch": TorchForce}
    found = {"device": None, "numpy": np.__version__, "libraries": libraries, "rounds": rounds, "error": {}}
    with gm.Simulation(pipeline(), device=DEVICE) as sim:
        found["device"] = repr(sim.state.dlpack.mass)
    for name in libraries:
        found["error"][name] = check(forces[name]())
    rates = {"command": [], "chunks of 1000": [], "chunks of 100": [], **{f: [] for f in forces}}
    for _ in range(rounds):
        rates["command"].append(command())
        rates["chunks of 1000"].append(python())
        rates["chunks of 100"].append(python(100, CHUNK * CHUNKS // 5))
        for name, force in forces.items():
            rates[name].append(python(FEW, FEW, force()))
    median = {k: statistics.median(v) for k, v in rates.items()}
    found["steps per second"] = {k: [round(x, 1) for x in v] for k, v in rates.items()}
    for chunk in ("chunks of 1000", "chunks of 100"):
        found[f"{chunk}, relative to the command"] = round(median[chunk] / median["command"], 4)
    for name in forces:
        found[f"a {name} force, microseconds per step"] = round(1e6 * (1 / median[name] - 1 / median["chunks of 1000"]), 1)
    print(json.dumps(found, indent=1))


def imported(name):
    try:
        return __import__(name)
    except ImportError:
        return None


cupy, torch = imported("cupy"), imported("torch")
if __name__ == "__main__":
    main()
