"""PyGAMD's PPPM for the electrolyte of electrolyte.ron: python3 pygamd_pppm.py IONS [GPU]

Grids with cells of 0.4 to 0.9 and order 5, cutoffs 3 to 5; PyGAMD chooses κ from these and
prints its estimate of the error. Compare the settings whose error is that of accuracy 1e-4: 5.4e-5 per force of two unit charges
at the distance 1. Every setting runs in a process of its own, because PyGAMD holds one system per process.
"""
import random
import subprocess
import sys
import time

n, gpu = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "0"
length = (n / 0.4) ** (1 / 3)


def write(file):
    side = round(n ** (1 / 3) + 0.4999)
    random.seed(1)
    sites = random.sample(range(side**3), n)
    place = lambda s: " ".join(f"{((s // side**k % side) + 0.5) * length / side - length / 2:.6f}" for k in range(3))
    with open(file, "w") as out:
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n<configuration time_step="0" dimensions="3" natoms="{n}">\n')
        out.write(f'<box lx="{length}" ly="{length}" lz="{length}"/>\n')
        for name, value in (
            ("position", place),
            ("type", lambda s: "CA"[s[1] % 2]),
            ("mass", lambda s: "1.0"),
            ("charge", lambda s: "1.0" if s[1] % 2 == 0 else "-1.0"),
        ):
            out.write(f'<{name} num="{n}">\n')
            for i, s in enumerate(sites):
                out.write((value(s) if name == "position" else value((s, i))) + "\n")
            out.write(f"</{name}>\n")
        out.write("</configuration>\n</galamost_xml>\n")


def one(r_cut, grid):
    try:
        from poetry import cu_gala as gala
    except ImportError:
        import cu_gala as gala
    info = gala.AllInfo(gala.XMLReader("ions.xml"), gala.PerformConfig(gpu))
    app = gala.Application(info, 0.005)
    neighbors = gala.NeighborList(info, r_cut, 0.4)
    core = gala.LJForce(info, neighbors, 2 ** (1 / 6))
    for a, b in ("CC", "CA", "AA"):
        core.setParams(a, b, 1.0, 1.0, 1.0)
    core.setEnergy_shift()
    app.add(core)
    charged = gala.ParticleSet(info, "charge")
    ewald = gala.EwaldForce(info, neighbors, charged, r_cut)
    app.add(ewald)
    pppm = gala.PPPMForce(info, neighbors, charged)
    pppm.setParams(grid, grid, grid, 5, r_cut)
    app.add(pppm)
    kappa = pppm.getKappa()
    ewald.setParams(kappa)
    group = gala.ParticleSet(info, "all")
    thermostat = gala.LangevinNVT(info, group, 1.0, 123)
    thermostat.setGamma(1.0)
    app.add(thermostat)
    sort = gala.Sort(info)
    sort.setPeriod(200)
    app.add(sort)
    app.run(2000)
    speeds, steps = [], 500
    for _ in range(3):
        begun = time.perf_counter()
        app.run(steps)
        speeds.append(steps / (time.perf_counter() - begun))
        steps = max(100, int(1.5 * speeds[-1]))
    print(f"| {r_cut} | {kappa:.4f} | {grid} | {max(speeds):.1f} |")


if len(sys.argv) > 4:
    one(float(sys.argv[3]), int(sys.argv[4]))
else:
    write("ions.xml")
    print("| r_cut | kappa | grid | TPS |\n|---|---|---|---|", flush=True)
    for r_cut in (3.0, 3.5, 4.0, 5.0):
        for grid in [g for g in (32, 48, 64, 96, 128, 192, 256) if 0.4 <= length / g <= 0.9]:
            done = subprocess.run([sys.executable, __file__, str(n), gpu, str(r_cut), str(grid)], capture_output=True, text=True)
            errors = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
            rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
            print("\n".join(rows or [f"| {r_cut} | | {grid} | failed |"]) + ("\n" + "\n".join("  " + e for e in errors) if errors else ""), flush=True)
