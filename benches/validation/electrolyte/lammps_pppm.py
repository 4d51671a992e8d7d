"""LAMMPS's PPPM on the CPU for the electrolyte of electrolyte.ron: python3 lammps_pppm.py IONS ENVIRONMENT CORES

LAMMPS's accuracy is in units of the force of two unit charges at the distance 1: 1e-4 C⟨q²⟩/d² is 5.43e-5 there. Plain and
`-sf omp`/`-sf opt` where they exist, several cutoffs, orders 5 and 7; steps per second by LAMMPS's own timer. With 0 cores, only the files
are written.
"""
import random
import subprocess
import sys

n, environment, cores = int(sys.argv[1]), sys.argv[2], sys.argv[3]
length = (n / 0.4) ** (1 / 3)
side = round(n ** (1 / 3) + 0.4999)
random.seed(1)
sites = random.sample(range(side**3), n)
with open("ions.data", "w") as out:
    out.write(f"ions\n\n{n} atoms\n2 atom types\n" + "".join(f"0.0 {length} {a}lo {a}hi\n" for a in "xyz"))
    out.write("\nMasses\n\n1 1.0\n2 1.0\n\nAtoms # charge\n\n")
    for i, s in enumerate(sites):
        place = " ".join(f"{((s // side**k % side) + 0.5) * length / side:.6f}" for k in range(3))
        out.write(f"{i + 1} {1 + i % 2} {1 - 2 * (i % 2)} {place}\n")
with open("in.ions", "w") as out:
    out.write("""units lj
atom_style charge
read_data ions.data
velocity all create 1.0 4711 loop geom
pair_style lj/cut/coul/long 1.122462048309373 ${cutoff}
pair_coeff * * 1.0 1.0
pair_modify shift yes
kspace_style pppm 5.43e-5
kspace_modify order ${order}
timestep 0.005
fix 1 all nve
fix 2 all langevin 1.0 1.0 1.0 4711
thermo 0
run ${warm}
run ${steps}
""")

if cores == "0":
    sys.exit()


def speed(cutoff, order, suffix, steps):
    command = [f"{environment}/bin/mpiexec", "-n", cores, f"{environment}/bin/lmp", "-in", "in.ions", "-log", "none"]
    for name, value in ("cutoff", cutoff), ("order", order), ("warm", max(steps // 4, 10)), ("steps", steps):
        command += ["-var", name, str(value)]
    done = subprocess.run(command + (["-sf", suffix] if suffix else []), capture_output=True, text=True)
    found = [line.split() for line in done.stdout.splitlines() if "timesteps/s" in line]
    words = found[-1] if found else []
    return next((float(words[k - 1]) for k, w in enumerate(words) if w.startswith("timesteps")), 0.0)


print("| r_cut | order | " + " | ".join(("plain", "opt", "omp")) + " |\n|---|---|---|---|---|", flush=True)
best = 0.0
for cutoff in (2.5, 3.0, 3.5, 4.0, 5.0):
    for order in (5, 7):
        speeds = []
        for suffix in ("", "opt", "omp"):
            short = speed(cutoff, order, suffix, 10)
            speeds.append(speed(cutoff, order, suffix, max(20, int(3 * short))) if short else 0.0)
        best = max(best, *speeds)
        print(f"| {cutoff} | {order} | " + " | ".join(f"{s:.2f}" for s in speeds) + " |", flush=True)
print(f"\nbest: {best:.2f} TPS on {cores} cores")
