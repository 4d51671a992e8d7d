"""Errors and warnings."""

import typing
import warnings

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
    """A run failed. `message` says where and why, `notes` what was saved."""

    def __init__(self, text, message, notes):
        super().__init__(text)
        self.message = message
        self.notes = notes

    def __reduce__(self):
        return type(self), (str(self), self.message, self.notes), self.__dict__


class GalamostWarning(UserWarning):
    """A warning of the engine."""


def warn(level=3):
    """Passes the engine's warnings on to Python."""
    for message in _galamost.take_warnings():
        warnings.warn(message, GalamostWarning, stacklevel=level)
