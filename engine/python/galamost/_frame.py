"""States of a system: frames of files, and the state of a simulation."""

import collections.abc
import operator
import types
from numbers import Real

import numpy as np

from . import _galamost
from ._errors import FixedDict, no_attribute, require_attribute, require_unmasked

#: dtype and width of the arrays that every state has
ARRAYS = {
    "position": (np.float64, 3),
    "velocity": (np.float64, 3),
    "image": (np.int32, 3),
    "mass": (np.float64, 1),
    "type": (np.uint32, 1),
}
LINKS = {"bonds": 2, "angles": 3, "dihedrals": 4, "impropers": 4}
#: attributes of frames that can be set
ATTRIBUTES = (*ARRAYS, "box", "tilt", "step", "dimensions", "types", "arrays", *LINKS)
#: width of each further array that the engine knows, and whether it has integers
KNOWN = {name: (width, integer) for name, width, integer in _galamost.known_arrays()}


class Links:
    """Bonds, angles, dihedrals or impropers: names of types, the type of each link, and the tags of its members.

        gm.Frame(x, box, bonds=gm.Links(types=["backbone"], type=[0, 0], members=[[0, 1], [1, 2]]))

    `width` is the number of members: 2 for bonds, 3 for angles, 4 for dihedrals and impropers.
    """

    def __init__(self, types=(), type=(), members=(), width=2):
        self._width = width
        self.types, self.type, self.members = types, type, members
        self._require_rows("type")

    def __setattr__(self, name, value):
        require_attribute(self, name, ("types", "type", "members"))
        if name == "types":
            value = _texts(value, "types")
        elif name == "type":
            value = integers(_numbers(value, "type", "(n,)"), np.uint32, "type").copy()
            if value.ndim != 1:
                raise ValueError(f"type has the shape {value.shape}, not (n,)")
        elif name == "members":
            members = integers(_numbers(value, "members", f"(n, {self._width})"), np.uint32, "members")
            value = _in_rows(members, self._width, "members", "; give `width`").copy()
        super().__setattr__(name, value)

    def __getattr__(self, name):
        raise no_attribute(self, name, ("types", "type", "members"))

    def _require_rows(self, name):
        """Requires one type for each row of members. `name` is that of the types, for the message."""
        if self.type.shape != (len(self.members),):
            raise ValueError(f"{name} has the shape {self.type.shape}, not {(len(self.members),)}: one number for each row of members")

    @classmethod
    def _of(cls, value, name):
        """The links of a frame: `Links`, a `dict` of the arguments, or `None`."""
        width = LINKS[name]
        if value is None:
            return cls(width=width)
        if isinstance(value, dict) and set(value) == {"types", "type", "members"}:
            try:
                return cls(**value, width=width)
            except (TypeError, ValueError) as e:
                raise type(e)(f"`{name}`: {e}") from None
        if not isinstance(value, Links):
            found = f"a dict of {', '.join(map(repr, value))}" if isinstance(value, dict) else type(value).__name__
            raise TypeError(f"`{name}` must be gm.Links(types, type, members, width={width}) or a dict with `types`, `type` and "
                            f"`members`, not {found}")
        if value.members.shape[1:] != (width,):
            if len(value):
                raise ValueError(f"`{name}` have {width} members each, not {value.members.shape[1]}; give gm.Links width={width}")
            return cls(value.types, width=width)
        # those of the state of a simulation cannot be changed, those of a frame can
        return cls(value.types, value.type, value.members, width) if isinstance(value, FixedLinks) else value

    def __len__(self):
        return len(self.type)

    def __repr__(self):
        return f"<{len(self)} links of types {', '.join(self.types)}>"


class FixedLinks(Links):
    """The links of the state of a simulation, which cannot be changed."""

    def __init__(self, types, type, members):
        self.__dict__.update(types=tuple(types), type=type, members=members, _width=members.shape[1])

    def __setattr__(self, name, value):
        require_attribute(self, name, ("types", "type", "members"))
        raise AttributeError(f"{name} cannot be set during a run; `state.copy()` gives a Frame with links that can be changed")


def _in_rows(array, width, name, hint=""):
    """An array with rows of `width` numbers, also from a flat list of all rows."""
    if array.size == 0 or (array.ndim == 1 and array.size % width == 0):
        return array.reshape(-1, width)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} has the shape {array.shape}, not (n, {width}){hint}")
    return array


def _numbers(values, name, shape):
    """The array of given values, which must be real numbers. `shape` is the expected shape, for messages."""
    require_unmasked(values, name)
    try:
        array = np.asarray(values)
    except ValueError:
        lengths = dict.fromkeys(len(row) if hasattr(row, "__len__") else 1 for row in values)
        found = f" ({', '.join(map(str, list(lengths)[:4]))})" if len(lengths) > 1 else ""
        raise ValueError(f"{name} has rows of different lengths{found}, not the shape {shape}") from None
    # objects can be integers of any size
    are_numbers = array.dtype.kind == "O" and all(isinstance(value, Real) for value in array.flat)
    if array.dtype.kind not in "biuf" and not are_numbers:
        raise TypeError(f"{name} has the shape {array.shape} and the type {array.dtype}; it must have numbers and the shape {shape}")
    return array


def _shaped(array, name, shape, hint=""):
    """An array, which must have this shape. A column is one number for each row."""
    if array.shape == (*shape, 1) and len(shape) == 1:
        array = array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}{hint}")
    return array


def _filled(values, name, shape, hint="", dtype=np.float64):
    """A new array of given values, which must be finite numbers and have this shape."""
    array = _shaped(_numbers(values, name, shape), name, shape, hint)
    if np.issubdtype(dtype, np.integer):
        return integers(array, dtype, name).copy()
    array = np.array(array, dtype=dtype)
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        at, value = _place(array, wrong[0])
        raise ValueError(f"{name}{at} is {value}; it must be finite")
    return array


def _further(values, name, n):
    """A further array of a frame, which must have numbers in one row for each particle."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"`arrays` has an array with the name {name!r}; the name must be a text that is not empty")
    if name in ARRAYS:
        raise ValueError(f"`arrays` has an array with the name {name!r}; give it as the argument `{name}`")
    array = _numbers(values, name, f"({n}, …)")
    if array.shape[:1] != (n,):
        raise ValueError(f"{name} has the shape {array.shape}, not ({n},) or ({n}, width)")
    if name not in KNOWN:
        return array
    width, _ = KNOWN[name]
    return _shaped(array, name, (n, width) if width > 1 else (n,))


def _array(buffer, dtype, width, fixed=False):
    """The array in a buffer. With `fixed` it cannot be made writable."""
    array = np.frombuffer(memoryview(buffer).toreadonly() if fixed else buffer, dtype=dtype)
    return array.reshape(-1, width) if width > 1 else array


class Frame:
    """A state: arrays in tag order, with one row for each particle.

    `position` (wrapped, −L/2 ≤ x < L/2), `image`, `velocity`, `mass`, `type` (index into `types`), `box`
    (three lengths), `tilt` (the tilt factors xy, xz, yz of a triclinic box), `step`, `dimensions` (2 if the third length of the box is 0), `arrays` (further arrays by
    name, as `charge`), and `bonds`, `angles`, `dihedrals`, `impropers`: `Links`, or a `dict` with `types`, `type` and `members`.
    """

    def __init__(self, position, box, types=("A",), type=None, velocity=None, image=None, mass=None, step=0,
                 dimensions=None, arrays=None, bonds=None, angles=None, dihedrals=None, impropers=None,
                 tilt=(0.0, 0.0, 0.0)):
        position = _in_rows(_numbers(position, "position", "(n, 3)"), 3, "position")
        n = len(position)
        self.position = _filled(position, "position", (n, 3))
        self.box = _filled(box, "box", (3,), ": the lengths in x, y and z")
        self.tilt = _filled(tilt, "tilt", (3,), ": the tilt factors xy, xz and yz")
        self.types = _texts(types, "types")
        _require_unique(self.types, "types")
        self.type = np.zeros(n, np.uint32) if type is None else _filled(type, "type", (n,), dtype=np.uint32)
        self.velocity = np.zeros((n, 3)) if velocity is None else _filled(velocity, "velocity", (n, 3))
        self.image = np.zeros((n, 3), np.int32) if image is None else _filled(image, "image", (n, 3), dtype=np.int32)
        self.mass = np.ones(n) if mass is None else _filled(mass, "mass", (n,))
        # as in pipelines, a third length of 0 makes the system two-dimensional
        dimensions = (2 if self.box[2] == 0 else 3) if dimensions is None else dimensions
        self.step, self.dimensions = _step(step), whole(dimensions, "`dimensions`")
        if arrays is not None and not isinstance(arrays, collections.abc.Mapping):
            raise TypeError(f"`arrays` must be a dict of arrays by name, not {arrays.__class__.__name__}")
        self.arrays = {k: np.array(_further(v, k, n)) for k, v in (arrays or {}).items()}
        self.bonds, self.angles, self.dihedrals, self.impropers = bonds, angles, dihedrals, impropers

    def __setattr__(self, name, value):
        require_attribute(self, name, ATTRIBUTES)
        require_unmasked(value, name)
        super().__setattr__(name, Links._of(value, name) if name in LINKS else value)

    def __getattr__(self, name):
        raise no_attribute(self, name, (*ATTRIBUTES, "unwrapped", "cell", "type_names"))

    @classmethod
    def _of(cls, d, fixed=False):
        """The frame of a dictionary of the engine. With `fixed` nothing in it can be changed."""
        frame = cls.__new__(cls)
        for name, (dtype, width) in ARRAYS.items():
            setattr(frame, name, _array(d[name], dtype, width, fixed))
        frame.box, frame.tilt = np.array(d["box"]), np.array(d["tilt"])
        frame.step, frame.dimensions = d["step"], d["dimensions"]
        frame.types = d["types"]
        frame.arrays = {
            name: _array(data, np.int32 if integer else np.float64, width, fixed)
            for name, (width, integer, data) in d["arrays"].items()
        }
        for name, width in LINKS.items():
            types, kinds, members = d[name]
            kinds, members = _array(kinds, np.uint32, 1, fixed), _array(members, np.uint32, width, fixed)
            # not by `setattr`, which makes links that can be changed
            frame.__dict__[name] = FixedLinks(types, kinds, members) if fixed else Links(types, kinds, members, width)
        if fixed:
            box, tilt = (np.frombuffer(a.tobytes()) for a in (frame.box, frame.tilt))
            frame.__dict__.update(box=box, tilt=tilt, types=tuple(frame.types), arrays=FixedDict(frame.arrays))
        return frame

    def _native(self):
        """The form that the engine takes."""
        n = len(self.position)
        types = _texts(self.types, "types")
        _require_unique(types, "types")
        box, tilt = _filled(self.box, "box", (3,)).tolist(), _filled(self.tilt, "tilt", (3,)).tolist()
        d = {"box": box, "tilt": tilt, "step": _step(self.step), "dimensions": self.dimensions,
             "types": types, "arrays": {}}
        for name, (dtype, width) in ARRAYS.items():
            d[name] = checked(getattr(self, name), name, n, dtype, width)
        for name, a in self.arrays.items():
            a = _known(_further(a, name, n), name)
            integer = np.issubdtype(a.dtype, np.integer)
            width = int(np.prod(a.shape[1:], dtype=int))
            d["arrays"][name] = (width, bool(integer), checked(a.reshape(n, width), name, n, np.int32 if integer else np.float64, width))
        for name in LINKS:
            links = getattr(self, name)
            _require_unique(_texts(links.types, f"{name}.types"), f"{name}.types")
            links._require_rows(f"{name}.type")
            kinds, members = (integers(getattr(links, a), np.uint32, f"{name}.{a}") for a in ("type", "members"))
            d[name] = (links.types, kinds.tobytes(), members.tobytes())
        return d

    def _require_owners(self):
        """Requires that the type of each particle and the members of bonds exist."""
        given = [("type", self.type, len(self.types), "type")]
        given += [(f"{name}.members", getattr(self, name).members, len(self), "particle") for name in LINKS]
        for name, numbers, n, what in given:
            numbers = np.asarray(numbers)
            wrong = np.argwhere(numbers >= n)
            if len(wrong):
                at, value = _place(numbers, wrong[0])
                raise ValueError(f"{name}{at} is {value}, but there {'is' if n == 1 else 'are'} {n} {what}{'' if n == 1 else 's'}, numbered from 0")

    def __len__(self):
        return len(self.position)

    def __repr__(self):
        return f"<{type(self).__name__} of step {self.step}: {len(self)} particles, box {[float(x) for x in self.box]}>"

    @property
    def unwrapped(self):
        """Positions without periodic boundaries: `position + image @ cell`."""
        return self.position + self.box * self.image if not self.tilt.any() else self.position + self.image @ self.cell

    @property
    def cell(self):
        """The edges a, b and c of the box, one in each row."""
        (lx, ly, lz), (xy, xz, yz) = self.box, self.tilt
        return np.array([[lx, 0.0, 0.0], [xy * ly, ly, 0.0], [xz * lz, yz * lz, lz]])

    @property
    def type_names(self):
        """The name of each particle's type."""
        return np.array(self.types)[self.type]


def _texts(types, name):
    """The list of names of types, which must be texts."""
    if isinstance(types, (str, bytes)) or not isinstance(types, collections.abc.Iterable):
        raise TypeError(f"{name} must be a list of names, not {types!r}")
    types = list(types)
    wrong = next((k for k, t in enumerate(types) if not isinstance(t, str)), None)
    if wrong is not None:
        raise TypeError(f"{name}[{wrong}] is {types[wrong]!r}; it must be a name in quotes")
    return types


def _require_unique(types, name):
    """Requires that each type has another name."""
    twice = next((t for k, t in enumerate(types) if t in types[:k]), None)
    if twice is not None:
        raise ValueError(f"{name} has {twice!r} twice; each type needs another name")


def _known(array, name):
    """An array of the engine with numbers of its kind. Numbers that are not whole are a `ValueError` if the array has integers."""
    _, integer = KNOWN.get(name, (None, None))
    if integer and array.dtype.kind == "f":
        return integers(array, np.int32, name)
    return array.astype(np.float64) if integer is False and array.dtype.kind in "iu" else array


def whole(value, name):
    """A whole number; also one like 1e5."""
    require_unmasked(value, name)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be whole, not {value!r}")


def _step(value):
    """The number of a step."""
    step, largest = whole(value, "`step`"), np.iinfo(np.int64).max
    if not 0 <= step <= largest:
        raise ValueError(f"`step` is {step}; it must be in 0…{largest}")
    return step


def _place(array, index):
    """The text `[1, 2]` of an index, and the value there."""
    place = tuple(int(i) for i in index)
    return f"[{', '.join(map(str, place))}]" if place else "", array[place]


def integers(values, dtype, name):
    """An array of integers as `dtype`. A value that is not whole or does not fit into it is a `ValueError`."""
    require_unmasked(values, name)
    array = np.asarray(values)
    if array.dtype.kind in "iufO" and not np.can_cast(array.dtype, dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        # also true for NaN
        wrong = np.argwhere(~((array >= low) & (array <= high)).astype(bool))
        if len(wrong):
            at, value = _place(array, wrong[0])
            raise ValueError(f"{name}{at} is {value}; it must be in {low}…{high}")
        parts = np.argwhere((array % 1 != 0).astype(bool)) if array.dtype.kind in "fO" else ()
        if len(parts):
            at, value = _place(array, parts[0])
            raise ValueError(f"{name}{at} is {value}; it must be a whole number")
    return np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)


def checked(values, name, n, dtype, width):
    """The bytes of an array, which must have one row for each particle."""
    shape = (n, width) if width > 1 else (n,)
    array = _shaped(_numbers(values, name, shape), name, shape)
    if not np.can_cast(array.dtype, dtype, "same_kind") and not (
        np.issubdtype(dtype, np.integer) and np.issubdtype(array.dtype, np.integer)
    ):
        raise TypeError(f"{name} has the type {array.dtype}, not {np.dtype(dtype)}")
    if np.issubdtype(dtype, np.integer):
        array = integers(array, dtype, name)
    return np.ascontiguousarray(array, dtype=dtype).tobytes()


class State:
    """The state of a simulation at its current step: the attributes of a `Frame`.

    Arrays are copies in tag order. Nothing in them, nor in `arrays`, `types` and the links, can be changed; `copy()` gives a
    `Frame` that can. `position`, `image` and `velocity` can be set, and the forces are then computed again. Wrong values are a `PipelineError` or another `ValueError`, and the state does not change.
    """

    def __init__(self, sim):
        self._sim = sim

    def __getattr__(self, name):
        if name not in _STATE:
            raise no_attribute(self, name, _STATE)
        value = getattr(self._sim._frame(), name)
        if isinstance(value, np.ndarray):
            # also those that are computed for each call, where a change would be lost
            value.flags.writeable = False
        return value

    def __dir__(self):
        return list(_STATE)

    def __len__(self):
        return self._sim.n

    def __repr__(self):
        return repr(self._sim._frame()).replace("<Frame", "<State")

    def copy(self):
        """A `Frame` with the state, which does not change any more."""
        return Frame._of(self._sim._read())

    @property
    def force(self):
        """The sum of all forces on each particle."""
        return self._force(fixed=True)

    def _force(self, fixed):
        return _array(self._sim._call("net_force"), np.float64, 3, fixed)

    @property
    def dlpack(self):
        """`position`, `velocity`, `image`, `mass`, `type` and `force` in the memory of the run's device, in tag order,
        without a copy to the host: for `cupy.from_dlpack`, `torch.from_dlpack` and others. A `DeviceArray` each on a
        GPU, NumPy arrays on the CPU. They do not change with the run."""
        arrays = self._sim._call("device_state")
        if arrays is None:
            frame = self.copy()
            # NumPy before 2.1 gives only writable arrays to other libraries
            arrays = {name: getattr(frame, name) for name in ARRAYS} | {"force": self._force(fixed=False)}
        return types.SimpleNamespace(**arrays)

    def _set(self, **arrays):
        n = self._sim.n
        given = {k: checked(v, k, n, *ARRAYS[k]) for k, v in arrays.items()}
        self._sim._replace(**{k: given.get(k) for k in ("position", "image", "velocity")})

    def __setattr__(self, name, value):
        if name.startswith("_"):
            return object.__setattr__(self, name, value)
        if name not in ("position", "image", "velocity"):
            if name not in _STATE:
                raise no_attribute(self, name, _STATE)
            raise AttributeError(f"{name} cannot be set during a run; only position, image and velocity can")
        self._set(**{name: value})


#: the attributes of states
_STATE = tuple(dict.fromkeys(n for n in (*dir(Frame), *dir(State), *ATTRIBUTES) if not n.startswith("_")))
