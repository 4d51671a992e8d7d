"""Files outside of a run: particle files, tables, pictures."""

import collections.abc
import os
import time
import types
import warnings
import weakref

import numpy as np

from . import _errors, _galamost, _plugins
from ._frame import Frame, State, whole


#: open simulations with files that lack something until they are closed
WRITING = weakref.WeakSet()


#: seconds after a file was opened in which no access to a known frame opens it again, and a multiple of what that took
PAUSE = 1.0
PAUSES = 10.0


def _complete(path):
    """Lets simulations of this program write what they keep of a file in memory. Returns what the file lacks nevertheless."""
    file = os.path.realpath(path)
    return list(filter(None, (simulation._lacks(file) for simulation in list(WRITING))))


def flush():
    """Lets all simulations of this program write what they keep of growing files in memory."""
    for simulation in list(WRITING):
        simulation._flush_if_idle()


def _warn_if_open(path):
    """Warns if a file belongs to a simulation of this program that has not completed it and cannot do so now."""
    for lacks in _complete(path):
        text = f"{os.fspath(path)} is a file of a simulation that is still open: {lacks}"
        warnings.warn(text, _errors.GalamostWarning, stacklevel=_errors.level())


def _mark(path):
    """Device, number, size, and time of a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _loss(mark, opened):
    """What happened to a file that cannot have the earlier frames any more; None if it can."""
    if mark == opened:
        return None
    if mark is None:
        return "was removed"
    is_other = opened is None or mark[:2] != opened[:2] or mark[2] < opened[2]
    return "was replaced or shortened" if is_other else None


def write_new(path, data, overwrite):
    """Writes a file; unless `overwrite`, it must not exist with other contents."""
    if not overwrite and os.path.exists(path):
        with open(path, "rb") as f:
            if f.read() != data:
                raise FileExistsError(f"{os.fspath(path)} exists with other contents; replace it with overwrite=True")
    with open(path, "wb") as f:
        f.write(data)


def _digest(found):
    """A number that differs for frames with other positions of the first and the last particles. All else may be that of a topology,
    which is another file."""
    position = found["position"]
    return hash(bytes(position[:2048]) + bytes(position[-2048:]))


class Frames(collections.abc.Sequence):
    """The frames of a file; each is read when it is used.

    If the file has grown since, it is opened again by `len`, at the beginning and at the end of a `for` loop, and by an index that is
    negative or beyond the known frames. If it was replaced, shortened, or removed, or if a frame that was read has changed, every
    use is a `gm.Error`; call `gm.read` again. A file that was rewritten and is not shorter is noticed when it is opened again, or by an
    index after a second.
    """

    def __init__(self, path, format=None, fields="", topology=None):
        paths = (str, os.PathLike)
        _errors.require_instance(path, "path", paths, "a file name")
        _errors.require_instance(format, "format", (str, type(None)), "the name of a component")
        _errors.require_instance(fields, "fields", str, "a text such as 'types: [\"A\", \"B\"]'")
        _errors.require_instance(topology, "topology", (*paths, type(None)), "a file name")
        _plugins.load()
        self.path = path
        _warn_if_open(path)
        self._arguments = format, fields, None if topology is None else os.path.abspath(topology)
        # relative paths are those of this time
        self._file = os.path.abspath(path)
        # the digests of the frames with the smallest and the largest number that were read
        self._seen = {}
        begun = time.monotonic()
        try:
            self._take(*self._open(os.fspath(path), None if topology is None else os.fspath(topology)), begun)
        finally:
            _errors.warn()

    def _open(self, path, topology):
        """A reader of the file, its number of frames, and the mark of the file."""
        format, fields, _ = self._arguments
        # before the file is read: what it gains meanwhile is noticed later
        mark = _mark(self._file)
        reader = _galamost.Reader(path, format, fields, topology)
        return reader, reader.frames(), mark

    def _take(self, reader, length, mark, begun):
        self._reader, self._length, self._opened = reader, length, mark
        # the time before which a known frame is read without looking for changes: a long text file is read whole to find its frames
        now = time.monotonic()
        self._due = now + max(PAUSE, PAUSES * (now - begun))

    def _update(self):
        """Finds all frames so far, also those that a simulation of this program has in memory."""
        _complete(self._file)
        self._follow()

    def _follow(self):
        """Opens the file again if it has changed."""
        mark, begun = _mark(self._file), time.monotonic()
        if mark == self._opened:
            return
        # after an error, the next use is one, too
        self._due = 0.0
        what = _loss(mark, self._opened)
        try:
            if what is None:
                reader, length, mark = self._open(self._file, self._arguments[2])
                if length < self._length:
                    what = "was replaced or shortened"
                elif any(_digest(reader.read(number)) != seen for number, seen in self._seen.items()):
                    # rewritten in place, since a file that grows keeps its frames
                    what = "was rewritten"
        finally:
            _errors.warn()
        if what is not None:
            self._fail(what)
        self._take(reader, length, mark, begun)

    def _fail(self, what):
        raise _errors.Error(f"{os.fspath(self.path)} {what} after it was opened; call gm.read again")

    def __len__(self):
        self._update()
        return self._length

    def __iter__(self):
        self._update()
        number = 0
        while number < self._length or number < len(self):
            yield self._frame(number)
            number += 1

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self._frame(i) for i in range(*k.indices(len(self)))]
        k = whole(k, "the number of a frame")
        if not 0 <= k < self._length:
            self._update()
        elif time.monotonic() >= self._due:
            self._follow()
        length = self._length
        number = k + length if k < 0 else k
        if not 0 <= number < length:
            raise IndexError(f"no frame {k}: the file has {length} frames")
        return self._frame(number)

    def _frame(self, number):
        """A known frame."""
        what = _loss(_mark(self._file), self._opened)
        if what is not None:
            self._fail(what)
        try:
            found = self._reader.read(number)
        finally:
            _errors.warn()
        self._remember(number, found)
        return Frame._of(found)

    def _remember(self, number, found):
        """Keeps the digest of a frame that was read, if it is before or after all others. Such a frame must not change."""
        if self._seen.get(number, _digest(found)) != _digest(found):
            self._due = 0.0
            self._fail("was rewritten")
        if number not in self._seen and (len(self._seen) < 2 or not min(self._seen) < number < max(self._seen)):
            if len(self._seen) == 2:
                del self._seen[min(self._seen) if number < min(self._seen) else max(self._seen)]
            self._seen[number] = _digest(found)

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

    Frames that a run appends later are found, too. A simulation of this program that is still open writes its frames before the
    file is read. While it is in `run`, frames may be missing, and there is a warning.
    """
    return Frames(path, format, fields, topology)


def columns(path):
    """The columns of a CSV or Parquet table as arrays by name, and their units by name."""
    found = _galamost.read_table(os.fspath(path))
    names = _different(n for n, _, _ in found)
    values = {n: np.frombuffer(c) if isinstance(c, bytearray) else np.array(c) for n, (_, _, c) in zip(names, found)}
    return values, {n: unit for n, (_, unit, _) in zip(names, found) if unit}


def _different(names):
    """Names of columns such that each is another one: a second `a` is `a:2`."""
    different = []
    for name in map(str, names):
        number, free = 1, name
        while free in different:
            number += 1
            free = f"{name}:{number}"
        different.append(free)
    return different


def table(path):
    """Reads a table that an analyzer wrote, CSV or Parquet. Returns a data frame of pandas, or a `dict` of arrays if
    pandas is not installed. Names of columns are without units: `L (length)` is `L`. The units are in `attrs["units"]`
    of the data frame. A second column `a` is `a:2`. A last line without a line break is left out, with a warning. Another
    warning names a file that a simulation that is still open has not completed."""
    _errors.require_instance(path, "path", (str, os.PathLike), "a file name")
    _warn_if_open(path)
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
    numeric columns without those of time; they all start at the same row. A second column `a` is `a:2`. skip: rows to leave out, or `"auto"` for the
    equilibration. `None` for fewer than four finite values; columns of a table with fewer are left out. NaN and infinite
    values are left out, with a warning that has their number. For a file, the other warnings of `galamost stats` are
    Python warnings, too.
    """
    rows = None if isinstance(skip, str) and skip == "auto" else whole(skip, "`skip`, the number of rows,")
    if rows is not None and rows < 0:
        raise ValueError(f"skip={rows}: the number of rows cannot be negative")
    if isinstance(series, (str, os.PathLike)):
        _warn_if_open(series)
        try:
            found = _galamost.table_statistics(os.fspath(series), rows)
        finally:
            _errors.warn()
        return _by_name(found)
    if hasattr(series, "items") and not (hasattr(series, "ndim") and series.ndim == 1):
        numeric = [(str(n), _series(c, f"`{n}`")) for n, c in series.items() if np.asarray(c).dtype.kind in "fiuc"]
        return _by_name(_statistics(numeric, rows))
    values = _series(series, "`series`")
    found = _statistics([("series", values)], rows)
    missing = np.count_nonzero(~np.isfinite(values))
    if not found and missing:
        text = f"`series` has {missing} NaN or infinite values, which are left out, and too few others; statistics need at least four"
        warnings.warn(text, _errors.GalamostWarning, stacklevel=_errors.level())
    return next(iter(_by_name(found).values()), None)


def _series(values, name):
    """A column of numbers, which must be real, in one dimension, and not masked."""
    _errors.require_unmasked(values, name)
    array = np.asarray(values)
    if np.iscomplexobj(array):
        raise TypeError(f"{name} has complex numbers; give `.real`, `.imag` or `abs(…)` of them")
    if array.ndim != 1:
        raise ValueError(f"{name} must be a series with one dimension, not {array.ndim}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _by_name(found):
    """Statistics by the names of their columns, with a warning about those that floating-point numbers cannot represent."""
    named = {name: Statistics(**s) for name, (_, s) in zip(_different(n for n, _ in found), found)}
    too_large = [n for n, s in named.items() if not np.isfinite([s.mean, s.deviation]).all()]
    if too_large:
        text = "the numbers are too large, so their statistics are infinite or NaN; divide them by a constant"
        text = f"{', '.join(f'`{n}`' for n in too_large)}: {text}"
        warnings.warn(text, _errors.GalamostWarning, stacklevel=_errors.level())
    return named


def _statistics(columns, rows):
    """The statistics of named columns, with warnings about what is left out."""
    try:
        return _galamost.statistics([(n, c.tobytes()) for n, c in columns], rows)
    finally:
        _errors.warn()


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
