"""RON, the notation of pipelines: named values, maps, and how values are written."""

import json
import math
import numbers

from ._errors import require_unmasked


class Variant:
    """A named value: `Variant("Sc")` is `Sc`, `Variant("Smooth", (2.0,))` is `Smooth(2.0)`, and
    `Variant("Ramp", {"from": 2.0, "to": 1.0})` is `Ramp(from: 2.0, to: 1.0)`."""

    __slots__ = ("name", "content")

    def __init__(self, name, content=None):
        self.name = name
        self.content = tuple(content) if isinstance(content, list) else content

    def __eq__(self, other):
        return isinstance(other, Variant) and (self.name, self.content) == (other.name, other.content)

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return to_ron(self)


class Map(dict):
    """A map `{ key: value }`. A plain `dict` is a struct `(key: value)`."""

    def __init__(self, *entries, **named):
        try:
            super().__init__(*entries, **named)
        except (TypeError, ValueError):
            given = ", ".join(type(e).__name__ for e in entries)
            raise TypeError(f"gm.Map takes a dict, not {given}") from None


class _Variants:
    """Makes named values: `gm.variant.Types(["A"])`, `gm.variant.Ramp(to=1.0, steps=1000, **{"from": 2.0})`."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        def make(*args, **fields):
            if args and fields:
                raise TypeError(f"{name} takes either values or named fields")
            return Variant(name, fields or (args or None))

        make.__name__ = name
        return make


variant = _Variants()


def _is_map(value):
    identifiers = all(isinstance(k, str) and k.isidentifier() for k in value)
    return isinstance(value, Map) or not identifiers


def _items(value, depth, width):
    """The parts of a value, and the brackets around them; `None` for a leaf."""
    if isinstance(value, Variant):
        if value.content is None:
            return None
        open_, parts, close = _items(value.content, depth, width)
        return value.name + open_, parts, close
    if isinstance(value, dict) and _is_map(value):
        return "{", [f"{to_ron(k, width=None)}: {to_ron(v, depth + 1, width)}" for k, v in value.items()], "}"
    if isinstance(value, dict):
        return "(", [f"{k}: {to_ron(v, depth + 1, width)}" for k, v in value.items()], ")"
    if isinstance(value, tuple):
        parts = [to_ron(v, depth + 1, width) for v in value]
        return "(", parts, ")"
    if isinstance(value, list):
        return "[", [to_ron(v, depth + 1, width) for v in value], "]"
    return None


def _leaf(value):
    if isinstance(value, Variant):
        return value.name
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        x = float(value)
        return repr(x) if math.isfinite(x) else {math.inf: "inf", -math.inf: "-inf"}.get(x, "NaN")
    raise TypeError(f"{value!r} cannot be written into a pipeline")


def to_ron(value, depth=0, width=100):
    """Writes a value as RON text. Numbers are written such that they are read back to the last bit."""
    if hasattr(value, "_variant"):
        value = value._variant()
    if hasattr(value, "tolist"):
        require_unmasked(value, "an array of the pipeline")
        value = value.tolist()
    found = _items(value, depth, width)
    if found is None:
        return _leaf(value)
    open_, parts, close = found
    flat = open_ + ", ".join(parts) + close
    if width is None or not parts or (len(flat) + 4 * depth <= width and "\n" not in flat):
        return flat
    pad = "    " * (depth + 1)
    return open_ + "\n" + "".join(f"{pad}{p},\n" for p in parts) + "    " * depth + close
