"""Files outside of a run: particle files, tables, pictures."""

import collections.abc
import os
import types

import numpy as np

from . import _errors, _galamost, _plugins
from ._frame import Frame, State, whole


def write_new(path, data, overwrite):
    """Writes a file; unless `overwrite`, it must not exist with other contents."""
    if not overwrite and os.path.exists(path):
        with open(path, "rb") as f:
            if f.read() != data:
                raise FileExistsError(f"{os.fspath(path)} exists with other contents; replace it with overwrite=True")
    with open(path, "wb") as f:
        f.write(data)


class Frames(collections.abc.Sequence):
    """The frames of a file; each is read when it is used."""

    def __init__(self, path, format=None, fields="", topology=None):
        _plugins.load()
        self.path = path
        try:
            self._reader = _galamost.Reader(os.fspath(path), format, fields, None if topology is None else os.fspath(topology))
            self._length = self._reader.frames()
        finally:
            _errors.warn(4)

    def __len__(self):
        return self._length

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        number = k + len(self) if k < 0 else k
        if not 0 <= number < len(self):
            raise IndexError(f"no frame {k}: the file has {len(self)} frames")
        try:
            return Frame._of(self._reader.read(number))
        finally:
            _errors.warn()

    def __repr__(self):
        return f"<{len(self)} frames of {self.path}>"


def read(path, format=None, fields="", topology=None):
    """Opens a particle file of any format that a plugin reads, and returns its frames.

        for frame in gm.read("traj.gsd"):
            print(frame.step, frame.position.mean(axis=0))

        frames = gm.read("traj.xtc", topology="start.gsd")

    format: the component that reads it, if the file name does not say so.
    fields: further fields of that component, as `'types: ["A", "B"]'`.
    topology: a particle file with types, masses and bonds for formats without them (DCD, XTC, TRR); of a trajectory, its
    last frame.
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
    of the data frame. A last line without a line break is left out, with a warning."""
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
    equilibration. `None` for fewer than four values; columns of a table with fewer are left out. For a file, the
    warnings of `galamost stats` are Python warnings.
    """
    rows = None if isinstance(skip, str) and skip == "auto" else whole(skip, "`skip`, the number of rows,")
    if rows is not None and rows < 0:
        raise ValueError(f"skip={rows}: the number of rows cannot be negative")
    if isinstance(series, (str, os.PathLike)):
        try:
            found = _galamost.table_statistics(os.fspath(series), rows)
        finally:
            _errors.warn()
        return {n: Statistics(**s) for n, s in found}
    if hasattr(series, "items") and not (hasattr(series, "ndim") and series.ndim == 1):
        numeric = [(str(n), np.asarray(c)) for n, c in series.items() if np.asarray(c).dtype.kind in "fiu"]
        found = _galamost.statistics([(n, np.ascontiguousarray(c, dtype=np.float64).tobytes()) for n, c in numeric], rows)
        return {n: Statistics(**s) for n, s in found}
    values = np.ascontiguousarray(series, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"a series has one dimension, not {values.ndim}")
    found = _galamost.statistics([("", values.tobytes())], rows)
    return Statistics(**found[0][1]) if found else None


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
