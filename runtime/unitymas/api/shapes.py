"""Types by shape: `string`, `[string]`, `{title: string}`; their empty values and their checks.

The notation is what users write: a scalar's name, a list holding one shape, or a mapping of field names to shapes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, assert_never, cast, get_args

ScalarName = Literal["string", "number", "int", "bool", "any"]
SCALARS: tuple[str, ...] = get_args(ScalarName)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. `number` is a double; `any` is whatever JSON can say."""

    name: ScalarName


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Record:
    """Named fields, each of its own shape, in the order given."""

    fields: tuple[tuple[str, Shape], ...]

    def get(self, name: str) -> Shape | None:
        """The shape of a field, or None when there is no such field."""
        return next((shape for field, shape in self.fields if field == name), None)

    def names(self) -> tuple[str, ...]:
        """The field names, in order."""
        return tuple(field for field, _ in self.fields)


Shape = Scalar | ListOf | Record

STRING, NUMBER, INT, BOOL, ANY = (Scalar(cast(ScalarName, name)) for name in SCALARS)


class ShapeError(ValueError):
    """A value or a notation that is not of the shape wanted. `path` leads to the place, such as `[2].title`."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        self.path, self.found, self.expected = path, found, expected
        super().__init__(f"{path or 'value'}: found {found}; expected {expected}")


def record(**fields: Shape) -> Record:
    """A record shape from keywords."""
    return Record(tuple(fields.items()))


def parse(notation: object, path: str = "") -> Shape:
    """Read the users' notation. Raises ShapeError with the path of what cannot be read."""
    if isinstance(notation, str):
        if notation in SCALARS:
            return Scalar(cast(ScalarName, notation))
        raise ShapeError(path, f"`{notation}`", f"one of {', '.join(SCALARS)}, a list or a mapping")
    if isinstance(notation, list):
        items = cast(list[object], notation)
        if len(items) != 1:
            raise ShapeError(path, f"a list of {len(items)}", "a list holding exactly one shape, such as [string]")
        return ListOf(parse(items[0], f"{path}[]"))
    if isinstance(notation, Mapping):
        fields = cast(Mapping[str, object], notation)
        return Record(tuple((str(name), parse(inner, f"{path}.{name}")) for name, inner in fields.items()))
    raise ShapeError(path, f"`{notation}`", f"one of {', '.join(SCALARS)}, a list or a mapping")


def notation(shape: Shape) -> str:
    """The shape as users write it, on one line."""
    match shape:
        case Scalar(name):
            return name
        case ListOf(item):
            return f"[{notation(item)}]"
        case Record(fields):
            return "{" + ", ".join(f"{name}: {notation(inner)}" for name, inner in fields) + "}"
    assert_never(shape)


@cache
def _empty_scalar(name: ScalarName) -> object:
    return {"string": "", "number": 0.0, "int": 0, "bool": False, "any": ""}[name]


def empty(shape: Shape) -> object:
    """The value of a shape when nothing was produced: there are no nulls in the language."""
    match shape:
        case Scalar(name):
            return _empty_scalar(name)
        case ListOf():
            return []
        case Record(fields):
            return {name: empty(inner) for name, inner in fields}
    assert_never(shape)


def conform(shape: Shape, value: object, path: str = "") -> object:
    """The value, checked against the shape; extra record fields are dropped, ints become doubles where due.

    Raises ShapeError naming the path of the first mismatch.
    """
    match shape:
        case Scalar(name):
            return _conform_scalar(name, value, path)
        case ListOf(item):
            if not isinstance(value, list | tuple):
                raise ShapeError(path, _describe(value), f"a list, {notation(shape)}")
            items = cast(list[object], value)
            return [conform(item, inner, f"{path}[{index}]") for index, inner in enumerate(items)]
        case Record(fields):
            if not isinstance(value, Mapping):
                raise ShapeError(path, _describe(value), f"a record, {notation(shape)}")
            given = cast(Mapping[str, object], value)
            missing = [name for name, _ in fields if name not in given]
            if missing:
                raise ShapeError(path, f"no field `{missing[0]}`", notation(shape))
            return {name: conform(inner, given[name], f"{path}.{name}") for name, inner in fields}
    assert_never(shape)


def _conform_scalar(name: ScalarName, value: object, path: str) -> object:
    match name:
        case "string":
            right = isinstance(value, str)
        case "bool":
            right = isinstance(value, bool)
        case "int":
            right = (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
            value = int(cast(float, value)) if right else value
            right = right and -(2**63) <= cast(int, value) < 2**63
        case "number":
            right = isinstance(value, int | float) and not isinstance(value, bool) and _finite(value)
            value = float(cast(float, value)) if right else value
        case "any":
            right = value is not None
    if not right:
        raise ShapeError(path, _describe(value), name)
    if not encodable(value):
        raise ShapeError(path, _describe(value), "text that UTF-8 can write: it holds half of a surrogate pair")
    return value


def encodable(value: object) -> bool:
    """Whether every text in a value, keys included, can be written as UTF-8: JSON can say half a surrogate pair."""
    match value:
        case str():
            return not _SURROGATE.search(value)
        case Mapping():
            held = cast(Mapping[object, object], value)
            return all(encodable(key) and encodable(inner) for key, inner in held.items())
        case list() | tuple():
            return all(map(encodable, cast(Sequence[object], value)))
        case _:
            return True


def _finite(value: float) -> bool:
    return -sys.float_info.max <= value <= sys.float_info.max  # an int may be too large for math.isfinite


def _describe(value: object) -> str:
    if value is None:
        return "null"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
