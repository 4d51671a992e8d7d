"""Kills runs at random moments (kill -9) and lets them go on, until they are done.

Every run must go on from its newest checkpoint, lose no more than an interval, and end with files that are, byte for
byte, those of a run that nobody disturbed.

    python3 kills.py GALAMOST EXAMPLES KILLS [--device cpu] [--seed 1] [--only 01,03] [--seconds S] [--threads N]

GALAMOST is the program, EXAMPLES the folder with pipelines; --seconds is about how long an undisturbed run should take.
Replicas go on from different steps, so their steps are not compared with those of checkpoints; files are.
Needs nothing but Python. Several at once, each with other examples and `--threads 1`, make use of many cores.
"""

import argparse
import filecmp
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("program")
arguments.add_argument("examples")
arguments.add_argument("kills", type=int)
arguments.add_argument("--device", default="cpu")
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("--only", default="")
arguments.add_argument("--seconds", type=float, default=2.0)
arguments.add_argument("--threads", type=int, default=0)
a = arguments.parse_args()
program = str(pathlib.Path(a.program).resolve())
examples = pathlib.Path(a.examples)
names = sorted(p.stem for p in examples.glob("*.ron"))
if a.only:
    names = [n for n in names if n.split("-")[0] in a.only.split(",")]
rng = random.Random(a.seed)
written = re.compile(r"checkpoint of step (\d+) written")
resumed = re.compile(r"resuming from step (\d+) of")


def text(name):
    return (examples / f"{name}.ron").read_text()


def has_replicas(name):
    return re.search(r"^\s*replicas:", text(name), re.MULTILINE) is not None


def multiple(name, steps):
    """At least this many steps: a multiple of those between exchanges of replicas."""
    between = re.search(r"exchange:[^)]*every: (\d+)", text(name))
    unit = int(between.group(1)) if between else 1
    return -(-steps // unit) * unit


def command(name, steps, every, *more):
    settings = ["--set", f"checkpoint=(every: {every})", "--steps", str(steps), "--device", a.device]
    settings += ["--threads", str(a.threads)] if a.threads else []
    return [program, "--pipeline", f"{name}.ron", *settings, *more]


def fresh(folder):
    """The example set in a folder of its own, without what runs have left there."""
    folder.mkdir()
    for path in examples.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


def outputs(folder):
    # an earlier run's files, half of a checkpoint, and the record with its dates are none of a run's results
    skip = re.compile(r"\.ron$|\.run\.json$|\.lock$|\.checkpoint\.\d+$|^\.galamost\..*\.part$|\.old(\.\d+)?$")
    return {p.name for p in folder.iterdir() if not skip.search(p.name)}


def equal(a, b):
    """Whether two files, or all files of two folders, have the same bytes."""
    if not a.is_dir():
        return filecmp.cmp(a, b, shallow=False)
    names = sorted(p.name for p in a.iterdir())
    return names == sorted(p.name for p in b.iterdir()) and all(equal(a / n, b / n) for n in names)


def run(args, folder):
    return subprocess.run(args, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def undisturbed(name, base):
    """A run that nobody disturbs, of about the wanted length: its folder, its steps, the interval, its seconds."""
    steps = 40
    while True:
        steps, every = multiple(name, steps), multiple(name, max(1, steps // 16))
        folder = fresh(base / f"{name}-whole-{steps}")
        begun = time.time()
        done = run(command(name, steps, every), folder)
        seconds = time.time() - begun
        if done.returncode != 0:
            raise SystemExit(f"{name}: {done.stderr}")
        inside = re.search(r"(?:steps|batches) in ([0-9.]+) s", done.stderr)
        inside = max(float(inside.group(1)), 0.01)
        if inside > a.seconds / 2 or steps > 200_000:
            return folder, steps, every, seconds
        shutil.rmtree(folder)
        steps = int(steps * min(8.0, max(1.5, a.seconds / inside)))


total = restarts = 0
begun = time.time()
share = -(-a.kills // len(names))
with tempfile.TemporaryDirectory() as base:
    base = pathlib.Path(base)
    for name in names:
        whole, steps, every, seconds = undisturbed(name, base)
        kills = runs = 0
        while kills < share and total + kills < a.kills:
            folder = fresh(base / f"{name}-{runs}")
            runs += 1
            last, mine = 0, 0
            while True:
                log = folder / "log"
                with log.open("w") as err:
                    process = subprocess.Popen(
                        command(name, steps, every, "--resume=auto"), cwd=folder, stderr=err, stdout=subprocess.DEVNULL
                    )
                    # as often in the start as in the steps; after some kills it may run to its end
                    moment = rng.uniform(0.0, 1.1 * seconds) if mine < 8 and kills < share else 600.0
                    try:
                        process.wait(moment)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
                said = log.read_text()
                log.unlink()
                told = resumed.search(said)
                at = int(told.group(1)) if told else 0
                # a file may have been renamed just before its line could be written
                lost = told and at < last or not told and last and ("stage `" in said or "batches in" in said)
                if lost and not has_replicas(name):
                    raise SystemExit(f"{name}: a checkpoint of step {last} was there, the run began at {at}:\n{said}")
                if "set aside: " in said:
                    raise SystemExit(f"{name}: the run has taken its files for those of others:\n{said}")
                restarts += told is not None
                for step in written.findall(said):
                    last = max(last, int(step))
                if process.returncode == 0:
                    break
                if process.returncode != -9:
                    raise SystemExit(f"{name}: exit {process.returncode}:\n{said}")
                kills += 1
                mine += 1
            mismatch = outputs(folder) ^ outputs(whole)
            if mismatch:
                raise SystemExit(f"{name}: other files: {mismatch}")
            for file in sorted(outputs(whole)):
                if not equal(folder / file, whole / file):
                    raise SystemExit(f"{name}: {file} differs after {mine} kills (in {folder})")
            shutil.rmtree(folder)
        total += kills
        shutil.rmtree(whole)
        print(f"{name:28} {steps:7} steps, checkpoint every {every:6}: {kills:4} kills in {runs:3} runs", flush=True)
        if total >= a.kills:
            break
print(f"{total} kills, {restarts} restarts from a checkpoint, all files equal; {time.time() - begun:.0f} s on {a.device}")
