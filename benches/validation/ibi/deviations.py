#!/usr/bin/env python3
"""How far potentials of `galamost ibi` are from those that made the targets. Standard library only.

    python3 deviations.py wca|mixture FOLDER

FOLDER is the folder of the results. For each iteration: the distance of g(r) from the target, the largest |U - U_true| where it is
asked for (WCA: 0.95 < r < 1.12, and beyond 1.12; mixture: where g > 0.3, in kT), seconds.
"""

import csv
import glob
import os
import sys


def lj(r, eps, sigma):
    s = (sigma / r) ** 6
    return 4 * eps * (s * s - s), 24 * eps * (2 * s * s - s) / r


def shifted(r, eps, sigma, cut):
    """Lennard-Jones with energy and force shifted to 0 at the cutoff."""
    u, _ = lj(r, eps, sigma)
    uc, fc = lj(cut, eps, sigma)
    return u - uc + (r - cut) * fc if r < cut else 0.0


def wca(r):
    return lj(r, 1, 1)[0] + 1 if r < 2 ** (1 / 6) else 0.0


CASES = {
    "wca": (1.0, {"A-A": wca}),
    "mixture": (
        1.5,
        {
            "A-A": lambda r: shifted(r, 1.0, 1.0, 2.5),
            "A-B": lambda r: shifted(r, 1.2, 0.95, 2.5),
            "B-B": lambda r: shifted(r, 0.6, 0.9, 2.5),
        },
    ),
}


def columns(path):
    with open(path) as f:
        rows = list(csv.reader(f))
    return [(float(r[0]), float(r[1])) for r in rows[1:]]


def main():
    case, folder = sys.argv[1:3]
    kt, potentials = CASES[case]
    with open(os.path.join(folder, "convergence.csv")) as f:
        log = list(csv.DictReader(f))
    result = os.path.join(folder, "result")
    for path in sorted(glob.glob(os.path.join(folder, "iter-*", "main"))) + ([result] if os.path.exists(result) else []):
        parts, name = [], os.path.basename(os.path.dirname(path)) if path.endswith("main") else "result"
        here = [r for r in log if name.startswith("iter-") and int(r["iteration"]) == int(name[5:])]
        if name != "result" and not here:
            continue
        for pair, true in potentials.items():
            u = columns(os.path.join(path, f"pair.{pair}.csv"))
            if case == "wca":
                inner = max(abs(v - true(r)) for r, v in u if 0.95 < r < 1.12)
                outer = max(abs(v) for r, v in u if r > 1.13)
                parts.append(f"|U - U_WCA| {inner:.3f} kT on 0.95 < r < 1.12, {outer:.3f} kT beyond")
            else:
                g = dict(columns(os.path.join(folder, "iter-001", "main", f"pair.{pair}.dist.csv")))
                worst = max((abs(v - true(r)) / kt, r) for r, v in u if g.get(r, 0) > 0.3)
                parts.append(f"{pair} {worst[0]:.3f} kT at {worst[1]:.2f}")
        norms = " ".join(f"{float(r['norm']):.4f}" for r in here)
        seconds = f"{float(here[0]['seconds']):.2f} s, kT {float(here[0]['kT']):.3f}, P {float(here[0]['pressure']):.3f}" if here else ""
        print(f"[{case}] {name}: g {norms}; {'; '.join(parts)}; {seconds}")


main()
