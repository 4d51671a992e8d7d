"""Energies of PyGAMD's GBForce for pairs of rods beside candidates of its formula: python3 gay_berne.py OUT [GPU]; python3 gay_berne.py --one FOLDER GPU PS

`ours` is the translation of docs/src/from-scripts.md, exact for P_s = 1. Each value of P_s runs in a separate process; about 10 s.
"""
import glob
import math
import os
import subprocess
import sys

import numpy as np

from files import node, write_xml

EPSILON0, SIGMA0, NU, MU, SIGMA_E, SIGMA_S, EPSILON_E, EPSILON_S = 1.5, 1.5, 1.0, 2.0, 3.0, 1.0, 0.5, 3.0


def pairs():
    random, found = np.random.default_rng(3), []
    unit = lambda v: v / np.linalg.norm(v)
    x, z = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    # side by side, end to end, crossed, T, then random
    poses = [(z, z, x, 1.7), (z, z, z, 4.8), (z, np.array([0, 1.0, 0]), x, 1.7), (z, x, z, 3.3)]
    poses += [(unit(random.normal(size=3)), unit(random.normal(size=3)), unit(random.normal(size=3)), 2.6 + 0.25 * k) for k in range(8)]
    for k, (a, b, e, r) in enumerate(poses):
        center = np.array([-60.0 + 40 * (k % 4), -60.0 + 40 * (k // 4), 0.0])
        found.append((center, center + r * e, a, b))
    return found


def formula(pair, ps, shape=SIGMA_E / SIGMA_S, depth=EPSILON_S / EPSILON_E, width=None, contact=SIGMA0, energy=EPSILON0):
    p, q, a, b = pair
    d = q - p
    r = np.linalg.norm(d)
    e = d / r
    ca, cb, c = a @ e, b @ e, a @ b
    g = lambda x: (ca + cb) ** 2 / (1 + x * c) + (ca - cb) ** 2 / (1 - x * c)
    chi = (shape**2 - 1) / (shape**2 + 1)
    prime = (depth ** (1 / MU) - 1) / (depth ** (1 / MU) + 1)
    sigma = contact / math.sqrt(1 - 0.5 * chi * g(chi))
    well = energy * (1 - chi**2 * c**2) ** (-0.5 * NU) * (1 - 0.5 * prime * g(prime)) ** MU
    w = ps * contact if width is None else width
    rho = (r - sigma + w) / w
    return 4 * well * (rho**-12 - rho**-6)


def ours(pair):
    return formula(pair, 1.0, contact=SIGMA_S, width=SIGMA0, energy=EPSILON0 * EPSILON_S)


def candidates(ps):
    return {
        "ours: contact σ_s, width σ0, energy ε0 ε_s": ours,
        "the same, width P_s σ0": lambda p: formula(p, ps, contact=SIGMA_S, width=ps * SIGMA0, energy=EPSILON0 * EPSILON_S),
        "the same, energy P_s": lambda p: ps * ours(p),
        "width P_s σ0": lambda p: formula(p, ps),
        "inverse depth ratio": lambda p: formula(p, ps, depth=EPSILON_E / EPSILON_S),
        "contact σ_s, width P_s σ0": lambda p: formula(p, ps, contact=SIGMA_S, width=ps * SIGMA0),
        "contact σ0, width P_s σ_s": lambda p: formula(p, ps, width=ps * SIGMA_S),
        "contact and width σ_s": lambda p: formula(p, ps, contact=SIGMA_S),
        "half-lengths: contact 2 σ_s": lambda p: formula(p, ps, contact=2 * SIGMA_S),
    }


def one(folder, gpu, ps):
    os.chdir(folder)
    rows = lambda values: [" ".join(f"{c:.9f}" for c in v) for v in values]
    all_pairs = pairs()
    axes = [v for p in all_pairs for v in p[2:]]
    # the rotation that takes z to the axis, w x y z
    turns = [np.array([1 + n[2], -n[1], n[0], 0.0]) if n[2] > -0.999999 else np.array([0.0, 1.0, 0, 0]) for n in axes]
    n = len(axes)
    write_xml("system.xml", (200.0,) * 3, {
        "position": rows(v for p in all_pairs for v in p[:2]), "type": n * ["A"], "mass": n * ["1.0"], "velocity": n * ["0 0 0"],
        "orientation": rows(axes), "quaternion": rows(q / np.linalg.norm(q) for q in turns), "inert": n * ["1.0 1.0 1.0"]})
    sys.argv = sys.argv[:1]
    from poetry import cu_gala as gala

    info = gala.AllInfo(gala.XMLReader("system.xml"), gala.PerformConfig(gpu))
    app = gala.Application(info, 1e-7)
    force = gala.GBForce(info, gala.NeighborList(info, 10.0, 0.5), 10.0)
    force.setParams("A", "A", EPSILON0, SIGMA0, NU, MU, SIGMA_E, SIGMA_S, EPSILON_E, EPSILON_S, ps)
    app.add(force)
    app.add(gala.NVE(info, gala.ParticleSet(info, "all")))
    xml = gala.XMLDump(info, "frame")
    xml.setPeriod(1)
    xml.setOutputPotential(True)
    app.add(xml)
    app.run(2)


def main(out, gpu):
    for ps in (1.0, 1.5):
        folder = os.path.abspath(f"{out}/gb-{ps}")
        os.makedirs(folder, exist_ok=True)
        try:
            done = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", folder, gpu, str(ps)], capture_output=True, text=True, timeout=40)
            said = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            said = "no end in 40 s"
        print(f"== GBForce, P_s {ps}")
        frames = sorted(glob.glob(f"{folder}/frame*.xml"))
        values = node(open(frames[-1]).read(), "potential") if frames else None
        if not values:
            print("  NO RESULT: " + " / ".join(said.strip().splitlines()[-4:])[-600:])
            continue
        theirs = np.array([float(v[0]) for v in values]).reshape(-1, 2).sum(axis=1)
        rank = {}
        for name, energy in candidates(ps).items():
            expected = np.array([energy(p) for p in pairs()])
            rank[name] = float(np.median(np.abs(theirs - expected) / np.maximum(np.abs(expected), 1e-9)))
        for name, deviation in sorted(rank.items(), key=lambda s: s[1]):
            print(f"  {name}: median relative deviation {deviation:.1e}")
        print("  pair, PyGAMD, ours: " + "; ".join(f"{k} {t:.6g} {ours(p):.6g}" for k, (t, p) in enumerate(zip(theirs, pairs()))))


if sys.argv[1] == "--one":
    one(sys.argv[2], sys.argv[3], float(sys.argv[4]))
else:
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0")
