"""What is compared between PyGAMD and GALAMOST: numbers of a frame, with the same code for both. Needs numpy."""
import collections
import csv
import math
import re

import numpy as np

from files import Frame

# r_max and bin width of g(r) for each case
REACH = {"6": (1.2, 0.01), "7": (2.5, 0.025), "10": (2.5, 0.025), "15": (2.0, 0.025)}


def pairs_within(x, box, r):
    """Pairs i < j closer than r in a periodic box, and their distances. Two dimensions if the third box length is 0."""
    flat = box[2] <= 1e-6
    box = np.where(box <= 1e-6, 1e6, box)
    m = np.maximum((box / r).astype(int), 1)
    m = np.where(m < 3, 1, m)
    if flat:
        m[2] = 1
    cell = np.minimum(((x / box + 0.5) % 1.0 * m).astype(int), m - 1)
    key = (cell[:, 0] * m[1] + cell[:, 1]) * m[2] + cell[:, 2]
    order = np.argsort(key, kind="stable")
    count = np.bincount(key, minlength=int(np.prod(m)))
    first = np.concatenate([[0], np.cumsum(count)])
    found_i, found_j, found_d = [], [], []
    shifts = {tuple(np.array(s) % m) for s in np.ndindex(3, 3, 3)} if (m >= 3).any() else {(0, 0, 0)}
    offsets = [s for s in shifts if all(m[k] > 1 or s[k] == 0 for k in range(3))]
    for s in offsets:
        other = (cell + np.array(s) - np.where(m >= 3, 1, 0)) % m
        k = (other[:, 0] * m[1] + other[:, 1]) * m[2] + other[:, 2]
        n = count[k]
        i = np.repeat(np.arange(len(x)), n)
        j = order[np.repeat(first[k], n) + np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)]
        keep = i < j
        i, j = i[keep], j[keep]
        d = x[i] - x[j]
        d -= box * np.round(d / box)
        d = np.sqrt((d * d).sum(axis=1))
        near = d < r
        found_i.append(i[near])
        found_j.append(j[near])
        found_d.append(d[near])
    return np.concatenate(found_i), np.concatenate(found_j), np.concatenate(found_d)


def clusters(n, edges):
    """Sizes of the connected components."""
    root = np.arange(n)

    def find(i):
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i
    for a, b in edges:
        root[find(a)] = find(b)
    return np.array(list(collections.Counter(find(i) for i in range(n)).values()))


def first_peak(x, box, group, case):
    """g(r) of particles of different groups (molecules or bodies): position and height of its first peak by a parabola."""
    reach, width = REACH[case]
    i, j, d = pairs_within(x, box, reach)
    d = d[group[i] != group[j]]
    edges = np.arange(0.0, reach + width / 2, width)
    count = np.histogram(d, edges)[0]
    n, sizes = len(x), np.bincount(group)
    ideal_pairs = 0.5 * (n * n - (sizes.astype(float) ** 2).sum())
    if box[2] <= 1e-6:
        shell, volume = np.pi * (edges[1:] ** 2 - edges[:-1] ** 2), box[0] * box[1]
    else:
        shell, volume = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3), float(np.prod(box))
    return count / (ideal_pairs * shell / volume), edges


def peak_of(g, edges):
    """The first maximum: of five-point means, the largest within six bins on either side, and not noise near contact."""
    smooth = np.convolve(g, np.ones(5) / 5, "same")
    inner = range(6, len(smooth) - 6)
    maxima = [k for k in inner if smooth[k] == smooth[k - 6 : k + 7].max() and smooth[k] > 0.3 * smooth[6:-6].max()]
    k = maxima[0] if maxima else int(np.argmax(smooth[6:-6])) + 6
    # a parabola through the five bins around it
    x = np.arange(-2, 3)
    c2, c1, c0 = np.polyfit(x, g[k - 2 : k + 3], 2)
    shift = float(np.clip(-c1 / (2 * c2), -2, 2)) if c2 < 0 else 0.0
    width = edges[1] - edges[0]
    return {"g(r), first peak: r": float(edges[k] + width * (0.5 + shift)), "g(r), first peak: height": float(c0 + c1 * shift + c2 * shift**2)}


def order_of(n):
    return float(np.linalg.eigvalsh(1.5 * n.T @ n / len(n) - 0.5 * np.eye(3))[-1])


def united_atoms(frame):
    ids = np.array([[int(v) for v in r[1:]] for r in frame.rows("dihedral")])
    v = [frame.x[ids[:, k + 1]] - frame.x[ids[:, k]] for k in range(3)]
    v = [d - frame.box * np.round(d / frame.box) for d in v]
    n1, n2 = np.cross(v[0], v[1]), np.cross(v[1], v[2])
    cosine = (n1 * n2).sum(1) / np.sqrt((n1**2).sum(1) * (n2**2).sum(1))
    # chains of 20 united atoms, one after the other
    chain = np.arange(len(frame.x)) // 20
    return {"trans fraction": float((cosine < -0.5).mean()), "density": len(frame.x) / float(np.prod(frame.box))}, frame.x, chain


def rigid_bodies(frame):
    real = frame.types != "Center"
    x, types = frame.x[real], frame.types[real]
    number = np.arange(len(x)) // 90
    b = np.nonzero(types == "B")[0]
    i, j, d = pairs_within(x[b], frame.box, 1.5)
    p, q = number[b[i]], number[b[j]]
    touching = {(min(s, t), max(s, t)) for s, t in zip(p, q) if s != t}
    sizes = clusters(number[-1] + 1, touching).astype(float)
    return {"contacts of a body": 2 * len(touching) / (number[-1] + 1), "clusters: weight mean": float((sizes**2).sum() / sizes.sum()),
            "clusters: largest": float(sizes.max())}, x[b], number[b]


def ellipsoids(frame, peer):
    q = np.array(frame.rows("quaternion"), float)[frame.types == "B"]
    w, x, y, z = q.T if peer else q.T[[3, 0, 1, 2]]
    axes = {"x": (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
            "y": (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
            "z": (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))}
    result = {"density": len(frame.x) / float(np.prod(frame.box))}
    for name, n in axes.items():
        result[f"P2 of {name}"] = order_of(np.array(n).T)
    a = frame.types == "A"
    return result, frame.x[a], np.arange(int(a.sum()))


def framework(frame):
    bonds = [(int(r[1]), int(r[2])) for r in frame.rows("bond")]
    ends = [(i, j) for i, j in bonds if frame.types[i] == frame.types[j] == "B"]
    molecules = len(frame.x) // 4
    sizes = clusters(molecules, [(i // 4, j // 4) for i, j in ends]).astype(float)
    box = np.where(frame.box <= 1e-6, 1e6, frame.box)
    unit = lambda d: (lambda v: v / np.linalg.norm(v))(d - box * np.round(d / box))
    # the A of an end is the first particle of its monomer
    angles = [math.degrees(math.acos(max(-1.0, min(1.0, float(unit(frame.x[s // 4 * 4] - frame.x[s]) @ unit(frame.x[t] - frame.x[s]))))))
              for i, j in ends for s, t in ((i, j), (j, i))]
    b = frame.types == "B"
    return {"bonded ends": 2 * len(ends) / int(b.sum()), "clusters: weight mean": float((sizes**2).sum() / sizes.sum()), "clusters: largest": float(sizes.max()),
            "angle A-B-B": float(np.mean(angles)) if angles else math.nan}, frame.x[b], np.nonzero(b)[0] // 4


def of_frame(case, file, peer):
    """Numbers of a frame by name, and its g(r)."""
    frame = Frame(file)
    numbers, x, group = {"6": united_atoms, "7": rigid_bodies, "10": lambda f: ellipsoids(f, peer), "15": framework}[case](frame)
    return frame.step, numbers, first_peak(x, frame.box, group, case)


def peer_log(file):
    """Columns of PyGAMD's DumpInfo by name."""
    lines = [l.split() for l in open(file) if l.strip()]
    names = next((l for l in lines if not re.match(r"^-?\d", l[0])), None)
    rows = [[float(v) for v in l] for l in lines if re.match(r"^-?\d", l[0])]
    width = min(map(len, rows))
    table = np.array([r[:width] for r in rows])
    return {(names[k] if names and k < len(names) else f"column {k}").lower(): table[:, k] for k in range(width)}


def column(table, *words):
    return next((v for k, v in table.items() if any(w in k for w in words)), None)


def our_log(file):
    rows = list(csv.DictReader(open(file)))
    return {k: np.array([float(r[k]) if r[k] not in ("", None) else math.nan for r in rows]) for k in rows[0]}


def blocks(values, count=5):
    """Mean of the second half of a series, and its standard error from blocks."""
    values = np.asarray(values, float)[len(values) // 2 :]
    means = np.array([b.mean() for b in np.array_split(values, min(count, len(values))) if len(b)])
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan
