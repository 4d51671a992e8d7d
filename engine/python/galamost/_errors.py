"""Errors and warnings, and checks of what a program gives."""

import difflib
import typing
import warnings

import numpy as np

from . import _galamost


class Error(Exception):
    """An error of GALAMOST."""


class Diagnostic(typing.NamedTuple):
    """One mistake in a pipeline or in a file that it names."""

    file: str
    line: typing.Optional[int]
    column: typing.Optional[int]
    component: typing.Optional[str]
    message: str


class PipelineError(Error, ValueError):
    """The input is wrong; nothing was done. The text is that of the command line, with arguments instead of its options.

    `errors` lists every mistake that was found, each with file, line, column, component and message.
    """

    def __init__(self, text, errors):
        super().__init__(text)
        self.errors = [Diagnostic(*e) for e in errors]

    def __reduce__(self):
        # processes of multiprocessing send their exceptions to each other
        return type(self), (str(self), self.errors), self.__dict__


class RunError(Error, RuntimeError):
    """A run failed. `message` says where and why, `notes` what was saved.

    `step` is the step at which it failed, `component` the name of the component that reported it, `tag` the tag of the
    particle; each is None where it is unknown. Afterwards the state of the simulation cannot be used: every use except
    `close` and `closed` is a `RunError` with the same fields. The output files are finished, and the checkpoints remain.
    """

    def __init__(self, text, message, notes, step=None, component=None, tag=None):
        super().__init__(text)
        self.message = message
        self.notes = notes
        self.step, self.component, self.tag = step, component, tag

    def __reduce__(self):
        return type(self), (str(self), self.message, self.notes, self.step, self.component, self.tag), self.__dict__


class GalamostWarning(UserWarning):
    """A warning of the engine."""


def warn(level=3):
    """Passes the engine's warnings on to Python."""
    for message in _galamost.take_warnings():
        warnings.warn(message, GalamostWarning, stacklevel=level)


def hint(name, known, what="fields"):
    """The nearest of the known names, or all of them."""
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), lower, 1)
    return f"did you mean `{lower[near[0]]}`?" if near else f"the {what} are {', '.join(known)}"


def require_attribute(owner, name, known):
    """Requires that an attribute that a program sets is one of the known ones, private, or one that a derived class has."""
    cls = type(owner)
    if name in known or name.startswith("_"):
        return
    present = getattr(cls, name, None)
    if callable(present) or (isinstance(present, property) and present.fset is None):
        raise AttributeError(f"the attribute `{name}` of {cls.__name__} cannot be set")
    if not hasattr(cls, name):
        names = known or [n for n in dir(cls) if not n.startswith("_")]
        raise AttributeError(f"{cls.__name__} has no attribute `{name}`; {hint(name, names, 'attributes')}")


def require_unmasked(values, name):
    """Requires that no value is masked, since arrays without masks would have what is below the mask."""
    parts = values if isinstance(values, (list, tuple)) else (values,)
    if any(isinstance(v, np.ma.MaskedArray) and np.ma.is_masked(v) for v in parts):
        raise ValueError(f"{name} has masked values, and masks are not used here; give an array without them, such as "
                         "`a.filled(0.0)` or `a.compressed()`")
