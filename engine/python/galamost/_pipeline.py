"""Pipelines as objects: a class for each component, made from the plugins' own descriptions."""

import collections.abc
import difflib
import functools
import inspect
import keyword
import os
import re

from . import _errors, _galamost, _plugins
from ._errors import hint as _hint
from ._files import write_new
from ._force import Force
from ._notation import Map, Variant, to_ron

#: the file name of pipelines that are in no file
NO_FILE = "<python>"
LISTS = ("initial", "forces", "integrators", "updaters", "analyzers", "ensemble")
STAGES = 'dicts such as {"steps": 1000, "dt": 0.004}'


def _named(variant, field):
    """Gives texts in a named value the form of names where the description of the field has them, as in `side: Inside`. A value
    without the name of a field, as in `Not(group)`, has the form of the field itself."""
    example = re.search(rf"`{re.escape(variant.name)}\(([^`]*)\)`", field["kind"])
    if not example:
        return variant
    if isinstance(variant.content, tuple):
        texts = '"' in example[1]
        return variant if texts else Variant(variant.name, tuple(_values(v, field) for v in variant.content))

    def one(key, value):
        is_name = isinstance(value, str) and value.isidentifier() and re.search(rf"\b{re.escape(key)}: [A-Z]", example[1])
        return Variant(value) if is_name else value

    return Variant(variant.name, {k: one(k, v) for k, v in variant.content.items()})


def _values(value, field):
    """Gives a value or a list of values the form that the field has."""
    return type(value)(_values(v, field) for v in value) if isinstance(value, (list, tuple)) else _shape(value, field)


def _shape(value, field):
    """Gives a value the form that its field has in a pipeline: maps, names of variants, nested fields."""
    kind, nested = field["kind"], {f["name"]: f for f in field["fields"]}
    if kind.startswith("for each") and isinstance(value, dict):
        rest = kind.split("}: ", 1)[-1]
        row = {**field, "kind": rest}
        return Map({k: _shape(v, row) for k, v in value.items()})
    if kind.startswith("a list of: ") and isinstance(value, (list, tuple)):
        row = {**field, "kind": kind[len("a list of: "):]}
        return type(value)(_shape(v, row) for v in value)
    if isinstance(value, dict) and not isinstance(value, Map):
        return {k: _shape(v, nested[k]) if k in nested else v for k, v in value.items()}
    if isinstance(value, Variant) and isinstance(value.content, (dict, tuple)):
        return _named(value, field)
    if isinstance(value, str) and "in quotes" not in kind and value.isidentifier():
        return Variant(value)
    return value


class Component:
    """A component of a pipeline. Its parameters are keywords, and attributes that can be read and set; one that is a word of Python
    has `_` appended, as `lambda_`. A parameter that was not given is None. `fields` are those that were given, as they are written."""

    name = None
    descriptions = ()

    def __init__(self, **fields):
        known = self._known()
        fields = {self._written(name): v for name, v in fields.items()}
        for name in fields:
            if name not in known:
                raise TypeError(f"{self.name} has no field `{name}`; {_hint(name, known)}")
        required = [{f["name"] for f in d["fields"] if f["default"] is None} for d in self.descriptions]
        missing = min((r - set(fields) for r in required), key=len, default=set())
        if missing:
            raise TypeError(f"{self.name} needs {', '.join(f'`{m}`' for m in sorted(missing))}")
        self.fields = {name: _shape(value, known[name]) for name, value in fields.items() if value is not None}

    @classmethod
    def _known(cls):
        return {f["name"]: f for d in cls.descriptions for f in d["fields"]}

    @classmethod
    def _written(cls, name):
        """The name of a parameter in a pipeline."""
        return name[:-1] if name.endswith("_") and name[:-1] in cls._known() else name

    def __getattr__(self, name):
        written, known = self._written(name), self._known()
        if name.startswith("_") or name == "fields" or written not in known:
            raise AttributeError(f"{self.name} has no field `{name}`; {_hint(name, known)}")
        return self.fields.get(written)

    def __setattr__(self, name, value):
        if name == "fields":
            super().__setattr__(name, value)
            return
        written, known = self._written(name), self._known()
        if written not in known:
            raise AttributeError(f"{self.name} has no field `{name}`; {_hint(name, known)}")
        if value is None:
            self.fields.pop(written, None)
        else:
            self.fields[written] = _shape(value, known[written])

    def __dir__(self):
        return sorted({*super().__dir__(), *(n + "_" * keyword.iskeyword(n) for n in self._known())})

    @property
    def lists(self):
        """The lists of a pipeline in which the component may be."""
        return [d["list"] for d in self.descriptions]

    def _variant(self):
        return Variant(self.name, self.fields)

    def __eq__(self, other):
        return isinstance(other, Component) and (self.name, self.fields) == (other.name, other.fields)

    __hash__ = None

    def __repr__(self):
        return to_ron(self._variant(), width=None)


@functools.lru_cache(maxsize=None)
def make(name):
    """The class of a component."""
    found = _plugins.descriptions().get(name)
    if found is None:
        near = difflib.get_close_matches(name, _plugins.descriptions(), 1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise AttributeError(f"there is no component `{name}`{hint}")
    parameters = {}
    for d in found:
        for f in sorted(d["fields"], key=lambda f: f["default"] is not None):
            default = inspect.Parameter.empty if f["default"] is None else None
            word = f["name"] + "_" * keyword.iskeyword(f["name"])
            parameters.setdefault(word, inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=default))
    cls = type(name, (Component,), {"name": name, "descriptions": tuple(found), "__module__": "galamost.components"})
    cls.__doc__ = "\n\n".join(_page(d) for d in found)
    cls.__signature__ = inspect.Signature(list(parameters.values()))
    return cls


def _page(d):
    lines = [d["doc"], "", f"Listed in `{d['list']}`. Fields:"]
    for f in d["fields"]:
        facts = [f["kind"], f["unit"], f["range"], "required" if f["default"] is None else f"default {f['default']}"]
        lines.append(f"    {f['name']}: {'; '.join(x for x in facts if x)}")
        lines += [f"        {line}" for line in f["doc"].splitlines()]
    return "\n".join(lines)


def _entry(value):
    """A component, force or named value of a list."""
    if isinstance(value, (Component, Force, Variant)):
        return value
    if isinstance(value, type) and issubclass(value, (Component, Force)):
        return value()
    if isinstance(value, str):
        return Variant(value, {})
    if isinstance(value, dict) and len(value) == 1:
        (name, fields), = value.items()
        return make(name)(**fields) if name in _plugins.descriptions() else Variant(name, fields)
    raise TypeError(f"{value!r} is not a component; write gm.Name(…) or {{\"Name\": {{…}}}}")


def _listed(value, name, content="components"):
    """The entries of a list of a pipeline."""
    if isinstance(value, (str, bytes, collections.abc.Mapping)) or not isinstance(value, collections.abc.Iterable):
        raise TypeError(f"`{name}` must be a list of {content}, not {type(value).__name__}")
    return list(value)


class Pipeline:
    """A pipeline. Its fields are those of a pipeline file.

        p = gm.Pipeline(
            seed=42,
            initial=[gm.Lattice(lattice="Sc", cells=[10, 10, 10], density=0.7), gm.Velocities(kT=1.2)],
            forces=[gm.LennardJones(r_cut=3.0, pairs={("A", "A"): {"epsilon": 1.0, "sigma": 1.0}})],
            integrators=[gm.NoseHoover(kT=1.2, tau=0.5)],
            stages=[{"steps": 10_000, "dt": 0.004}],
        )
        p.save("sim.ron")

    Components may also be `{"Name": {fields}}`. `Pipeline.open` and `Pipeline.from_ron` read files and text.
    """

    FIELDS = ("seed", "device", "gpus", "replicas", "exchange", "precision", "neighbors", "checkpoint", *LISTS, "stages")

    def __init__(self, path=None, **fields):
        unknown = [f for f in fields if f not in self.FIELDS]
        if unknown:
            raise TypeError(f"a pipeline has no field `{unknown[0]}`; {_hint(unknown[0], self.FIELDS)}")
        self.path = path
        for name in self.FIELDS:
            setattr(self, name, fields.get(name))
        if self.ensemble is None:
            for name in ("initial", "forces", "integrators", "updaters", "analyzers", "stages"):
                setattr(self, name, getattr(self, name) or [])

    def __setattr__(self, name, value):
        if name != "path" and name not in self.FIELDS:
            raise AttributeError(f"a pipeline has no field `{name}`; {_hint(name, self.FIELDS)}")
        if name in LISTS and value is not None:
            value = [_entry(e) for e in _listed(value, name)]
        elif name == "stages" and value is not None:
            value = [_stage(s) for s in _listed(value, name, STAGES)]
        elif name in ("device", "precision") and isinstance(value, str):
            value = Variant(value)
        elif name == "neighbors" and isinstance(value, dict):
            value = _neighbors(value)
        super().__setattr__(name, value)

    @classmethod
    def from_ron(cls, text, path=None):
        """Reads RON text. Comments are not kept."""
        _errors.require_instance(text, "text", str, "RON text")
        value = _galamost.parse_ron(text)
        if not isinstance(value, dict) or isinstance(value, Map):
            raise ValueError("a pipeline is written as (initial: […], stages: […], …)")
        return cls(path=path, **{k: _components(v) if k in LISTS and isinstance(v, list) else v for k, v in value.items()})

    @classmethod
    def open(cls, path):
        """Reads a pipeline file."""
        with open(path, encoding="utf-8") as f:
            return cls.from_ron(f.read(), path)

    def to_dict(self):
        """The fields that are set, as Python values: components are `Variant`s."""
        out, numbers = {}, {id(f): number for number, f in self.python_forces().items()}
        for name in self.FIELDS:
            value = getattr(self, name)
            if value is None or _is_empty(value) and name not in ("initial", "stages"):
                continue
            if name in LISTS:
                value = _variants(value, numbers)
            elif name == "stages":
                value = [{k: _variants(v, numbers) if k in LISTS else v for k, v in s.items()} for s in value]
            out[name] = value
        return out

    @property
    def ron(self):
        """The pipeline as RON text."""
        return to_ron(self.to_dict()) + "\n"

    def __str__(self):
        return self.ron

    def __eq__(self, other):
        if not isinstance(other, Pipeline) or self.python_forces() != other.python_forces():
            return False
        return self.to_dict() == other.to_dict()

    __hash__ = None

    def save(self, path, overwrite=False):
        """Writes a pipeline file, which runs without Python: `galamost --pipeline sim.ron`. Raises a `FileExistsError`
        if there is another file, unless `overwrite`."""
        if self.python_forces():
            raise ValueError("the pipeline has a force in Python, which a file cannot contain")
        write_new(path, self.ron.encode(), overwrite)
        self.path = path

    def check(self, device=None):
        """Checks the pipeline as a run does, and returns the number of particles. Raises a `PipelineError` with all
        mistakes."""
        _errors.require_instance(device, "device", (str, type(None)), 'a name such as "cpu" or "cuda:0"')
        _plugins.load()
        forces = self.python_forces()
        if forces:
            _galamost.load_forces(_galamost.__file__)
        try:
            path = os.fspath(self.path) if self.path else NO_FILE
            return _galamost.check_pipeline(path, self.ron, [], device, forces)
        finally:
            _errors.warn()

    def python_forces(self):
        """The forces in Python by number: from 1, in the order of their lists."""
        owners = [self.__dict__, *(self.stages or [])]
        # an object may be in several lists, and by mistake in those of other components
        found = {id(f): f for o in owners for name in LISTS for f in o.get(name) or [] if isinstance(f, Force)}
        return dict(enumerate(found.values(), 1))


def _is_empty(value):
    """Whether this is an empty list. Numbers of NumPy cannot be compared with one."""
    return isinstance(value, list) and not value


def _neighbors(given):
    words = dict(given)
    words["exclude"] = [Variant(v) if isinstance(v, str) else v for v in words.get("exclude", [])]
    if isinstance(words.get("only"), str):
        words["only"] = Variant(words["only"])
    if isinstance(words.get("special"), dict):
        words["special"] = Map(words["special"])
    return {k: v for k, v in words.items() if not _is_empty(v)}


def _stage(stage):
    if not isinstance(stage, collections.abc.Mapping):
        raise TypeError(f"`stages` must be a list of {STAGES}, not of {type(stage).__name__}")
    return {k: [_entry(e) for e in _listed(v, k)] if k in LISTS and v is not None else v for k, v in stage.items()}


def _variants(entries, numbers):
    """The entries of a list as named values. `numbers` has the number of each force in Python."""

    def one(e):
        if isinstance(e, Force):
            return e._variant(numbers[id(e)])
        return e._variant() if hasattr(e, "_variant") else e

    return [one(e) for e in entries]


def _components(entries):
    """Named values of a file as components, where a plugin describes them."""
    out = []
    for e in entries:
        known = _plugins.descriptions().get(e.name) if isinstance(e, Variant) else None
        if known and (e.content is None or isinstance(e.content, dict)):
            cls = make(e.name)
            component = cls.__new__(cls)
            component.fields = dict(e.content or {})
            e = component
        out.append(e)
    return out
