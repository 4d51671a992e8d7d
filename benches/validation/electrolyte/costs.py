"""Constants of the cost model of Pppm from a table of `galamost bench --sweep`: python3 costs.py TABLE IONS

The table has a cheap setting, then one with a longer cutoff, one with a higher order, one with a finer grid. Their differences
in time are those of pairs, shares and grid points.
"""
import math
import re
import sys

n = int(sys.argv[2])
rows = []
for line in open(sys.argv[1]):
    found = re.search(r"r_cut: ([\d.]+), alpha: [\d.]+, order: (\d+), grid: \[(\d+), (\d+), (\d+)\]", line)
    if found and line.startswith("|"):
        r, order, *grid = map(float, found.groups())
        # the second column from the left of the parameters is the speed: after the value, which may contain no bar
        seconds = 1 / float(line.split("|")[2])
        points = math.prod(grid)
        rows.append((n * 0.4 * 4 / 3 * math.pi * r**3, n * order**3, points * math.log2(points), seconds))
if len(rows) != 4:
    sys.exit(f"{sys.argv[1]} has {len(rows)} rows, not 4")
base = rows[0]
pair, share, point = ((rows[k][3] - base[3]) / (rows[k][k - 1] - base[k - 1]) for k in (1, 2, 3))
print(f"pair {1e9 * pair:.3g} ns, share {1e9 * share:.3g} ns, point {1e9 * point:.3g} ns")
print(f"share: {share / pair:.3g}, point: {point / pair:.3g}")
