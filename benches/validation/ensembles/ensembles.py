#!/usr/bin/env python3
"""Which ensemble did a thermostat or barostat sample? Reads the CSV files that run.sh writes and prints a table.

    python3 ensembles.py FOLDER

Files are named nvt-THERMOSTAT-kT.csv, npt-BAROSTAT-kT-P.csv and ideal-BAROSTAT-kT-P.csv. The tests are those of the package
physical_validation (Merz & Shirts, PLoS ONE 13 (2018) e0202764): the distribution of the kinetic energy (its mean, its
width, and all of it by Kolmogorov and Smirnov), and the ratio of the distributions of potential energy, volume or
enthalpy of two runs at neighboring temperatures or pressures; besides, variances of volumes under different barostats. Numbers are distances from the exact value in standard
errors; up to 4 is good, and p of Kolmogorov-Smirnov from 0.001 on. Berendsen's methods are not canonical and have to fail. The
exit code is 1 if one does not do what it should.

Needs `pip install physical_validation`.
"""

import contextlib
import csv
import io
import itertools
import math
import pathlib
import sys

import numpy

with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
    import physical_validation as pv
    import pymbar.timeseries as timeseries

LIMIT, P_VALUE = 4.0, 1e-3
# 1 in all units; the package counts pressures in bar, lengths in nm and energies in kJ/mol
UNITS = pv.data.UnitData(
    kb=1.0, energy_str="eps", energy_conversion=1.0, length_str="sigma", length_conversion=1.0, volume_str="sigma^3",
    volume_conversion=1.0, temperature_str="eps", temperature_conversion=1.0, pressure_str="eps/sigma^3",
    pressure_conversion=1.0 / 6.022140857e-2, time_str="tau", time_conversion=1.0,
)


class Run:
    """One CSV file."""

    def __init__(self, path):
        self.path = path
        kind, self.component, *state = path.stem.split("-")
        self.kind, self.kt = kind, float(state[0])
        self.pressure = float(state[1]) if len(state) > 1 else None
        with open(path) as f:
            rows = list(csv.DictReader(f))
        self.columns = {k: numpy.array([float(r[k]) for r in rows]) for k in rows[0] if k != "step"}
        c = self.columns
        # g = 2K/kT: 3N − 3 where the momentum is conserved, else 3N
        self.freedom = round(float(2 * c["kinetic"][0] / c["kT"][0]))
        momentum = max(float(abs(c[f"momentum_{k}"]).max()) for k in "xyz")
        self.conserved = momentum < 0.02 * math.sqrt(self.freedom / 3 * self.kt)
        self.n = self.freedom // 3 + (1 if self.conserved else 0)
        self.volume = c.get("volume")
        if self.volume is None and kind != "nvt":
            sys.exit(f"{path}: there is no column `volume`")

    def data(self):
        c = self.columns
        box = {} if self.volume is None else {"volume": self.volume}
        ensemble = {"natoms": self.n, "temperature": self.kt}
        if self.kind == "nvt":
            ensemble |= {"ensemble": "NVT", "volume": 1.0}
        else:
            ensemble |= {"ensemble": "NPT", "pressure": self.pressure}
        return pv.data.SimulationData(
            units=UNITS,
            ensemble=pv.data.EnsembleData(**ensemble),
            system=pv.data.SystemData(
                natoms=self.n, nconstraints=0, ndof_reduction_tra=3 * self.n - self.freedom, ndof_reduction_rot=0
            ),
            observables=pv.data.ObservableData(
                kinetic_energy=c["kinetic"], potential_energy=c["potential"], total_energy=c["kinetic"] + c["potential"], **box
            ),
        )

    def kinetic(self):
        """Distances of the mean and of the width of the kinetic energy from theory, and p of the whole distribution."""
        data = self.data()
        with quiet():
            mean, width = pv.kinetic_energy.distribution(data, strict=False, verbosity=0, bootstrap_seed=1)
            p = pv.kinetic_energy.distribution(data, strict=True, verbosity=0)
        return mean, width, p

    def volumes(self):
        """Variance of the volume and its standard error."""
        count = len(self.volume) / timeseries.statistical_inefficiency(self.volume)
        variance = float(numpy.var(self.volume))
        return variance, variance * math.sqrt(2 / count)

    def spread(self):
        """Variance of the kinetic energy over its canonical value."""
        return float(numpy.var(self.columns["kinetic"]) / (0.5 * self.freedom * self.kt**2))


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def quantiles(a, b):
    """Distances of the slope of ln(P₁/P₂) from theory; none at all (infinite) if the distributions do not overlap."""
    try:
        with quiet():
            return pv.ensemble.check(a.data(), b.data(), verbosity=0)
    except (pv.util.error.InputError, RuntimeError) as e:
        print(f"    {e.message if hasattr(e, 'message') else e}")
        return [math.inf]


def say(what, good, expected):
    verdict = "canonical" if good else "NOT canonical"
    as_it_should = good == expected
    print(f"  {what}: {verdict}{'' if as_it_should else '   <-- not what it should be'}")
    return as_it_should


def exact(name):
    return "Berendsen" not in name


def check_group(component, runs, everything):
    print(f"\n{component}")
    good = fine = True
    for r in runs:
        mean, width, p = r.kinetic()
        ok = abs(mean) < LIMIT and abs(width) < LIMIT and p > P_VALUE
        # beside an exact thermostat, a barostat is told by volumes
        counts = not (r.kind == "npt" and not exact(component))
        good &= ok or not counts
        at = f"kT {r.kt}" + ("" if r.pressure is None else f", P {r.pressure}")
        print(
            f"  {at}: {len(r.columns['kT'])} samples, g {r.freedom}, mean of K {mean:.1f}, width {width:.1f}, p {p:.3f}, "
            f"var K / canonical {r.spread():.3f}"
        )
        if r.kind == "npt":
            variance, error = r.volumes()
            print(f"    V {r.volume.mean():.1f}, var V {variance:.0f} ± {error:.0f}", end="")
            for other in everything:
                if exact(other.component) and other is not r and (other.kind, other.kt, other.pressure) == (r.kind, r.kt, r.pressure):
                    theirs, their_error = other.volumes()
                    distance = (variance - theirs) / math.hypot(error, their_error)
                    print(f"; {distance:+.1f} from that of {other.component}", end="")
                    good &= abs(distance) < LIMIT
            print()
    for a, b in itertools.combinations(runs, 2):
        if a.kt != b.kt and a.pressure != b.pressure:
            continue
        q = max(abs(x) for x in quantiles(a, b))
        what = "potential energy" if a.kind == "nvt" else "volume" if a.kt == b.kt else "enthalpy U + PV"
        print(f"  {what} at {a.path.stem} and {b.path.stem}: slope {q:.1f} from exact")
        good &= q < LIMIT
    fine &= say(runs[0].kind.upper(), good, exact(component))
    return fine


def check_ideal(r):
    """The volume of an ideal gas follows a gamma distribution of shape N + 1, or N where the momentum is conserved."""
    shape = r.n if r.conserved else r.n + 1
    unit = r.kt / r.pressure
    v = r.volume
    inefficiency = timeseries.statistical_inefficiency(v)
    count = len(v) / inefficiency
    mean, variance = float(v.mean()), float(v.var())
    truth, spread = shape * unit, shape * unit**2
    mean_error, variance_error = math.sqrt(spread / count), spread * math.sqrt(2 / count)
    a, b = (mean - truth) / mean_error, (variance - spread) / variance_error
    print(f"\n{r.component}, ideal gas of {r.n} particles: kT/P {unit}, {count:.0f} independent samples")
    print(f"  mean V {mean:.2f} ± {mean_error:.2f}, exact {truth:.2f}")
    print(f"  var V {variance:.1f} ± {variance_error:.1f}, exact {spread:.1f}")
    return say("volume", abs(a) < LIMIT and abs(b) < LIMIT, exact(r.component))


def main():
    runs = [Run(p) for p in sorted(pathlib.Path(sys.argv[1]).glob("*-*-*.csv"))]
    if not runs:
        sys.exit(f"{sys.argv[1]}: no files")
    fine = True
    for kind in ("nvt", "npt"):
        for component, group in itertools.groupby([r for r in runs if r.kind == kind], key=lambda r: r.component):
            fine &= check_group(component, list(group), runs)
    for r in runs:
        if r.kind == "ideal":
            fine &= check_ideal(r)
    sys.exit(0 if fine else 1)


main()
