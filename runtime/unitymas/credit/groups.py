"""From visits to comparison groups, and to the rows that cross from the controller to each model group."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from hashlib import blake2b

from unitymas.api.algorithm import UNGROUPED, Algorithm
from unitymas.api.errors import Failure
from unitymas.api.records import Row, Trajectory, Visit
from unitymas.credit.returns import returns

Evaluate = Callable[[str, Visit], object]
"""Evaluates an expression over `visit`."""
LEFT_OUT = frozenset({Failure.INFRASTRUCTURE})
"""Failures that take part in neither loss nor baseline, whatever the run says."""
LONGEST = 64
"""Characters of a value that a group's key spells out; a longer one is told by its digest."""


def group_key(trajectory: Trajectory, visit: Visit, by: Sequence[str], evaluate: Evaluate) -> str:
    """The comparison group of a visit, such as `task=q1|role=solver|visit=turns[0].search`.

    A part of `by` is `task`, `trajectory`, `role`, `node` or `visit`; another identifier is the name of a loop or
    forEach, whose turn or item it gives (empty outside it); anything else is an expression.
    Raises what `evaluate` raises.
    """
    return "|".join(f"{part}={_text(_value(part, trajectory, visit, evaluate))}" for part in by)


def rows(
    trajectories: Sequence[Trajectory],
    *,
    algorithm: Algorithm,
    model_of: Mapping[str, str],
    trained: Set[str],
    evaluate: Evaluate,
    left_out: Set[Failure] = LEFT_OUT,
) -> dict[str, list[Row]]:
    """One row per visit of the trained roles, by model, ordered by visit; whatever order the trajectories came in.

    model_of: the model that plays each role. left_out: failures whose trajectories and visits take part in nothing.
    A model also gets, as foreign, the other models' rows that share a group with one of its own. Visits without a
    call are left out: the policy did nothing there.
    """
    rules = {role: algorithm.for_role(role) for role in trained}
    own: defaultdict[str, list[Row]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.failure not in left_out:
            for row in _rows_of(trajectory, rules, evaluate, left_out):
                own[model_of[row.role]].append(row)
    abroad: Mapping[str, list[Row]] = {} if algorithm.estimator in UNGROUPED else _foreign(own)
    return {model: sorted([*own[model], *abroad.get(model, ())], key=lambda row: row.visit) for model in sorted(own)}


def _rows_of(
    trajectory: Trajectory, rules: Mapping[str, Algorithm], evaluate: Evaluate, left_out: Set[Failure]
) -> Iterator[Row]:
    by_role: defaultdict[str, list[Visit]] = defaultdict(list)
    for visit in trajectory.visits:
        if visit.role in rules and visit.calls and visit.failure not in left_out:
            by_role[visit.role].append(visit)
    for role, visits in by_role.items():
        for visit, value in zip(visits, returns(visits, rules[role]).tolist(), strict=True):
            yield Row(
                visit=f"{trajectory.id}/{visit.key}",
                calls=tuple(call.id for call in visit.calls),
                role=role,
                trajectory=trajectory.id,
                reward=value,
                group=group_key(trajectory, visit, rules[role].compare.by, evaluate),
            )


def _foreign(own: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """By model: the rows of other models in its groups, without their calls."""
    models: defaultdict[str, set[str]] = defaultdict(set)
    for model, mine in own.items():
        for row in mine:
            models[row.group].add(model)
    abroad: defaultdict[str, list[Row]] = defaultdict(list)
    for model, mine in own.items():
        for row in mine:
            for other in models[row.group] - {model}:
                abroad[other].append(replace(row, calls=(), foreign=True))
    return abroad


def _value(part: str, trajectory: Trajectory, visit: Visit, evaluate: Evaluate) -> object:
    match part:
        case "task":
            return trajectory.task.id
        case "trajectory":
            return trajectory.id
        case "role":
            return visit.role
        case "node":
            return visit.node
        case "visit":
            return visit.key
        case name if name.isidentifier():
            return ".".join(str(places[name]) for places in (visit.turns, visit.items) if name in places)
        case expression:
            return evaluate(expression, visit)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    if len(text) <= LONGEST and text.isprintable() and "|" not in text:
        return text
    head = "".join(letter for letter in text[:LONGEST] if letter.isprintable() and letter != "|")
    return f"{head}#{blake2b(text.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"
