"""Tables that analyzers wrote, against freud, MDAnalysis and NumPy on the frames of the same run: dynamics.py FOLDER."""

import csv
import os
import sys
import warnings

import freud
import gsd.hoomd
import MDAnalysis
import numpy as np
from MDAnalysis.analysis.msd import EinsteinMSD
from MDAnalysis.coordinates.memory import MemoryReader

warnings.filterwarnings("ignore")
folder = sys.argv[1]


def table(name):
    with open(os.path.join(folder, name)) as f:
        rows = list(csv.reader(f))
    return dict(zip(rows[0], np.array(rows[1:], dtype=float).T))


def near(what, ours, theirs, limit=1e-5):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    worst = np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))
    print(f"{what}: {worst:.1e} of the largest value from the reference")
    assert worst < limit, what


class Frames:
    def __init__(self, name):
        with gsd.hoomd.open(os.path.join(folder, name)) as f:
            s = list(f)
        self.box = s[0].configuration.box
        self.d = s[0].configuration.dimensions
        self.kind = s[0].particles.typeid
        self.mass = s[0].particles.mass.astype(float)
        self.wrapped = [x.particles.position for x in s]
        self.image = [x.particles.image for x in s]
        length = self.box[:3].astype(float)
        self.x = np.array([x.particles.position.astype(float) + x.particles.image * length for x in s])
        v = [x.particles.velocity for x in s]
        self.v = np.array(v).astype(float) if v[0] is not None else None
        self.bonds = s[0].bonds.group


def level(lag, points):
    """Origins of a lag are multiples of two to this power."""
    n = 0
    while lag > points << n:
        n += 1
    return n


def windows(x, y, lag, points, f):
    step = 1 << level(lag, points)
    return np.mean([f(x[o], y[o + lag]) for o in range(0, len(x) - lag, step)], axis=0)


def squares(a, b):
    d = b - a
    r2 = np.sum(d * d, axis=1)
    return np.concatenate([np.mean(d * d, axis=0), [np.mean(r2), np.mean(r2 * r2)]])


def vectors(f, low, high):
    """Of the reciprocal lattice, without the half that is the other one's negative; whole numbers, and lengths."""
    length = f.box[:3].astype(float)
    unit = np.array([2 * np.pi / l if k < f.d else 0 for k, l in enumerate(length)])
    most = [int(high / u) if u > 0 else 0 for u in unit]
    n = np.array([(x, y, z) for x in range(-most[0], most[0] + 1) for y in range(-most[1], most[1] + 1) for z in range(-most[2], most[2] + 1)])
    q = np.linalg.norm(n * unit, axis=1)
    half = (n[:, 2] > 0) | ((n[:, 2] == 0) & ((n[:, 1] > 0) | ((n[:, 1] == 0) & (n[:, 0] > 0))))
    chosen = half & (q > low) & (q <= high)
    return (n * unit)[chosen], q[chosen]


points = 4
# the tables of structure factors are of every fourth frame
SPARSE = 4
for d in (3, 2):
    f = Frames(f"{d}.gsd")
    msd, vacf, drift = table(f"{d}.msd.csv"), table(f"{d}.vacf.csv"), table(f"{d}.drift.csv")
    lags = (msd["lag"] / 10).astype(int)
    assert list(lags) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32], lags
    center = np.sum(f.x * f.mass[None, :, None], axis=1) / np.sum(f.mass)
    for k, name in enumerate("AB"):
        x = f.x[:, f.kind == k]
        ours = np.array([windows(x, x, lag, points, squares) for lag in lags]).T
        near(f"{d}D msd {name} (NumPy)", msd[f"msd_{name}"], ours[3])
        for axis in range(d):
            near(f"{d}D msd {'xyz'[axis]} {name} (NumPy)", msd[f"msd_{'xyz'[axis]}_{name}"], ours[axis])
        alpha2 = d * ours[4] / ((d + 2) * ours[3] ** 2) - 1
        near(f"{d}D 1 + alpha2 {name} (NumPy)", 1 + msd[f"alpha2_{name}"], 1 + alpha2)
        # all windows, as freud and MDAnalysis average: the lags of the first level
        images = np.array(f.image)[:, f.kind == k]
        theirs = freud.msd.MSD(freud.box.Box.from_box(f.box, dimensions=d), "window")
        theirs.compute(np.array(f.wrapped)[:, f.kind == k], images)
        near(f"{d}D msd {name} (freud)", msd[f"msd_{name}"][:points], theirs.msd[1 : points + 1])
        u = MDAnalysis.Universe.empty(x.shape[1], trajectory=True)
        u.load_new(x, format=MemoryReader)
        einstein = EinsteinMSD(u, select="all", msd_type="xyz"[:d], fft=False).run()
        near(f"{d}D msd {name} (MDAnalysis)", msd[f"msd_{name}"][:points], einstein.results.timeseries[1 : points + 1])
        v = f.v[:, f.kind == k]
        c = np.array([windows(v, v, lag, points, lambda a, b: np.mean(a * b, axis=0)) for lag in [0, *lags]])
        near(f"{d}D vacf {name} (NumPy)", vacf[f"vacf_{name}"], c.sum(axis=1))
        for axis in range(d):
            near(f"{d}D vacf {'xyz'[axis]} {name}", vacf[f"vacf_{'xyz'[axis]}_{name}"], c[:, axis])
        t = vacf["time"]
        integral = np.concatenate([[0], np.cumsum(0.5 * np.diff(t) * (c.sum(axis=1)[1:] + c.sum(axis=1)[:-1]))]) / d
        near(f"{d}D diffusion {name}", vacf[f"diffusion_{name}"], integral)
    x = f.x[:, f.kind == 1] - center[:, None]
    near(f"{d}D msd less drift", drift["msd_B"], [windows(x, x, lag, points, squares)[3] for lag in lags])
    rdf = table(f"{d}.rdf.csv")
    box = freud.box.Box.from_box(f.box, dimensions=d)
    for a, b in ((0, 0), (0, 1), (1, 1)):
        theirs = freud.density.RDF(bins=50, r_max=2.9, normalization_mode="finite_size" if a == b else "exact")
        for w in f.wrapped:
            theirs.compute((box, w[f.kind == a]), query_points=None if a == b else w[f.kind == b], reset=False)
        # single precision moves a pair over the edge of a bin now and then: one of some thousand in each
        near(f"{d}D g(r) {'AB'[a]}-{'AB'[b]} (freud)", rdf[f"{'AB'[a]}-{'AB'[b]}"], theirs.rdf, 5e-4)

    structure = table(f"{d}.structure.csv")
    k, q = vectors(f, 0, 7.0)
    place = np.minimum((q / 7.0 * 20).astype(int), 19)
    waves = np.array([[np.exp(1j * x[f.kind == a] @ k.T).sum(axis=0) for a in (0, 1)] for x in f.x[::SPARSE]])
    counts = np.array([np.sum(f.kind == a) for a in (0, 1)])
    filled = np.unique(place)
    assert list(structure["vectors"]) == [np.sum(place == b) for b in filled]
    near(f"{d}D q", structure["q"], [np.mean(q[place == b]) for b in filled])
    for a, b in ((0, 0), (0, 1), (1, 1)):
        s_ab = np.mean(waves[:, a] * waves[:, b].conj(), axis=0).real / np.sqrt(counts[a] * counts[b])
        near(f"{d}D S {'AB'[a]}-{'AB'[b]} (NumPy)", structure[f"{'AB'[a]}-{'AB'[b]}"], [np.mean(s_ab[place == c]) for c in filled])
    total = np.mean(np.abs(waves.sum(axis=1)) ** 2, axis=0) / counts.sum()
    near(f"{d}D S (NumPy)", structure["S"], [np.mean(total[place == c]) for c in filled])
    # the composition's structure factor of each frame by shells, and its moments
    for name, sign, q_max, frames, bins in (
        ("domains", (-1, 1), 4.0, range(0, len(f.x), SPARSE), None),
        ("dense", (1, 0), 3.0, range(10, len(f.x), 2), 30),
    ):
        domains = table(f"{d}.{name}.csv")
        assert list(domains["step"]) == [10 * k for k in frames]
        k, q = vectors(f, 0, q_max)
        bins = bins or int(np.ceil(q_max * max(f.box[:3]) / (2 * np.pi)))
        place = np.minimum((q / q_max * bins).astype(int), bins - 1)
        shells = np.unique(place)
        mean_q = np.array([np.mean(q[place == c]) for c in shells])
        ours = []
        for x in f.x[list(frames)]:
            psi = sum(s * np.exp(1j * x[f.kind == a] @ k.T).sum(axis=0) for a, s in enumerate(sign))
            s = np.abs(psi) ** 2 / sum(counts[a] for a in (0, 1) if sign[a])
            s = np.array([np.mean(s[place == c]) for c in shells])
            q1, q2, top = np.sum(mean_q * s) / np.sum(s), np.sum(mean_q**2 * s) / np.sum(s), np.argmax(s)
            ours.append([2 * np.pi / q1, 2 * np.pi / np.sqrt(q2), q1, mean_q[top], s[top], 2 * np.pi / mean_q[top]])
        columns = ["L (length)", "L2 (length)", "q_mean (1/length)", "q_peak (1/length)", "S_peak", "L_peak (length)"]
        for column, values in zip(columns, np.array(ours).T):
            near(f"{d}D {name} {column} (NumPy)", domains[column], values)
    if d == 3:
        # freud takes the vectors without negative components: turning the points over gives the others of the same length.
        # Bins are so narrow that only vectors of one length are in one
        fine = table("3.fine.csv")
        sums = []
        for sign in ((1, 1, 1), (-1, 1, 1), (1, -1, 1), (1, 1, -1)):
            theirs = freud.diffraction.StaticStructureFactorDirect(bins=1000, k_max=2.5, num_sampled_k_points=0)
            for w in f.wrapped[::SPARSE]:
                theirs.compute((box, w * np.array(sign, dtype=np.float32)), reset=False)
            sums.append(theirs.S_k)
        k, q = vectors(f, 0, 2.5)
        lengths = np.unique(np.round(q, 9))
        place = lengths / 2.5 * 1000
        alone = [i for i, p in enumerate(place) if np.sum(place.astype(int) == int(p)) == 1 and 0.01 < p % 1 < 0.99]
        assert len(alone) > 30, len(alone)
        ours = [fine["S"][np.argmin(np.abs(fine["q"] - lengths[i]))] for i in alone]
        near("3D S (freud)", ours, np.mean(sums, axis=0)[place.astype(int)[alone]])
    scattering = table(f"{d}.scattering.csv")
    for name, q0 in (("1.2", 1.2), ("2", 2.0)):
        k, q = vectors(f, q0 - 0.125, q0 + 0.125)
        assert 0 < len(q) <= 32, len(q)
        rho = np.array([np.exp(1j * x @ k.T).sum(axis=0) for x in f.x])
        near(f"{d}D |q| {name}", scattering[f"q_{name}"], np.mean(q))
        near(
            f"{d}D F({name}, t) (NumPy)",
            scattering[f"F_{name}"],
            [windows(rho, rho, lag, points, lambda a, b: np.mean((b * a.conj()).real)) / f.x.shape[1] for lag in [0, *lags]],
        )
        for a in (0, 1):
            x = f.x[:, f.kind == a]
            own = lambda a, b: np.mean(np.cos((b - a) @ k.T))
            near(f"{d}D Fs({name}, t) {'AB'[a]} (NumPy)", scattering[f"Fs_{name}_{'AB'[a]}"], [windows(x, x, lag, points, own) for lag in [0, *lags]])

# a box that changes: from frame to frame dr + L dimage
with gsd.hoomd.open(os.path.join(folder, "c.gsd")) as t:
    s = list(t)
lengths = np.array([x.configuration.box[:3] for x in s]).astype(float)
assert np.ptp(lengths, axis=0).min() > 0.1, "the box stays as it is"
r = np.array([x.particles.position for x in s]).astype(float)
n = np.array([x.particles.image for x in s]).astype(float)
assert np.abs(n).max() >= 3, "nobody has gone far"
steps = np.diff(r, axis=0) + lengths[1:, None, :] * np.diff(n, axis=0)
u = np.concatenate([np.zeros_like(r[:1]), np.cumsum(steps, axis=0)]) + r[:1] + lengths[0] * n[:1]
mass, kind = s[0].particles.mass.astype(float), s[0].particles.typeid
center = np.average(u, axis=1, weights=mass)
msd, drift = table("c.msd.csv"), table("c.drift.csv")
lags = (msd["lag"] / 10).astype(int)
for k, name in enumerate("AB"):
    for what, ours, x in (("", msd, u), (" less drift", drift, u - center[:, None, :])):
        x = x[:, kind == k]
        near(f"msd {name} in a box that changes{what}", ours[f"msd_{name}"], [windows(x, x, lag, points, squares)[3] for lag in lags])

f = Frames("m.gsd")
n = f.x.shape[1]
molecule = np.arange(n)
while True:
    before = molecule.copy()
    for a, b in f.bonds:
        molecule[[a, b]] = min(molecule[a], molecule[b])
    if (before == molecule).all():
        break
names = [m for m in np.unique(molecule) if np.sum(molecule == m) > 1]
centers = np.array(
    [[np.average(x[molecule == m], axis=0, weights=f.mass[molecule == m]) for m in names] for x in f.x]
)
msd = table("m.msd.csv")
lags = (msd["lag"] / 20).astype(int)
near("msd of molecules", msd["msd_molecules"], [windows(centers, centers, lag, points, squares)[3] for lag in lags])
rdf = table("m.rdf.csv")
length = f.box[:3].astype(float)
edges = np.linspace(0, 3.9, 11)
counts = np.zeros(10)
for x in f.x:
    c = []
    for m in names:
        # chains along consecutive tags, put together by nearest images
        step = np.diff(x[molecule == m], axis=0)
        whole = np.cumsum(np.vstack([x[m], step - length * np.round(step / length)]), axis=0)
        c.append(np.average(whole, axis=0, weights=f.mass[molecule == m]))
    c = np.array(c)
    r = c[:, None] - c[None]
    r = np.linalg.norm(r - length * np.round(r / length), axis=-1)[np.triu_indices(len(c), 1)]
    counts += np.histogram(r, edges)[0]
pairs = len(names) * (len(names) - 1) / 2 * len(centers)
near("g(r) of molecules", rdf["molecules"], counts / (pairs * 4 / 3 * np.pi * np.diff(edges**3) / np.prod(length)))
