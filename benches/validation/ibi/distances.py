#!/usr/bin/env python3
"""Distances of the chains' distributions from their targets: distances.py FOLDER. Standard library only.

For the run with the tables that were found, on both devices: √(∫(p − p_t)² dx / ∫p_t² dx), and the largest difference over the largest
value of the target.
"""

import csv
import os
import sys


def table(path):
    with open(path) as f:
        rows = list(csv.reader(f))[1:]
    return [float(r[1]) for r in rows]


folder = sys.argv[1]
for place in ("gpu", "cpu"):
    parts = []
    for name in ("rdf", "bond", "angle", "dihedral"):
        path = os.path.join(folder, place, f"{name}.csv")
        if not os.path.exists(path):
            continue
        target, found = table(os.path.join(folder, f"{name}.csv")), table(path)
        norm = (sum((a - b) ** 2 for a, b in zip(target, found)) / sum(a * a for a in target)) ** 0.5
        largest = max(abs(a - b) for a, b in zip(target, found)) / max(target)
        parts.append(f"{name} {norm:.4f} (largest {largest:.4f})")
    print(f"[chain] tables on the {place}: " + ", ".join(parts))
