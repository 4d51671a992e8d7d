"""A class for each component of the installed plugins: `galamost.components.LennardJones`."""

from . import _pipeline, _plugins


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return _pipeline.make(name)


def __dir__():
    return sorted(_plugins.descriptions())
