"""Radii of gyration by charge fraction: python3 summary.py NAME=TABLE…, tables of Gyration or of lammps_dpd.py.

Means and standard errors of the square over 10 blocks of all samples but the first eighth (equilibration of both programs).
"""
import csv
import math
import sys

print("| chains | R_g | standard error |\n|---|---|---|")
for argument in sys.argv[1:]:
    name, table = argument.rsplit("=", 1)
    squares = [float(row["Rg2"]) for row in csv.DictReader(open(table))]
    squares = squares[len(squares) // 8 :]
    size = len(squares) // 10
    blocks = [sum(squares[k * size : (k + 1) * size]) / size for k in range(10)]
    mean = sum(blocks) / 10
    error = math.sqrt(sum((b - mean) ** 2 for b in blocks) / 90)
    print(f"| {name} | {math.sqrt(mean):.3f} | {error / (2 * math.sqrt(mean)):.3f} |")
