"""The functions that expressions have beyond CEL's own: `mean sum max argmax majority flatten range`.

Two lists hold them: DECLARED is what the checker sees, one overload a type; `implementations` is what runs. An empty
list gives the empty value of the result's type: no nulls, no errors on an empty `forEach`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from cel_expr_python import cel

MAX_ITERATIONS = 10_000
"""The engine's own budget of loop iterations for one evaluation."""

MAX_RANGE = 1_000
"""Longest list of `range`. The engine's `map` and `filter` take time in the square of a list's length: 20 ms here."""


@dataclass(frozen=True, slots=True)
class Overload:
    """A signature in CEL's types (`~T` is any type), and the implementation that serves it."""

    function: str
    signature: str
    returns: str
    implementation: str

    @property
    def id(self) -> str:
        """Unique name that the checker reports."""
        return f"{self.implementation} {self.signature}"


DECLARED = (
    Overload("mean", "list<double>.mean()", "double", "mean"),
    Overload("mean", "list<int>.mean()", "double", "mean"),
    Overload("sum", "list<double>.sum()", "double", "sum"),
    Overload("sum", "list<int>.sum()", "int", "sum_int"),
    Overload("max", "list<double>.max()", "double", "max"),
    Overload("max", "list<int>.max()", "int", "max_int"),
    Overload("argmax", "list<double>.argmax()", "int", "argmax"),
    Overload("argmax", "list<int>.argmax()", "int", "argmax"),
    Overload("majority", "list<string>.majority()", "string", "majority"),
    Overload("flatten", "list<list<~T>>.flatten()", "list<~T>", "flatten"),
    Overload("range", "range(int)", "list<int>", "range"),
)
IMPLEMENTATION = {overload.id: overload.implementation for overload in DECLARED}


def declarations() -> str:
    """DECLARED in the engine's YAML, the only form of it that knows type parameters."""
    lines = ["functions:"]
    for function in dict.fromkeys(overload.function for overload in DECLARED):
        lines += [f"  - name: {function}", "    overloads:"]
        lines += [
            f'      - {{id: "{overload.id}", signature: "{overload.signature}", return: "{overload.returns}"}}'
            for overload in DECLARED
            if overload.function == function
        ]
    return "\n".join(lines)


Numbers = Sequence[float]


def _numbers(items: Sequence[object], name: str) -> Numbers:
    wrong = next((item for item in items if isinstance(item, bool) or not isinstance(item, int | float)), None)
    if wrong is not None:
        raise ValueError(f"{name}() takes numbers, found {wrong!r}")
    return cast(Numbers, items)


def _mean(items: Sequence[object]) -> float:
    numbers = _numbers(items, "mean")
    return sum(numbers) / len(numbers) if numbers else 0.0


def _sum(items: Sequence[object]) -> float:
    return sum(_numbers(items, "sum")) if items else 0.0


def _sum_int(items: Sequence[object]) -> float:
    return sum(_numbers(items, "sum"))


def _max(items: Sequence[object]) -> float:
    return max(_numbers(items, "max"), default=0.0)


def _max_int(items: Sequence[object]) -> float:
    return max(_numbers(items, "max"), default=0)


def _argmax(items: Sequence[object]) -> int:
    """Index of the first largest; 0 for an empty list."""
    numbers = _numbers(items, "argmax")
    return max(range(len(numbers)), key=numbers.__getitem__, default=0)


def _majority(items: Sequence[object]) -> str:
    """The most frequent text that is not empty, the first seen among equals; `""` when there is none."""
    wrong = next((item for item in items if not isinstance(item, str)), None)
    if wrong is not None:
        raise ValueError(f"majority() takes strings, found {wrong!r}")
    votes = Counter(item for item in cast(Sequence[str], items) if item)
    return votes.most_common(1)[0][0] if votes else ""


def _flatten(items: Sequence[object]) -> list[object]:
    wrong = next((item for item in items if not isinstance(item, list)), None)
    if wrong is not None:
        raise ValueError(f"flatten() takes a list of lists, found {wrong!r}")
    return [inner for item in cast(Sequence[list[object]], items) for inner in item]


def _range(count: int) -> list[int]:
    if count > MAX_RANGE:
        raise ValueError(f"range({count}) is beyond the limit of {MAX_RANGE}")
    return list(range(count))


def implementations() -> list[cel.FunctionDecl]:
    """What runs: one function an implementation, dispatched by the checker's choice, not by the values."""
    dyn, numbers = cel.Type.DYN, cel.Type.List(cel.Type.DYN)
    members: dict[str, Callable[[Sequence[object]], object]] = {
        "mean": _mean,
        "sum": _sum,
        "sum_int": _sum_int,
        "max": _max,
        "max_int": _max_int,
        "argmax": _argmax,
        "majority": _majority,
        "flatten": _flatten,
    }
    declared = [_declare(name, implementation, numbers, dyn) for name, implementation in members.items()]
    return [*declared, _declare("range", _range, cel.Type.INT, dyn)]


def _declare(name: str, run: Callable[..., object], parameter: cel.Type, returns: cel.Type) -> cel.FunctionDecl:
    member = name != "range"
    overload = cel.Overload(f"run_{name}", return_type=returns, parameters=[parameter], is_member=member, impl=run)
    return cel.FunctionDecl(name, [overload])
