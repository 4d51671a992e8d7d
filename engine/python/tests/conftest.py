"""Tests of the installed package, each in a folder of its own."""

import os
import pathlib
import sysconfig

import pytest

PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / "galamost"
SHARE = pathlib.Path(sysconfig.get_path("data")) / "share/galamost"

#: packages that CI does not install
TOO_LARGE = ("could not import 'ovito'",)
#: a small liquid on the CPU with an output file
LIQUID = """(
    seed: 7,
    device: Cpu,
    initial: [ Lattice(lattice: Fcc, cells: [5, 5, 5], density: 0.8), Velocities(kT: 1.0) ],
    forces: [ LennardJones(r_cut: 2.5, pairs: { ("A", "A"): (epsilon: 1.0, sigma: 1.0) }) ],
    integrators: [ NoseHoover(kT: 1.0, tau: 0.5) ],
    analyzers: [ Thermo(every: 10, file: "thermo.csv") ],
    stages: [ (name: "melt", steps: 130, dt: 0.002), (name: "run", steps: 170, dt: 0.004) ],
)
"""


def pytest_configure(config):
    config.addinivalue_line("markers", "seconds: needs several seconds; CI leaves it out (-m 'not seconds')")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With the variable `CI`, a missing tool is a failure, unless it is too large for CI."""
    report = (yield).get_result()
    if report.skipped and os.environ.get("CI") and not any(tool in str(report.longrepr) for tool in TOO_LARGE):
        report.outcome, report.longrepr = "failed", f"skipped, although CI is set: {report.longrepr}"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def liquid(folder):
    """The file of a small liquid."""
    file = folder / "liquid.ron"
    file.write_text(LIQUID)
    return file
