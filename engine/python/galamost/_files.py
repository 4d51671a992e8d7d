"""Files outside of a run: particle files, tables, pictures."""

import collections.abc
import os
import types
import warnings
import weakref

import numpy as np

from . import _errors, _galamost, _plugins
from ._frame import Frame, State, whole


#: open simulations with files that lack something until they are closed
WRITING = weakref.WeakSet()


def _warn_if_open(path, level):
    """Warns if a file belongs to a simulation of this program that has not completed it."""
    file = os.path.realpath(path)
    for simulation in list(WRITING):
        lacks = simulation._lacks(file)
        if lacks:
            text = f"{os.fspath(path)} is a file of a simulation that is still open: {lacks}"
            warnings.warn(text, _errors.GalamostWarning, stacklevel=level)


def _mark(path):
    """Device, number, size, and time of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def write_new(path, data, overwrite):
    """Writes a file; unless `overwrite`, it must not exist with other contents."""
    if not overwrite and os.path.exists(path):
        with open(path, "rb") as f:
            if f.read() != data:
                raise FileExistsError(f"{os.fspath(path)} exists with other contents; replace it with overwrite=True")
    with open(path, "wb") as f:
        f.write(data)


class Frames(collections.abc.Sequence):
    """The frames of a file; each is read when it is used.

    If the file has grown since, it is opened again, so `len` and indices are those of the file at that time. If it was
    replaced, shortened, or removed, every use is a `gm.Error`; call `gm.read` again.
    """

    def __init__(self, path, format=None, fields="", topology=None):
        _plugins.load()
        self.path = path
        _warn_if_open(path, 4)
        self._arguments = format, fields, None if topology is None else os.path.abspath(topology)
        # relative paths are those of this time
        self._file = os.path.abspath(path)
        try:
            self._open(os.fspath(path), None if topology is None else os.fspath(topology))
        finally:
            _errors.warn(4)

    def _open(self, path, topology):
        format, fields, _ = self._arguments
        # before the file is read: what it gains meanwhile is noticed later
        mark = _mark(self._file)
        self._reader = _galamost.Reader(path, format, fields, topology)
        self._length, self._opened = self._reader.frames(), mark

    def _follow(self):
        """Opens the file again if it has changed."""
        mark, opened = _mark(self._file), self._opened
        if mark == opened:
            return
        if None in (mark, opened) or mark[:2] != opened[:2] or mark[2] < opened[2]:
            what = "was removed" if mark is None else "was replaced or shortened"
            raise _errors.Error(f"{os.fspath(self.path)} {what} after it was opened; call gm.read again")
        try:
            self._open(self._file, self._arguments[2])
        finally:
            _errors.warn(5)

    def __len__(self):
        self._follow()
        return self._length

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        length = len(self)
        number = k + length if k < 0 else k
        if not 0 <= number < length:
            raise IndexError(f"no frame {k}: the file has {length} frames")
        try:
            return Frame._of(self._reader.read(number))
        finally:
            _errors.warn()

    def __repr__(self):
        return f"<{self._length} frames of {self.path}>"


def read(path, format=None, fields="", topology=None):
    """Opens a particle file of any format that a plugin reads, and returns its frames.

        for frame in gm.read("traj.gsd"):
            print(frame.step, frame.position.mean(axis=0))

        frames = gm.read("traj.xtc", topology="start.gsd")

    format: the component that reads it, if the file name does not say so.
    fields: further fields of that component, as `'types: ["A", "B"]'`.
    topology: a particle file with types, masses and bonds for formats without them (DCD, XTC, TRR); of a trajectory, its
    last frame.

    Frames that a run appends later are found, too. Of a file of a simulation that is still open, frames may be missing
    until its `run` returns; then there is a warning.
    """
    return Frames(path, format, fields, topology)


def columns(path):
    """The columns of a CSV or Parquet table as arrays by name, and their units by name."""
    found = _galamost.read_table(os.fspath(path))
    values = {n: np.frombuffer(c) if isinstance(c, bytearray) else np.array(c) for n, _, c in found}
    return values, {n: unit for n, unit, _ in found if unit}


def table(path):
    """Reads a table that an analyzer wrote, CSV or Parquet. Returns a data frame of pandas, or a `dict` of arrays if
    pandas is not installed. Names of columns are without units: `L (length)` is `L`. The units are in `attrs["units"]`
    of the data frame. A last line without a line break is left out, with a warning. Another warning names a file that a
    simulation that is still open has not completed."""
    _warn_if_open(path, 3)
    try:
        values, units = columns(path)
    finally:
        _errors.warn()
    try:
        import pandas
    except ImportError:
        return values
    frame = pandas.DataFrame(values)
    frame.attrs["units"] = units
    return frame


class Statistics(types.SimpleNamespace):
    """Statistics of a series: `mean`, `error` (standard error), `interval` (half width of the 95 % interval),
    `deviation`, `inefficiency` (rows for one independent value), `drift`, `drift_error`, `rows`, `skipped`, `start`
    (first row after equilibration), `equilibrated`, `constant`."""

    def __str__(self):
        return f"{self.mean:.6g} ± {self.error:.2g}"


def stats(series, skip="auto"):
    """Mean and standard error of a correlated series, as `galamost stats` computes them.

    `series` is an array, or a table (file name, data frame, mapping), for which the result is a `dict` of the
    numeric columns without those of time; they all start at the same row. skip: rows to leave out, or `"auto"` for the
    equilibration. `None` for fewer than four finite values; columns of a table with fewer are left out. NaN and infinite
    values are left out, with a warning that has their number. For a file, the other warnings of `galamost stats` are
    Python warnings, too.
    """
    rows = None if isinstance(skip, str) and skip == "auto" else whole(skip, "`skip`, the number of rows,")
    if rows is not None and rows < 0:
        raise ValueError(f"skip={rows}: the number of rows cannot be negative")
    if isinstance(series, (str, os.PathLike)):
        _warn_if_open(series, 3)
        try:
            found = _galamost.table_statistics(os.fspath(series), rows)
        finally:
            _errors.warn()
        return {n: Statistics(**s) for n, s in found}
    if hasattr(series, "items") and not (hasattr(series, "ndim") and series.ndim == 1):
        numeric = [(str(n), _unmasked(c, f"`{n}`")) for n, c in series.items() if np.asarray(c).dtype.kind in "fiu"]
        return {n: Statistics(**s) for n, s in _statistics(numeric, rows)}
    values = _unmasked(series, "`series`")
    if values.ndim != 1:
        raise ValueError(f"a series has one dimension, not {values.ndim}")
    found = _statistics([("series", values)], rows)
    missing = np.count_nonzero(~np.isfinite(values))
    if not found and missing:
        text = f"`series` has {missing} NaN or infinite values, which are left out, and too few others; statistics need at least four"
        warnings.warn(text, _errors.GalamostWarning, stacklevel=2)
    return Statistics(**found[0][1]) if found else None


def _unmasked(values, name):
    """A column of numbers, which must not be masked."""
    _errors.require_unmasked(values, name)
    return np.ascontiguousarray(values, dtype=np.float64)


def _statistics(columns, rows):
    """The statistics of named columns, with warnings about what is left out."""
    try:
        return _galamost.statistics([(n, c.tobytes()) for n, c in columns], rows)
    finally:
        _errors.warn(4)


class Picture:
    """A picture as PNG; notebooks show it."""

    def __init__(self, data):
        self.data = data

    def _repr_png_(self):
        return self.data

    def save(self, path, overwrite=False):
        """Writes the picture. Raises a `FileExistsError` if there is another file, unless `overwrite`."""
        write_new(path, self.data, overwrite)


def _option(value):
    """The text of an option: of a list, its values with commas between them."""
    return ",".join(map(_option, value)) if isinstance(value, (list, tuple)) else str(value)


def render(source, **options):
    """Draws a simulation, a `Frame`, or a frame of a file: the last one, or number `frame`. Options are those of
    `galamost render`: `size="600x450"`, `view="30,20"`, `color="type"`, `range=(0, 1)`, `colors="A=red"`, `radius`,
    `shape`, `hide=["W"]`, `translucent`, `opaque=True`, `slice=("z", -1, 1)` or a list of slices, `background`,
    `orthographic=True`, `bonds=False`, `no_box=True`, `no_scale_bar=True`, `whole=True`, `key=True`. `box=False` is
    `no_box=True`, and `scale_bar=False` is `no_scale_bar=True`."""
    frame = options.pop("frame", None)
    if isinstance(source, (str, os.PathLike)):
        source = read(source)[-1 if frame is None else whole(frame, "`frame`")]
    elif frame is not None:
        raise TypeError(f"`frame` selects a frame of a file, but `source` is a {type(source).__name__}")
    if not isinstance(source, Frame):
        state = source if isinstance(source, State) else getattr(source, "state", None)
        if not isinstance(state, State):
            raise TypeError(f"`source` must be a simulation, a Frame or a file name, not {type(source).__name__}")
        source = state.copy()
    state = source._native()
    source._require_owners()
    options.setdefault("size", "600x450")
    text = {k: _option(v) for k, v in options.items()
            if v is not None and not (isinstance(v, (list, tuple)) and not v)}
    return Picture(bytes(_galamost.render(state, text)))
