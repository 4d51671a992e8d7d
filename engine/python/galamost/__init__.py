"""GALAMOST: coarse-grained molecular simulation of polymers and soft matter on GPUs and CPUs.

    import galamost as gm

    sim = gm.Simulation("sim.ron")
    sim.run(10_000)
    print(sim.thermo.kT, sim.state.position)

`gm.Pipeline` writes pipelines from Python, with a class for each component, as `gm.LennardJones`. `gm.read`,
`gm.table`, `gm.stats` and `gm.render` work with files; `gm.interop` converts states to and from other packages.
"""

from . import components, interop
from ._errors import Diagnostic, Error, GalamostWarning, PipelineError, RunError
from ._files import Frames, Picture, Statistics, read, render, stats, table
from ._force import Force, Particles
from ._frame import Frame, Links, State
from ._galamost import VERSION as __version__
from ._galamost import DeviceArray
from ._magic import build_pair, load_ipython_extension  # noqa: F401
from ._notation import Map, Variant, variant
from ._pipeline import Component, Pipeline
from ._plugins import command, load_plugin, plugin_path
from ._simulation import ForceSums, Simulation, ThermoValues

__all__ = [
    "Component", "DeviceArray", "Diagnostic", "Error", "Force", "ForceSums", "Frame", "Frames", "GalamostWarning", "Links", "Map",
    "Particles", "Picture", "Pipeline", "PipelineError", "RunError", "Simulation", "State", "Statistics", "ThermoValues",
    "Variant", "build_pair", "command", "components", "interop", "load_plugin", "plugin_path", "read", "render", "stats", "table", "variant",
]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return getattr(components, name)
    except AttributeError as e:
        raise AttributeError(f"module 'galamost' has no attribute {name!r}: {e}") from None


def __dir__():
    return sorted({*globals(), *dir(components)})
