#!/usr/bin/env python3
"""Prints what rosenbluth.sh has measured: `report.py counts|perm|melt FOLDER`. Needs numpy for `melt`."""
import csv
import glob
import math
import sys

COUNTS = [6, 30, 150, 726, 3534, 16926, 81390, 387966, 1853886, 8809878, 41934150, 198842742]


def table(path):
    with open(path) as f:
        return list(csv.DictReader(f))


def fits(path):
    for row in table(path):
        print(f"  {row['name']} = {float(row['value']):.6f} ± {float(row['error']):.1e}")


def counts(folder):
    print("steps, ln c_n, its error, deviation in standard errors (simple cubic)")
    for row in table(f"{folder}/cubic.csv"):
        steps, z, e = int(row["monomers"]) - 1, float(row["ln_Z"]), float(row["ln_Z_error"])
        truth = math.log(COUNTS[steps - 1])
        far = 0.0 if abs(z - truth) < 1e-8 else abs(z - truth) / e
        print(f"  {steps:2} {z:.8f} {e:.1e} {far:.2f}")
        if steps in (8, 12):
            r2, er = float(row["R2"]), float(row["R2_error"])
            truth = {8: 12.845084, 12: 20.952845}[steps]
            print(f"     R² {r2:.6f} ± {er:.1e}: {abs(r2 - truth) / er:.2f} standard errors from {truth}")
    for name in ("cubic26", "fit", "fit26", "beads"):
        last = table(f"{folder}/{name}.csv")[-1]
        share = float(last["chains"]) / float(last["begun"])
        effective = float(last["effective"]) / float(last["begun"])
        print(f"{name}: {last['monomers']} monomers, {share:.6f} of the chains completed, {effective:.4f} effective")
        fits(f"{folder}/{name}-fit.csv")
    row = table(f"{folder}/beads.csv")[1]
    z, e = math.exp(float(row["ln_Z"])), float(row["ln_Z_error"])
    print(f"trimers without overlap: {z:.7f} ± {z * e:.1e} (0.75)")


def perm(folder):
    plain = {r["monomers"]: r for r in table(f"{folder}/plain.csv")}
    for name in ("flat", "thresholds"):
        worst, at = 0.0, None
        for row in table(f"{folder}/{name}.csv"):
            p = plain[row["monomers"]]
            # plain chains are trusted where at least a thousand of them count
            if int(row["monomers"]) < 5 or not p["ln_Z"] or float(p["effective"]) < 1000:
                continue
            for k in ("ln_Z", "R2", "Rg2"):
                far = abs(float(row[k]) - float(p[k])) / math.hypot(float(row[k + "_error"]), float(p[k + "_error"]))
                worst, at = max((worst, at), (far, (k, row["monomers"])))
        print(f"PERM {name} beside plain sampling: at most {worst:.2f} standard errors apart, {at}")
    for name in ("plain", "flat", "thresholds", "beads"):
        last = table(f"{folder}/{name}.csv")[-1]
        print(f"{name}: N = {last['monomers']}: ln Z {last['ln_Z']} ± {last['ln_Z_error']}, R² {last['R2']} ± {last['R2_error']}, "
              f"{last['chains']} chains of {last['begun']}, {last['effective']} effective")
        fits(f"{folder}/{name}-fit.csv")
    print("R²/(N − 1) by temperature")
    scan = table(f"{folder}/scan.csv")
    lengths = sorted({int(r["monomers"]) for r in scan})
    print("  kT    " + "".join(f"{n:>18}" for n in lengths))
    for kt in dict.fromkeys(r["kT"] for r in scan):
        rows = {int(r["monomers"]): r for r in scan if r["kT"] == kt}
        cell = [f"{float(rows[n]['R2']) / (n - 1):10.4f} ±{float(rows[n]['R2_error']) / (n - 1):6.4f}" for n in lengths]
        print(f"  {float(kt):5.2f} " + "".join(cell))
    fits(f"{folder}/theta-fit.csv")
    print("R²/(N − 1) of long chains by temperature, and where that of 2048 and 1024 monomers is the same")
    before = None
    for path in sorted(glob.glob(f"{folder}/at-*.csv")):
        if path.endswith("-fit.csv"):
            continue
        kt = float(path.split("at-")[1][:-4])
        rows = {int(r["monomers"]): r for r in table(path) if r["R2"]}
        cell = [f"{n}: {float(r['R2']) / (n - 1):.4f} ± {float(r['R2_error']) / (n - 1):.4f}" for n, r in rows.items()]
        print(f"  kT = {kt}: " + ", ".join(cell))
        if 2048 not in rows:
            continue
        per = {n: float(rows[n]["R2"]) / (n - 1) for n in (1024, 2048)}
        slope = math.log(per[2048] / per[1024])
        if before and before[1] < 0 <= slope:
            print(f"  the same at kT = {before[0] + (kt - before[0]) * before[1] / (before[1] - slope):.3f}")
        before = (kt, slope)


def melt(folder):
    import gzip
    import xml.etree.ElementTree as xml

    import numpy as np

    def read(path):
        text = (gzip.open(path, "rt") if path.endswith(".gz") else open(path)).read()
        node = xml.fromstring(text).find("configuration")
        box = node.find("box").attrib
        length = np.array([float(box[k]) for k in ("lx", "ly", "lz")])
        r = np.array(node.find("position").text.split(), float).reshape(-1, 3)
        return length, r

    # freely rotating chains of the melt's characteristic ratio
    c_inf, bond = 1.88, 0.965
    c = (c_inf - 1) / (c_inf + 1)
    shown = [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 160, 199]
    target = {n: bond**2 * (c_inf - 2 * c * (1 - c**n) / n / (1 - c) ** 2) for n in shown}
    print("⟨R²(n)⟩/n; the spread of the mean over chains behind ± at n = 199")
    print("  target          " + "".join(f"{target[n]:8.4f}" for n in shown))
    for path in sorted(glob.glob(f"{folder}/state.*.xml*")):
        length, r = read(path)
        chains = r.reshape(-1, 200, 3)
        # bonds are far shorter than half of the box, so positions unfold along the chain
        step = np.diff(chains, axis=1)
        step -= length * np.round(step / length)
        walk = np.concatenate([np.zeros((len(chains), 1, 3)), np.cumsum(step, axis=1)], axis=1)
        rows, error = [], 0.0
        for n in shown:
            d2 = ((walk[:, n:] - walk[:, :-n]) ** 2).sum(axis=2).mean(axis=1) / n
            rows.append(d2.mean())
            error = d2.std(ddof=1) / len(d2) ** 0.5
        print(f"  {path.split('state.')[1][:10]:>15} " + "".join(f"{x:8.4f}" for x in rows) + f" ± {error:.4f}")


{"counts": counts, "perm": perm, "melt": melt}[sys.argv[1]](sys.argv[2])
