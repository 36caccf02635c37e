"""The order of a record's fields, which the engine does not keep and prompts would show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from unitymas.api.shapes import ANY, ListOf, Record, Scalar, Shape

Arrange = Callable[[Any], Any]


def arranger(shape: Shape) -> Arrange | None:
    """What puts the fields of a value in the shape's order, then those unknown to it by name; None where none can be.

    It raises ValueError for a record with a key that is not text.
    """
    match shape:
        case Scalar():
            return _by_name if shape == ANY else None
        case ListOf(item):
            arrange = arranger(item)
            return None if arrange is None else lambda items: [arrange(inner) for inner in items]
        case Record():
            return _record_arranger(shape)
    assert_never(shape)


def _record_arranger(shape: Record) -> Arrange:
    names = shape.names()
    inner = [(name, put) for name, field in shape.fields if (put := arranger(field)) is not None]

    def arrange(value: Any) -> Any:
        if len(value) == len(names) and all(name in value for name in names):
            known = {name: value[name] for name in names}
        else:
            known = {name: value[name] for name in names if name in value}
            known |= _by_name({name: field for name, field in value.items() if name not in known})
        for name, put in inner:
            if name in known:
                known[name] = put(known[name])
        return known

    return arrange


def _by_name(value: Any) -> Any:
    if isinstance(value, list):
        return [_by_name(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    wrong = next((key for key in value if not isinstance(key, str)), None)
    if wrong is not None:
        raise ValueError(f"a record with the key {wrong!r}; expected names, such as 'a'")
    return {name: _by_name(value[name]) for name in sorted(value)}
