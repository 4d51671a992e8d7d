#!/usr/bin/env python3
"""Means and fluctuations of both kinetic energies: python3 equipartition.py THERMO.csv PARTICLES [ROTATIONAL_FREEDOM_EACH]

Printed are kT of translation and rotation with standard errors by blocks, and the variance of each kinetic energy over g kT²/2, that of
the canonical ensemble. Standard library only.
"""

import csv
import statistics
import sys


def main():
    n, each = int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
    with open(sys.argv[1]) as f:
        rows = list(csv.DictReader(f))
    for name, kinetic, g in (("kT", "kinetic", 3 * n - 3), ("kT_rotational", "kinetic_rotational", each * n)):
        k = [float(r[kinetic]) for r in rows]
        t = [2 * x / g for x in k]
        size = len(t) // 20
        blocks = [statistics.fmean(t[i * size : (i + 1) * size]) for i in range(20)]
        error = statistics.stdev(blocks) / 20**0.5
        print(f"{name}: {statistics.fmean(t):.5f} +- {error:.5f}, variance / canonical {statistics.variance(k) / (g / 2):.3f}, {len(t)} samples")


main()
