"""The parts of each visit's reward: pure, from a program and the variables that its expressions see."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import SupportsFloat, cast

from unitymas.api import shapes
from unitymas.api.errors import Author
from unitymas.api.records import Trajectory, Visit
from unitymas.expr.cel import Program
from unitymas.expr.errors import EvaluationError
from unitymas.rewards.compile import Part, RewardProgram
from unitymas.rewards.series import Series

Parts = Mapping[str, Mapping[str, float]]
"""Every part by name, by the visit's key."""


def rewarded(trajectory: Trajectory) -> list[Visit]:
    """The visits that can have a reward: those of a role that ran. A reply that does not parse is among them."""
    return [visit for visit in trajectory.visits if visit.role and visit.value.get("ran", False)]


def visit_record(visit: Visit) -> dict[str, object]:
    """What an expression sees as `visit`."""
    return {"prompt": visit.prompt, **visit.value, "turn": visit.turn, "index": visit.index}


def number(program: Program, values: Mapping[str, object], path: str, visit: Visit | None = None) -> float:
    """The program's value, a finite double. Raises Author naming the field and the visit."""
    where = f"{path}, visit {visit.key}" if visit is not None else path
    try:
        return cast(float, shapes.conform(shapes.NUMBER, program.evaluate(values)))
    except EvaluationError as error:
        raise Author(where, str(error)) from error
    except shapes.ShapeError as error:
        raise Author(where, f"`{program.text}`: found {error.found}; expected a finite number") from error


def finite(value: object, where: str) -> float:
    """What a function gave, of any type of number, as a double. Raises Author unless it is one finite number."""
    number = math.nan
    if not isinstance(value, str):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(cast(SupportsFloat, value))
    if not math.isfinite(number):
        raise Author(where, f"found {value!r:.60}; expected a finite number")
    return number


def parts(
    program: RewardProgram, trajectory: Trajectory, variables: Mapping[str, object], series: Mapping[str, Series]
) -> Parts:
    """Every visit's parts, weighted and shared. `variables`: what all visits see, metrics among it."""
    visits = rewarded(trajectory)
    watched = {name for part in program.parts for name in part.watched}
    seen = {
        visit.key: {
            **variables,
            **{name: series[name].for_visit(visit.order) for name in watched},
            "visit": visit_record(visit),
        }
        for visit in visits
    }
    given: dict[str, dict[str, float]] = {visit.key: {} for visit in visits}
    for part in program.parts:
        receivers = [visit for visit in visits if visit.role in part.values]
        scale = part.reward.weight / (len(receivers) if part.reward.share == "split" and receivers else 1)
        for visit, value in zip(receivers, _values(part, receivers, seen), strict=True):
            where = f"{part.path}, visit {visit.key}"
            given[visit.key][part.reward.name] = _weighted(value, scale, f"{where}, reward {part.reward.name}")
    return _summable(given, "spec.rewards")


def _weighted(value: float, scale: float, where: str) -> float:
    if not math.isfinite(scale * value):
        raise Author(where, f"found {value:g}, {scale * value:g} with its weight; expected a finite number")
    return scale * value


def _summable(given: Parts, where: str) -> Parts:
    """The parts, when every visit's have a finite sum. Raises Author."""
    for key, own in given.items():
        if not math.isfinite(sum(own.values())):
            raise Author(where, f"visit {key}: {', '.join(own)} sum to {sum(own.values())}; expected a finite number")
    return given


def _values(part: Part, receivers: Sequence[Visit], seen: Mapping[str, Mapping[str, object]]) -> list[float]:
    if part.per_visit:
        return [number(part.values[visit.role], seen[visit.key], part.path, visit) for visit in receivers]
    if not receivers:
        return []
    first = receivers[0]
    return [number(part.values[first.role], seen[first.key], part.path)] * len(receivers)


def parts_of(yielded: object, trajectory: Trajectory, where: str) -> Parts:
    """What a function in place of the rewards yielded, checked: (visit key, name, value), each name once a visit.

    Raises Author.
    """
    given: dict[str, dict[str, float]] = {visit.key: {} for visit in rewarded(trajectory)}
    if not isinstance(yielded, Iterable):
        raise Author(where, f"found {yielded!r:.60}; expected (visit key, name, value) for every part")
    for item in cast(Iterable[object], yielded):
        match item:
            case (str(key), str(name), value):
                pass
            case _:
                raise Author(where, f"found {item!r:.80}; expected (visit key, name, value)")
        if key not in given:
            raise Author(where, f"found visit `{key}`; expected a visit of a role: {', '.join(given)}")
        if name in given[key]:
            raise Author(where, f"visit {key}: found reward {name} a second time; expected each name once")
        given[key][name] = finite(value, f"{where}, visit {key}, reward {name}")
    return _summable(given, where)
