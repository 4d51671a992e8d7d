"""Runs cases with PyGAMD and with GALAMOST and compares them: python3 compare.py GALAMOST PEERS OUT CASE…; see decks.sh.

Environment: SECONDS_OF_PEER of a case, DEVICE, GPUS (ordinals; seeds of case 15 take them in turn), SEEDS of case 15, STEPS and
NO_PEER=1 (GALAMOST alone).
"""
import glob
import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import analysis
import files

HERE = os.path.dirname(os.path.abspath(__file__))
GALAMOST, PEERS, OUT = (os.path.abspath(a) for a in sys.argv[1:4])
DEVICE, GPUS = os.environ.get("DEVICE", "cuda"), os.environ.get("GPUS", "0").split()
ALONE = os.environ.get("NO_PEER", "") != ""
SEEDS = int(os.environ.get("SEEDS", "3"))
WINDOW = float(os.environ.get("SECONDS_OF_PEER", "30"))
PART = {"6": 2000, "7": 1000, "10": 500, "15": 10_000}
RON = {"6": "case06.ron", "7": "case07.ron", "10": "case10.ron", "15": "case15.ron"}


def program(pipeline, options, limit, folder=".", gpu=GPUS[0]):
    # copied, so that its files go to the folder
    with open(f"{folder}/ours.ron", "w") as out:
        out.write(open(f"{HERE}/{pipeline}").read())
    command = [GALAMOST, "--pipeline", "ours.ron", "--device", f"cuda:{gpu}" if DEVICE == "cuda" else DEVICE, "--overwrite", "--quiet"]
    for o in options:
        command += ["--set", o]
    begun = time.time()
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit)
        message = (done.stdout + done.stderr).strip()
        if done.returncode or message:
            print(f"  GALAMOST: exit {done.returncode}: {message[-1200:]}")
    except subprocess.TimeoutExpired:
        print(f"  GALAMOST: no end in {limit} s")
    return time.time() - begun


def ours(case, total, part, seed, limit, folder=".", gpu=GPUS[0]):
    log = 1000 if case == "15" else 100
    log, part = (max(1, min(log, part // 4)), part)
    options = [f"seed={seed}", f"analyzers[0].every={log}", f"analyzers[1].every={part}"]
    if case == "15":
        relax = min(10_000, total // 2)
        options += [f"stages[0].steps={relax}", f"stages[1].steps={total - relax}"]
    else:
        options.append(f"stages[0].steps={total}")
    seconds = program(RON[case], options, limit, folder, gpu)
    print(f"  GALAMOST, seed {seed}: {total} steps, {total / seconds:.0f} steps/s with start and output", flush=True)


def peers(case, folders):
    """PyGAMD in these folders at the same time, with a seed for each."""
    running = []
    for k, folder in enumerate(folders):
        command = [sys.executable, f"{HERE}/peer.py", case, str(WINDOW), str(123 + k), GPUS[k % len(GPUS)]]
        running.append(subprocess.Popen(command, cwd=folder, stdout=open(f"{folder}/peer.txt", "w"), stderr=subprocess.STDOUT))
    end = time.time() + 1.5 * WINDOW + 30
    for process, folder in zip(running, folders):
        try:
            code = process.wait(max(1.0, end - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = "none: killed"
        if code != 0:
            print(f"  PyGAMD in {os.path.basename(folder)}: exit {code}: " + " / ".join(open(f"{folder}/peer.txt").read().strip().splitlines()[-3:])[-500:])


def frames(case, folder, pattern, peer):
    """Numbers of all frames by step, and g(r)."""
    found = {}
    for file in sorted(glob.glob(f"{folder}/{pattern}")):
        try:
            step, numbers, g = analysis.of_frame(case, file, peer)
            found[step] = (numbers, g)
        except Exception as error:  # a frame that a killed run did not finish
            print(f"  {os.path.basename(file)}: not read: {type(error).__name__}: {error}")
    return found


def row(name, a, b):
    """A row of the table; each side is (mean, error) or None."""
    cell = lambda v: "– | " if v is None else f"{v[0]:.6g} | {v[1]:.2g}"
    away = ""
    if a is not None and b is not None:
        error = math.hypot(a[1], b[1])
        away = f"{(b[0] - a[0]) / error:.1f}" if error > 0 else "–"
    print(f"| {name} | {cell(a)} | {cell(b)} | {away} |")
    return {"PyGAMD": a, "GALAMOST": b}


def structure(found):
    """Means and errors of the second half of the frames; g(r) is added up within each block."""
    steps = sorted(found)
    half = steps[len(steps) // 2 :]
    if not half:
        return {}
    result = {k: analysis.blocks([found[s][0][k] for s in steps]) for k in found[half[0]][0]}
    parts = [p for p in np.array_split(np.array(half), min(5, len(half))) if len(p)]
    peaks = [analysis.peak_of(np.mean([found[s][1][0] for s in p], axis=0), found[half[0]][1][1]) for p in parts]
    for k in peaks[0]:
        v = np.array([p[k] for p in peaks])
        result[k] = (float(v.mean()), float(v.std(ddof=1) / math.sqrt(len(v))) if len(v) > 1 else math.nan)
    return result


def series(case, folder, n):
    """Means of the logs: kT, and the potential energy of a particle."""
    result = {"ours": {}, "peer": {}}
    if os.path.exists(f"{folder}/ours.csv"):
        t = analysis.our_log(f"{folder}/ours.csv")
        result["ours"] = {"kT": analysis.blocks(t["kT"]), "potential of a particle": analysis.blocks(t["potential"] / n)}
        if "kT_rotational" in t:
            result["ours"]["kT of rotation"] = analysis.blocks(t["kT_rotational"])
    if os.path.exists(f"{folder}/data.log"):
        t = analysis.peer_log(f"{folder}/data.log")
        temperature, potential = analysis.column(t, "temperature"), analysis.column(t, "potential")
        if temperature is not None:
            result["peer"]["kT"] = analysis.blocks(temperature)
        if potential is not None and np.abs(potential).max() > 0 and result["ours"]:
            # a total or a mean of particles: whichever is closer to GALAMOST's
            total = abs(potential[-1]) > 0.03 * n * abs(result["ours"]["potential of a particle"][0])
            result["peer"]["potential of a particle"] = analysis.blocks(potential / n if total else potential)
    return result


def one_run(case):
    """Cases 6, 7 and 10: means of the second half."""
    folder = os.getcwd()
    if case == "6":
        steps = os.environ.get("MELT_STEPS", "30000")
        program("case06-melt.ron", [f"stages[2].steps={steps}"], 90 if not ALONE else 3000)
        text = open("start.xml").read()
        with open("start.xml", "w") as out:
            out.write(files.re.sub(r'time_step="\d+"', 'time_step="0"', text, count=1))
    else:
        files.start(case, PEERS)
    n = len(files.Frame("start.xml").x)
    plan = {"total": int(os.environ.get("STEPS", "2000")), "part": max(1, int(os.environ.get("STEPS", "2000")) // 10)}
    if not ALONE:
        peers(case, [folder])
        plan = json.load(open("plan.json"))
        print(f"  PyGAMD: {plan['total']} steps, {plan['TPS']:.0f} steps/s; other runs use the GPU at the same time")
    ours(case, plan["total"], plan["part"], 1, 90 if not ALONE else 3000)
    logs = series(case, folder, n)
    mine, theirs = structure(frames(case, folder, "ours.*.xml", False)), structure(frames(case, folder, "peer*.xml", True))
    print("| second half | PyGAMD | ± | GALAMOST | ± | difference/σ |\n|---|---|---|---|---|---|")
    mine, theirs = logs["ours"] | mine, logs["peer"] | theirs
    return {name: row(name, theirs.get(name), mine[name]) for name in mine}


def growth():
    """Case 15: the same step of several runs with different seeds."""
    here = os.getcwd()
    folders = [f"{here}/seed{k}" for k in range(SEEDS)]
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        files.start("15", PEERS)
    total, part = int(os.environ.get("STEPS", "2000")), max(1, int(os.environ.get("STEPS", "2000")) // 10)
    if not ALONE:
        peers("15", folders)
        plans = [json.load(open(f"{f}/plan.json")) for f in folders if os.path.exists(f"{f}/plan.json")]
        total, part = min(p["total"] for p in plans), PART["15"]
        print(f"  PyGAMD: at least {total} steps, {np.mean([p['TPS'] for p in plans]):.0f} steps/s each; other runs use the GPU at the same time")
    os.chdir(here)
    # as many runs at once as there are GPUs
    with ThreadPoolExecutor(len(GPUS)) as pool:
        run = lambda k: ours("15", total, part, 1 + k, 120 if not ALONE else 3000, folders[k], GPUS[k % len(GPUS)])
        list(pool.map(run, range(SEEDS)))
    mine, theirs = ([frames("15", f, pattern, peer) for f in folders] for pattern, peer in (("ours.*.xml", False), ("peer*.xml", True)))
    results = {}
    common = sorted(set.intersection(*(set(m) for m in mine)))
    later = [s for s in common if s > 0] or common
    shown = later[-1 :: -max(1, math.ceil(len(later) / 6))][::-1]
    names = ["bonded ends", "clusters: weight mean", "clusters: largest", "angle A-B-B"]
    print(f"Means of {SEEDS} seeds, with their standard errors.\n| step, quantity | PyGAMD | ± | GALAMOST | ± | difference/σ |\n|---|---|---|---|---|---|")

    def over(runs, step, name):
        values = np.array([r[step][0][name] for r in runs if step in r], float)
        values = values[~np.isnan(values)]
        return None if len(values) == 0 else (float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan)
    for step in shown:
        for name in names:
            results[f"{step}: {name}"] = row(f"{step}: {name}", over(theirs, step, name), over(mine, step, name))
    peaks = [[structure(r) for r in runs if r] for runs in (theirs, mine)]
    logs = [series("15", f, 8000) for f in folders]
    for name in ("g(r), first peak: r", "g(r), first peak: height"):
        v = [np.array([p[name][0] for p in side if name in p]) for side in peaks]
        results[name] = row(name + ", ends of different monomers", *((float(x.mean()), float(x.std(ddof=1) / math.sqrt(len(x)))) if len(x) > 1 else None for x in v))
    v = [np.array([l[side]["kT"][0] for l in logs if "kT" in l[side]]) for side in ("peer", "ours")]
    results["kT"] = row("kT, second half", *((float(x.mean()), float(x.std(ddof=1) / math.sqrt(len(x)))) if len(x) > 1 else None for x in v))
    return results


def main():
    for case in sys.argv[4:]:
        begun = time.time()
        folder = f"{OUT}/case{case}"
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        for old in glob.glob("**/*.xml", recursive=True) + glob.glob("**/*.log", recursive=True) + glob.glob("**/*.csv", recursive=True) + glob.glob("**/plan.json", recursive=True):
            os.remove(old)
        print(f"\n== Case {case}", flush=True)
        try:
            results = growth() if case == "15" else one_run(case)
            os.chdir(folder)
            with open("result.json", "w") as out:
                json.dump(results, out, indent=1)
        except Exception as error:  # the next case must run
            print(f"  NOT FINISHED: {type(error).__name__}: {error}")
        print(f"-- case {case}: {time.time() - begun:.0f} s", flush=True)


main()
