"""Errors and warnings, and checks of what a program gives."""

import difflib
import sys
import types
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
    `close` and `closed` is a `RunError` with the same fields and the same cause, also after `close`. The output files are finished, and the checkpoints remain.
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


def level():
    """The `stacklevel` of a warning of the function that calls this: the first line outside of this package."""
    number, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("galamost", "_collections_abc"):
        number, frame = number + 1, frame.f_back
    return number


def warn():
    """Passes the engine's warnings on to Python."""
    for message in _galamost.take_warnings():
        warnings.warn(message, GalamostWarning, stacklevel=level())


def hint(name, known, what="fields"):
    """The nearest of the known names, or all of them."""
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), lower, 1)
    return f"did you mean `{lower[near[0]]}`?" if near else f"the {what} are {', '.join(known)}"


def no_attribute(owner, name, known=None):
    """The error of reading an attribute that does not exist. Private names have no hint: Python looks for many of them."""
    cls = type(owner)
    if name.startswith("_"):
        return AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
    names = known or [n for n in dir(cls) if not n.startswith("_")]
    advice = "it was never set, or deleted" if name in names else hint(name, names, "attributes")
    return AttributeError(f"{cls.__name__} has no attribute `{name}`; {advice}")


def require_attribute(owner, name, known):
    """Requires that an attribute that a program sets is one of the known ones, private, or one of a derived class. Derived classes
    may have any further attributes."""
    cls = type(owner)
    if name in known or name.startswith("_"):
        return
    present = getattr(cls, name, None)
    if callable(present) or (isinstance(present, property) and present.fset is None):
        raise AttributeError(f"the attribute `{name}` of {cls.__name__} cannot be set")
    if not hasattr(cls, name) and cls.__module__.partition(".")[0] == "galamost":
        raise no_attribute(owner, name, known)


def require_instance(value, name, kinds, expected):
    """Requires an argument of one of these types."""
    if not isinstance(value, kinds):
        raise TypeError(f"`{name}` must be {expected}, not {type(value).__name__}")


class FixedDict(dict):
    """A `dict` that cannot be changed: it shows values of a simulation, and a change would have no effect there."""

    def _refuse(self, *_, **__):
        raise TypeError("this dict shows values of a simulation and cannot be changed; change a copy, `dict(…)`")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self):
        return dict, (dict(self),)


class FixedNamespace(types.SimpleNamespace):
    """Values of a simulation by name, which cannot be set: a change would have no effect there."""

    def __getattr__(self, name):
        raise no_attribute(self, name, sorted({*self.__dict__, *(n for n in dir(type(self)) if not n.startswith("_"))}))

    def __setattr__(self, name, value):
        names = [n for n in dir(self) if not n.startswith("_")]
        if name in names:
            raise AttributeError(f"`{name}` is a value of the simulation at one step and cannot be set")
        raise no_attribute(self, name, names)


def require_unmasked(values, name):
    """Requires that no value is masked, since arrays without masks would have what is below the mask."""
    parts = values if isinstance(values, (list, tuple)) else (values,)
    if any(isinstance(v, np.ma.MaskedArray) and np.ma.is_masked(v) for v in parts):
        raise ValueError(f"{name} has masked values, and masks are not used here; give an array without them, such as "
                         "`a.filled(0.0)` or `a.compressed()`")
