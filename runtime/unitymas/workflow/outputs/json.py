"""The format `json`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import cast

from unitymas.api import shapes
from unitymas.api.workflow import Output as OutputSpec

TRIES = 64
"""Most places of a reply where a value may begin: a reply of brackets only must stay cheap."""
LEVELS = 64
"""Most levels of lists and records in a value: what is deeper cannot be stored."""
_NUMBER = r"(?<![\w.])-?\d"
_BEGIN = {"string": '"', "number": _NUMBER, "int": _NUMBER, "bool": r"\b(?:true|false)\b", "any": r"[\[{]"}


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is no finite number")
    return value


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"{digits[:20]} is beyond 64 bits")
    return int(digits)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_finite)


def _begin(shape: shapes.Shape) -> re.Pattern[str]:
    match shape:
        case shapes.Scalar(name):
            return re.compile(_BEGIN[name])
        case shapes.ListOf():
            return re.compile(r"\[")
        case shapes.Record():
            return re.compile(r"\{")


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(LEVELS):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, list | dict)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()


class Json:
    """The first whole JSON value of the reply that is of the shape; prose or a code fence may surround it.

    Extra record fields are dropped. A value inside another is not looked at: the outer one was the reply. For the
    shape `any` the value is a list or a record. Values of more than LEVELS levels are passed over.
    Raises ShapeError when the shape cannot be read.
    """

    def __init__(self, spec: OutputSpec) -> None:
        self.shape = shapes.parse(spec.shape)
        self._begin = _begin(self.shape)

    def parse(self, text: str) -> object:
        """The value. Raises ValueError when no value of the shape begins in the first TRIES places."""
        mismatch: shapes.ShapeError | None = None
        for value in self._values(text):
            try:
                return shapes.conform(self.shape, value)
            except shapes.ShapeError as error:
                mismatch = error
        raise ValueError(f"no JSON value of the shape {shapes.notation(self.shape)}") from mismatch

    def _values(self, text: str) -> Iterator[object]:
        position = 0
        for _ in range(TRIES):
            start = self._begin.search(text, position)
            if start is None:
                return
            position = start.start() + 1
            try:
                value, end = _DECODER.raw_decode(text, start.start())
                if _too_deep(value):
                    position = end
                    continue
                json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be stored
            except (ValueError, RecursionError):
                continue
            position = end
            yield value
