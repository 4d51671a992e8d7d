#!/usr/bin/env python3
"""Copies a system side by side: replicate.py IN.xml[.xz] OUT.xml N (N x N x N) or AxBxC. Only what dppc-water-21216.xml has."""
import lzma
import re
import sys


def main():
    path, out, times = sys.argv[1:4]
    a, b, c = (int(x) for x in times.split("x")) if "x" in times else 3 * (int(times),)
    text = lzma.open(path, "rt").read() if path.endswith(".xz") else open(path).read()

    def rows(name):
        found = re.search(rf"<{name} [^>]*>\s*(.*?)\s*</{name}>", text, re.S)
        return [line.split() for line in found.group(1).splitlines()]

    box = [float(x) for x in re.search(r'lx="([^"]+)"\s+ly="([^"]+)"\s+lz="([^"]+)"', text).groups()]
    big = [l * n for l, n in zip(box, (a, b, c))]
    position, image, mass, types, bonds, angles = map(rows, ("position", "image", "mass", "type", "bond", "angle"))
    n, copies = len(position), a * b * c
    # molecules as wholes, so that copies keep their bonds
    whole = [[float(x) + int(i) * l for x, i, l in zip(p, im, box)] for p, im in zip(position, image)]
    shifts = [(x, y, z) for z in range(c) for y in range(b) for x in range(a)]
    with open(out, "w") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n')
        f.write(f'<configuration time_step="0" dimensions="3" natoms="{n * copies}">\n')
        f.write('<box lx="%.10g" ly="%.10g" lz="%.10g"/>\n' % tuple(big))
        places, images = [], []
        for s in shifts:
            for p in whole:
                q = [x + (k + 0.5) * l - 0.5 * L for x, k, l, L in zip(p, s, box, big)]
                i = [int((x + 0.5 * L) // L) for x, L in zip(q, big)]
                places.append("%.6f %.6f %.6f" % tuple(min(max(x - m * L, -0.5 * L), 0.5 * L - 1e-6) for x, m, L in zip(q, i, big)))
                images.append("%d %d %d" % tuple(i))
        for name, lines in [
            ("position", places),
            ("image", images),
            ("mass", [m[0] for m in mass] * copies),
            ("type", [t[0] for t in types] * copies),
            ("bond", [" ".join([r[0], *(str(int(t) + k * n) for t in r[1:])]) for k in range(copies) for r in bonds]),
            ("angle", [" ".join([r[0], *(str(int(t) + k * n) for t in r[1:])]) for k in range(copies) for r in angles]),
        ]:
            f.write(f'<{name} num="{len(lines)}">\n' + "\n".join(lines) + f"\n</{name}>\n")
        f.write("</configuration>\n</galamost_xml>\n")


main()
