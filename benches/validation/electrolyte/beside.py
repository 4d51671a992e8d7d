"""User time of a step beside LAMMPS's PPPM on one core, runs in turn: python3 beside.py IONS GALAMOST ENVIRONMENT [ROUNDS]

User times do not depend on other programs on the same cores as much as wall times do. The time of a step is the difference between
a run of 90 and one of 10 steps, so that start and planning cancel. `galamost` in `Double` with the choice of its cost model and with
other cutoffs; LAMMPS as in lammps_pppm.py, which writes `in.ions`, with the cutoffs and orders that are fastest there.
"""
import os
import resource
import statistics
import subprocess
import sys

n, galamost, environment = int(sys.argv[1]), sys.argv[2], sys.argv[3]
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 4
here = os.path.dirname(os.path.abspath(__file__))
edge = (n / 0.4) ** (1 / 3)
OURS = ["", "3.0", "3.5", "4.0", "4.5"]
THEIRS = [("3.5", "7"), ("4.0", "5"), ("4.0", "7"), ("5.0", "5")]


def user(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout[-1000:] + done.stderr[-1000:])
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def ours(r_cut, steps):
    command = [galamost, "--pipeline", f"{here}/electrolyte.ron", "--device", "cpu", "--threads", "1", "--quiet"]
    settings = [f"initial[0].box=[{edge}, {edge}, {edge}]", "precision=Double", f"stages[0].steps={steps}"]
    settings += [f"initial[0].molecules[{k}].count={n // 2}" for k in (0, 1)]
    settings += [f"forces[1].r_cut={r_cut}"] if r_cut else []
    return user(command + [word for s in settings for word in ("--set", s)])


def theirs(r_cut, order, steps):
    command = [f"{environment}/bin/lmp", "-in", "in.ions", "-log", "none", "-sf", "opt"]
    for name, value in ("cutoff", r_cut), ("order", order), ("warm", "0"), ("steps", str(steps)):
        command += ["-var", name, value]
    return user(command)


subprocess.run([sys.executable, f"{here}/lammps_pppm.py", str(n), environment, "0"], check=True, capture_output=True)
times = {}
for _ in range(rounds):
    for key in [("galamost", r, "") for r in OURS] + [("LAMMPS", *t) for t in THEIRS]:
        program, r_cut, order = key
        run = (lambda steps: ours(r_cut, steps)) if program == "galamost" else (lambda steps: theirs(r_cut, order, steps))
        times.setdefault(key, []).append(1e3 * (run(90) - run(10)) / 80)
print("| program | r_cut | order | user time of a step, ms: median | all |\n|---|---|---|---|---|")
for (program, r_cut, order), all_times in times.items():
    print(f"| {program} | {r_cut or 'cost model'} | {order} | {statistics.median(all_times):.1f} | {', '.join(f'{t:.1f}' for t in all_times)} |")
best = {p: min(statistics.median(t) for k, t in times.items() if k[0] == p) for p in ("galamost", "LAMMPS")}
print(f"\nbest of LAMMPS / best of galamost: {best['LAMMPS'] / best['galamost']:.2f}")
