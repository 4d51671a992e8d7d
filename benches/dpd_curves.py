#!/usr/bin/env python3
"""kT of the DPD liquid over the time step, and its pressure over the density, as Groot and Warren showed them (J. Chem. Phys.
107 (1997) 4423), with DPD-VV beside.

    cargo build --release
    python3 benches/dpd_curves.py [--device cpu] [--threads 1] [--jobs 2]

Needs matplotlib. Writes dpd-curves.csv and dpd-curves.png beside this file: some minutes on two cores.
"""

import argparse
import concurrent.futures
import csv
import math
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parent / "target" / "release" / "galamost"
INTEGRATORS = {
    "λ = 0.65": "GrootWarren(lambda: 0.65)",
    "λ = 0.5": "GrootWarren(lambda: 0.5)",
    "DPD-VV": "DpdVerlet()",
}
STEPS = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
DENSITIES = [1.0, 2.0, 3.0, 5.0, 8.0]
SIDE = 6.0

PIPELINE = """(
    seed: 21,
    initial: [RandomPositions(count: {n}, box: [{side}, {side}, {side}]), Velocities(kT: 1.0)],
    forces: [Dpd(r_cut: 1.0, kT: 1.0, pairs: {{ ("A", "A"): (a: 25.0, sigma: 3.0) }})],
    integrators: [{integrator}],
    stages: [
        (name: "equilibrate", steps: {relax}, dt: {dt}),
        (name: "run", steps: {steps}, dt: {dt}, analyzers: [Thermo(every: 2, file: "t.csv")]),
    ],
)"""


def estimate(values):
    """Mean and its standard error from ten blocks."""
    size = len(values) // 10
    blocks = [sum(values[k * size : (k + 1) * size]) / size for k in range(10)]
    m = sum(values) / len(values)
    return m, math.sqrt(sum((b - m) ** 2 for b in blocks) / 90)


def measure(options, integrator, rho, dt, time):
    """kT and pressure with their errors, after a sixth of the time to relax."""
    n = round(rho * SIDE**3)
    text = PIPELINE.format(
        n=n, side=SIDE, integrator=integrator, relax=round(time / 6 / dt), steps=round(time / dt), dt=dt
    )
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "p.ron").write_text(text)
        command = [PROGRAM, "--pipeline", folder / "p.ron", "--device", options.device, "--threads", str(options.threads), "-q"]
        subprocess.run(command, check=True)
        with open(folder / "t.csv") as f:
            rows = list(csv.DictReader(f))
    return [estimate([float(r[name]) for r in rows]) for name in ("kT", "pressure")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    points = [("kT(dt)", name, 3.0, dt, 60) for name in INTEGRATORS for dt in STEPS]
    points += [("P(rho)", name, rho, 0.02, 20) for name in ("λ = 0.65", "λ = 0.5") for rho in DENSITIES]

    def row(point):
        curve, name, rho, dt, time = point
        (kt, kt_error), (p, p_error) = measure(options, INTEGRATORS[name], rho, dt, time)
        alpha = (p - rho) / (25 * rho**2)
        print(f"{name:9} ρ {rho} dt {dt}: kT {kt:.4f} ± {kt_error:.4f}, P {p:.3f} ± {p_error:.3f}, (P − ρkT)/aρ² {alpha:.4f}", flush=True)
        return [curve, name, rho, dt, kt, kt_error, p, p_error]

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(row, points))
    with open(HERE / "dpd-curves.csv", "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["curve", "integrator", "rho", "dt", "kT", "kT_error", "pressure", "pressure_error"])
        writer.writerows([r[:4] + [f"{x:.5f}" for x in r[4:]] for r in rows])
    draw(rows)


def draw(rows):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4))
    for name, marker in zip(INTEGRATORS, "os^"):
        points = [r for r in rows if r[0] == "kT(dt)" and r[1] == name]
        left.errorbar([r[3] for r in points], [r[4] - 1 for r in points], [r[5] for r in points], marker=marker, label=name)
        points = [r for r in rows if r[0] == "P(rho)" and r[1] == name]
        if not points:
            continue
        rho = [r[2] for r in points]
        middle.plot(rho, [r[6] for r in points], marker, label=name)
        right.plot(rho, [(r[6] - r[2]) / (25 * r[2] ** 2) for r in points], marker, label=name)
    left.axhline(0, color="grey", lw=0.8)
    left.set(xlabel="dt", ylabel="kT − 1", title="ρ = 3, a = 25, σ = 3")
    line = [1 + 0.05 * k for k in range(145)]
    middle.plot(line, [r + 0.101 * 25 * r * r for r in line], color="grey", lw=0.8, label="ρkT + 0.101 aρ²")
    middle.set(xlabel="ρ", ylabel="P", title="a = 25, dt = 0.02")
    right.axhspan(0.100, 0.102, color="grey", alpha=0.4, label="0.101 ± 0.001")
    right.set(xlabel="ρ", ylabel="(P − ρkT)/aρ²", ylim=(0.06, 0.11))
    for axes in (left, middle, right):
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(HERE / "dpd-curves.png", dpi=110)


if __name__ == "__main__":
    main()
