"""Files of GALAMOST XML, and the start files of the decks: python3 files.py PEERS CASE writes start.xml to the current folder.

PEERS/cases has the inputs of decks 10 and 15 as PyGAMD's molgen made them with the .molg scripts of the decks. The bodies of deck 7 are
those of the deck on its lattice, with random orientations of their own. Case 10 has in addition moments of inertia, and velocities.
"""
import collections
import lzma
import math
import re
import sys

import numpy as np


def node(text, name):
    found = re.search(rf"<{name}[ >][^\n]*\n(.*?)\n?\s*</{name}>", text, re.S)
    return None if not found else [row.split() for row in found.group(1).split("\n") if row.strip()]


class Frame:
    def __init__(self, file):
        self.text = open(file).read()
        self.box = np.array([float(v) for v in re.search(r'<box[^>]*lx="([^"]+)"[^>]*ly="([^"]+)"[^>]*lz="([^"]+)"', self.text).groups()])
        self.x = np.array(node(self.text, "position"), float)
        self.types = np.array([r[0] for r in node(self.text, "type")])
        self.step = int(re.search(r'time_step="(\d+)"', self.text).group(1))

    def rows(self, name):
        return node(self.text, name) or []


def write_xml(file, box, nodes, dimensions=3):
    with open(file, "w") as out:
        n = len(nodes["position"])
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<galamost_xml version="1.3">\n<configuration time_step="0" dimensions="{dimensions}" natoms="{n}">\n')
        out.write(f'<box lx="{box[0]}" ly="{box[1]}" lz="{box[2]}"/>\n')
        for name, rows in nodes.items():
            out.write(f'<{name} num="{len(rows)}">\n' + "\n".join(rows) + f"\n</{name}>\n")
        out.write("</configuration>\n</galamost_xml>\n")


# first bead of each ring of the first body of the deck's particles.xml, beads of the ring; beads 1–8 and 83–90 are B
RINGS = [((-46.156018, -45.214974, -43.645844), 1), ((-45.798890, -45.149823, -42.699268), 7), ((-44.928924, -45.424938, -42.167884), 12),
         ((-44.018593, -45.330505, -41.883538), 16), ((-43.101136, -44.977667, -41.881932), 18), ((-42.395929, -44.314683, -42.108458), 16),
         ((-42.033472, -43.460684, -42.553658), 12), ((-41.962757, -42.704679, -43.350549), 7), ((-41.843982, -42.785026, -44.354156), 1)]
SECOND = np.array((-46.233485, -44.458950, -42.974861)) + 44.0  # the second bead of the ring of seven: the sense of rotation


def body():
    first = [np.array(p) + 44.0 for p, _ in RINGS]
    axis = (first[0] - first[-1]) / np.linalg.norm(first[0] - first[-1])
    turn = lambda v, a: v * math.cos(a) + np.cross(axis, v) * math.sin(a) + axis * (axis @ v) * (1 - math.cos(a))
    sense = min((1, -1), key=lambda s: np.linalg.norm(turn(first[1], s * 2 * math.pi / 7) - SECOND))
    return np.array([turn(p, sense * 2 * math.pi * k / m) for p, (_, m) in zip(first, RINGS) for k in range(m)])


def random_rotation(random):
    q = random.normal(size=4)
    w, x, y, z = q / np.linalg.norm(q)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def velocities(masses, kT):
    """Rows of Maxwell-Boltzmann velocities without total momentum; the deck starts at rest, where a barostat cannot heat."""
    m = np.array(masses, float)[:, None]
    v = np.random.default_rng(1).normal(size=(len(m), 3)) * np.sqrt(kT / m)
    v -= (m * v).sum(axis=0) / m.sum()
    return [" ".join(f"{c:.8f}" for c in row) for row in v]


def start(case, peers):
    unpacked = lambda name: lzma.open(f"{peers}/cases/{name}.xml.xz").read().decode()
    if case == "15":
        open("start.xml", "w").write(unpacked("pn2d"))
    elif case == "10":
        open("gbinit.xml", "w").write(unpacked("gbinit"))
        frame = Frame("gbinit.xml")
        rows = {name: [" ".join(r) for r in frame.rows(name)] for name in ("position", "image", "mass", "type", "quaternion", "body")}
        a, b, c = (0.5 * v for v in (0.5, 3.0, 2.0))
        inert = " ".join(f"{1.5 / 5 * v:.6f}" for v in (b * b + c * c, a * a + c * c, a * a + b * b))
        # PyGAMD reads and writes w x y z, GALAMOST x y z w: start.xml is for PyGAMD, ours-start.xml for GALAMOST
        rows["quaternion"] = ["1 0 0 0" if t == "A" else q for t, q in zip(frame.types, rows["quaternion"])]
        rows["inert"] = ["0 0 0" if t == "A" else inert for t in frame.types]
        rows["velocity"] = velocities(rows["mass"], 2.4)
        write_xml("start.xml", frame.box, rows)
        rows["quaternion"] = [" ".join(q.split()[1:] + q.split()[:1]) for q in rows["quaternion"]]
        write_xml("ours-start.xml", frame.box, rows)
    elif case == "7":
        random, beads, nodes = np.random.default_rng(7), body(), collections.defaultdict(list)
        for k in range(9**3):
            center = np.array([-44.0 + 11 * (k // 9**i % 9) for i in range(3)])
            for j, x in enumerate(center + beads @ random_rotation(random).T):
                nodes["position"].append(" ".join(f"{v:.6f}" for v in x))
                nodes["mass"].append("1.0")
                nodes["type"].append("B" if j < 8 or j >= 82 else "A")
                nodes["body"].append(str(k))
        write_xml("start.xml", (100.0,) * 3, nodes)


if __name__ == "__main__":
    start(sys.argv[2], sys.argv[1])
