#!/usr/bin/env python3
"""A bilayer of DPPC in water, Martini 2, from copies of examples/80-martini side by side: make_bilayer.py NX NY OUT.

Writes OUT/system.gro and system.top with its .itp files for GROMACS, and dppc.xml and dppc.force_field for PyGAMD: the same particles
and parameters. Each copy has 32 lipids and 192 beads of water. No packages are needed.
"""
import shutil
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "examples" / "80-martini"
LIPID = ["Q0", "Qa", "Na", "Na"] + 8 * ["C1"]
BONDS = [(0, 1), (1, 2), (2, 3), (2, 4), (4, 5), (5, 6), (6, 7), (3, 8), (8, 9), (9, 10), (10, 11)]
ANGLES = [(1, 2, 3), (1, 2, 4), (2, 4, 5), (4, 5, 6), (5, 6, 7), (3, 8, 9), (8, 9, 10), (9, 10, 11)]
LIPIDS, WATERS = 32, 192


def rows_of(section, text):
    """The words of the rows of a section, macros replaced."""
    macros = {w[1]: w[2:] for w in (line.split() for line in text.splitlines()) if w[:1] == ["#define"]}
    rows, inside = [], False
    for line in text.splitlines():
        words = line.split(";")[0].split()
        if words[:1] == ["["]:
            inside = words[1] == section
        elif words and words[0][0] != "#" and inside:
            rows.append([x for w in words for x in macros.get(w, [w])])
    return rows


def main():
    nx, ny, out = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    lines = (SOURCE / "system.gro").read_text().splitlines()
    box = [float(x) for x in lines[-1].split()]
    atoms = [(line[:15], [float(line[20 + 8 * k : 28 + 8 * k]) for k in range(3)]) for line in lines[2:-1]]
    split = LIPIDS * len(LIPID)
    # lipids in one piece: copies are not periodic images of each other
    for first in range(0, split, len(LIPID)):
        for a, b in BONDS:
            x, y = atoms[first + a][1], atoms[first + b][1]
            y[:] = [v - l * round((v - u) / l) for u, v, l in zip(x, y, box)]
    shifts = [(i * box[0], j * box[1]) for i in range(nx) for j in range(ny)]
    all_atoms = [
        (name, [x[0] + dx, x[1] + dy, x[2]]) for part in (atoms[:split], atoms[split:]) for dx, dy in shifts for name, x in part
    ]
    copies, edges = nx * ny, [nx * box[0], ny * box[1], box[2]]
    with open(out / "system.gro", "w") as f:
        f.write(f"bilayer of {copies * LIPIDS} lipids\n{len(all_atoms)}\n")
        for k, (name, x) in enumerate(all_atoms):
            f.write("%s%5d%8.3f%8.3f%8.3f\n" % (name, (k + 1) % 100000, *x))
        f.write("%10.5f%10.5f%10.5f\n" % tuple(edges))
    top = (SOURCE / "system.top").read_text()
    top = top.replace(f"DPPC  {LIPIDS}", f"DPPC  {copies * LIPIDS}").replace(f"W    {WATERS}", f"W  {copies * WATERS}")
    (out / "system.top").write_text(top)
    for name in ("martini.itp", "lipid.itp"):
        shutil.copy(SOURCE / name, out / name)

    types = copies * LIPIDS * LIPID + copies * WATERS * ["P4"]
    links = lambda rows: [
        ("-".join(LIPID[t] for t in r), *(len(LIPID) * m + t for t in r)) for m in range(copies * LIPIDS) for r in rows
    ]
    charge = {"Q0": "1.0", "Qa": "-1.0"}
    wrap = lambda x, l: (x - 0.5 * l) - l * round((x - 0.5 * l) / l)
    with open(out / "dppc.xml", "w") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n')
        f.write(f'<configuration time_step="0" dimensions="3" natoms="{len(types)}">\n')
        f.write('<box lx="%.5f" ly="%.5f" lz="%.5f"/>\n' % tuple(edges))
        for name, rows in (
            ("position", [" ".join(f"{wrap(v, l):.5f}" for v, l in zip(x, edges)) for _, x in all_atoms]),
            ("type", types),
            ("mass", len(types) * ["72.0"]),
            ("charge", [charge.get(t, "0.0") for t in types]),
            ("bond", [" ".join(map(str, b)) for b in links(BONDS)]),
            ("angle", [" ".join(map(str, a)) for a in links(ANGLES)]),
        ):
            f.write(f'<{name} num="{len(rows)}">\n' + "\n".join(rows) + f"\n</{name}>\n")
        f.write("</configuration>\n</galamost_xml>\n")
    pairs = rows_of("nonbond_params", (SOURCE / "martini.itp").read_text())
    with open(out / "dppc.force_field", "w") as f:
        f.write("<pair_params>\n" + "".join(f"{a} {b} {e} {s} 1.0\n" for a, b, _, s, e in pairs) + "</pair_params>\n\n")
        bonds = {"-".join(LIPID[t] for t in b) for b in BONDS}
        length = lambda name: "0.370" if name == "Na-Na" else "0.470"
        f.write("<bond_params>\n" + "".join(f"{b} 1250.0 {length(b)} 1\n" for b in sorted(bonds)) + "</bond_params>\n\n")
        angles = {"-".join(LIPID[t] for t in a) for a in ANGLES}
        theta = lambda name: "120.0" if name == "Qa-Na-Na" else "180.0"
        f.write("<angle_params>\n" + "".join(f"{a} 25.0 {theta(a)} 2\n" for a in sorted(angles)) + "</angle_params>\n")
    print(f"{len(types)} beads in {' × '.join(f'{l:.2f}' for l in edges)} nm")


if __name__ == "__main__":
    main()
