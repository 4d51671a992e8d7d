#!/usr/bin/env python3
"""What the runs of md-scf.sh gave; numpy alone is needed.

report.py energies thermo.csv         means of the quarters of a run
report.py periods FOLDER FOLDER       means with errors of both, and the distributions of local densities
report.py layers FOLDER [PICTURE]     the order of layers along the normal of a bilayer; a picture with matplotlib
"""
import csv
import pathlib
import sys

import numpy as np


def table(path):
    rows = list(csv.reader(open(path)))
    if len(rows) < 2:
        return {}
    return {name: np.array([float(r[k]) for r in rows[1:]]) for k, name in enumerate(rows[0])}


def mean(x, blocks=10):
    b = np.array([c.mean() for c in np.array_split(x, blocks)])
    return x.mean(), b.std(ddof=1) / np.sqrt(blocks)


def energies(path):
    t = table(path)
    names = [n for n in ("kT", "potential", "LennardJones", "HarmonicBond", "CosineSquaredAngle", "MdScf", "MdScf.potential_sum") if n in t]
    if len(next(iter(t.values()), [])) < 8:
        print("too few rows")
        return
    for name in names:
        quarters = [q.mean() for q in np.array_split(t[name], 4)]
        print(f"{name:20} quarters", *(f"{q:12.4f}" for q in quarters), f"; last quarter's error {mean(np.array_split(t[name], 4)[3], 5)[1]:.4f}")


def periods(*folders):
    tables = [table(pathlib.Path(f) / "thermo.csv") for f in folders]
    for name in ("kT", "LennardJones", "HarmonicBond", "CosineSquaredAngle", "MdScf", "MdScf.potential_sum"):
        values = [mean(t[name][len(t[name]) // 5 :]) for t in tables]
        apart = abs(values[0][0] - values[1][0]) / np.hypot(values[0][1], values[1][1])
        relative = abs(values[0][0] / values[1][0] - 1)
        print(f"{name:20}", *(f"{m:12.4f} ± {e:8.4f}" for m, e in values), f"  {apart:.1f} standard errors, {relative:.2%}")
    order = "types in the order of the file: N P G C W"
    print("local densities over the mean: 10, 50 and 90 %;", order)
    for f in folders:
        grids = np.array([np.load(p) for p in sorted(pathlib.Path(f).glob("density.*.npy"))[1:]])
        if not len(grids):
            continue
        total = grids.sum(axis=1)
        kinds = [np.percentile(grids[:, k] / grids.mean() / grids.shape[1], [10, 50, 90]).round(3).tolist() for k in range(grids.shape[1])]
        print(f, "all", np.percentile(total / total.mean(), [10, 50, 90]).round(3).tolist(), kinds)


def layers(folder, picture=None):
    best = None
    for axis in "xyz":
        path = pathlib.Path(folder) / f"profile-{axis}.csv"
        if not path.exists():
            continue
        t = table(path)
        if not t:
            continue
        last = t["step"] == t["step"][-1]
        p = {k: v[last] for k, v in t.items()}
        variation = p["C"].std() / p["C"].mean()
        print(f"{axis}: C varies by {variation:.2f} of its mean in the profile up to step {int(t['step'][-1])}")
        if best is None or variation > best[0]:
            best = (variation, axis, p)
    if best is None:
        print("no profile yet")
        return
    _, axis, p = best
    x = p["position"]
    half = x >= 0
    # from the middle outwards, both sides together
    places = {}
    for name in "CGPNW":
        both = p[name][half] + p[name][~half][::-1]
        places[name] = float(x[half][both.argmax()])
    water = (p["W"][half] + p["W"][~half][::-1]) / 2
    print(f"normal {axis}; maxima of |{axis}|:", ", ".join(f"{k} {v:.2f}" for k, v in places.items()),
          f"; W in the middle {water[:3].mean():.3f}, most {water.max():.3f}; C in the middle {p['C'][np.abs(x).argmin()]:.2f}")
    right = places["C"] < places["G"] <= places["P"] < places["W"] and water[:3].mean() < 0.1 * water.max()
    print("order P|G|C|G|P with water outside:", "yes" if right else "NO")
    if picture:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        for name, color in zip("NPGCW", ("tab:purple", "tab:orange", "tab:green", "tab:gray", "tab:blue")):
            plt.plot(x, p[name], label=name, color=color)
        plt.xlabel(f"{axis} from the middle of the tails, nm")
        plt.ylabel("number density, nm⁻³")
        plt.legend()
        plt.tight_layout()
        plt.savefig(picture, dpi=120)


{"energies": energies, "periods": periods, "layers": layers}[sys.argv[1]](*sys.argv[2:])
