"""Cost of driving a run from Python, for 8,000 Lennard-Jones particles on one CPU thread.

    RAYON_NUM_THREADS=1 python3 benches/python.py [ROUNDS]

Compares the user time of the step loop with that of the `galamost` command beside this Python, in alternating rounds,
and measures a NumPy force. User times do not depend on other work of the machine as much as wall times do.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile

import galamost as gm
import numpy as np

STEPS = 4000
PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "galamost"


class Nothing(gm.Force):
    def compute(self, particles):
        return np.zeros_like(particles.position)


def pipeline():
    return gm.Pipeline(
        seed=1, device="Cpu",
        initial=[gm.Lattice(lattice="Sc", cells=[20, 20, 20], density=0.381972), gm.Velocities(kT=1.2)],
        forces=[gm.LennardJones(r_cut=3.0, pairs={("A", "A"): {"epsilon": 1.0, "sigma": 1.0}})],
        integrators=[gm.NoseHoover(kT=1.2, tau=0.5)], stages=[{"steps": STEPS, "dt": 0.005}],
    )


def user(who):
    return resource.getrusage(who).ru_utime


def command(steps):
    begun = user(resource.RUSAGE_CHILDREN)
    args = [PROGRAM, "--pipeline", "lj.ron", "--threads", "1", "-q", "--no-record", "--steps", str(steps)]
    subprocess.run(args, check=True)
    return user(resource.RUSAGE_CHILDREN) - begun


def python(p, chunk):
    with gm.Simulation(p) as sim:
        begun = user(resource.RUSAGE_SELF)
        for _ in range(STEPS // chunk):
            sim.run(chunk)
        return user(resource.RUSAGE_SELF) - begun


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.chdir(tempfile.mkdtemp())
    plain, forced = pipeline(), pipeline()
    plain.save("lj.ron")
    forced.forces.append(Nothing())
    seconds = {"command": [], "1000": [], "100": [], "1": [], "force": []}
    for _ in range(rounds):
        seconds["command"].append(command(STEPS) - command(1))
        for chunk in (1000, 100, 1):
            seconds[str(chunk)].append(python(plain, chunk))
        seconds["force"].append(python(forced, 1000))
    median = {k: statistics.median(v) for k, v in seconds.items()}
    for chunk in ("1000", "100", "1"):
        ratio = median["command"] / median[chunk]
        print(f"chunks of {chunk} steps: {ratio:.3f} of the speed of the command")
    per_step = (median["force"] - median["1000"]) / STEPS
    print(f"NumPy force: {1e6 * per_step:.0f} µs per step")
    print({k: [round(x, 2) for x in v] for k, v in seconds.items()})


if __name__ == "__main__":
    main()
