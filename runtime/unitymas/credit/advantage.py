"""The pipeline inside a model group: from rows to advantages and loss weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unitymas.api.algorithm import UNGROUPED, Algorithm
from unitymas.api.names import ESTIMATORS, load
from unitymas.api.records import Row
from unitymas.credit.port import F64, I64, Batch, Bools, Estimator
from unitymas.credit.stats import numbered, total, varied
from unitymas.credit.weights import token_weights


@dataclass(frozen=True, slots=True)
class Advantages:
    """What one update trains on. Arrays are in the order of the rows; foreign rows have 0 in both."""

    values: F64
    """(rows,): the advantage that every token of the visit's calls carries."""
    token_weights: F64
    """(rows,): weight of each single token; they sum to 1 over the update."""
    groups: int
    """Comparison groups with a visit of this model; 0 for an estimator without groups, as are the next two."""
    small_groups: int
    """Of these, the ones below `minGroup`."""
    equal_groups: int
    """Of these, the ones big enough whose rewards are all equal."""


def advantages(rows: Sequence[Row], tokens: Sequence[int], algorithm: Algorithm) -> Advantages:
    """Advantages of one update of one model.

    tokens: trained tokens of each row's calls; those of foreign rows are not read. Raises ValueError for a reward
    that is not finite, and for an estimator that works on tokens (gae).
    """
    estimator = load(ESTIMATORS, algorithm.estimator)()
    if not isinstance(estimator, Estimator):
        raise ValueError(f"found estimator {algorithm.estimator}, which works on tokens; expected one for visits")
    rules = _rules(rows, algorithm)
    groups, foreign = numbered(row.group for row in rows), _foreign(rows)
    grouped = algorithm.estimator not in UNGROUPED
    small = _small(rows, groups, foreign, rules) if grouped else np.zeros(len(rows), dtype=np.bool_)
    batch = Batch(
        rewards=np.asarray([row.reward for row in rows], dtype=np.float64),
        groups=groups,
        tokens=_trained(tokens, foreign),
        units=_units(rows, groups, rules),
        divided=np.asarray([rules[row.role].divisor != "none" for row in rows], dtype=np.bool_),
        counted=~small,
        foreign=foreign,
        names=[row.visit for row in rows],
    )
    equal = batch.counted & ~varied(batch.rewards, groups, batch.counted)
    return Advantages(
        values=estimator.advantages(batch),
        token_weights=loss_weights(rows, tokens, algorithm),
        groups=_count(groups, ~foreign & grouped),
        small_groups=_count(groups, ~foreign & small),
        equal_groups=_count(groups, ~foreign & equal & grouped),
    )


def loss_weights(rows: Sequence[Row], tokens: Sequence[int], algorithm: Algorithm) -> F64:
    """(rows,): weight of each single token of the row's calls, as `loss.weight` says; 0 for foreign rows."""
    rules = _rules(rows, algorithm)
    return token_weights(
        _trained(tokens, _foreign(rows)),
        numbered(row.role for row in rows),
        numbered(row.trajectory for row in rows),
        [rules[row.role].loss.weight for row in rows],
    )


def _rules(rows: Sequence[Row], algorithm: Algorithm) -> Mapping[str, Algorithm]:
    return {role: algorithm.for_role(role) for role in sorted({row.role for row in rows})}


def _foreign(rows: Sequence[Row]) -> Bools:
    return np.asarray([row.foreign for row in rows], dtype=np.bool_)


def _trained(tokens: Sequence[int], foreign: Bools) -> I64:
    return np.where(foreign, 0, np.asarray(tokens, dtype=np.int64))


def _count(groups: I64, where: Bools) -> int:
    return np.unique(groups[where]).size


def _small(rows: Sequence[Row], groups: I64, foreign: Bools, rules: Mapping[str, Algorithm]) -> Bools:
    """(rows,): whether the group is below the largest `minGroup` of this model's roles in it."""
    least = np.zeros(int(groups.max(initial=-1)) + 1)
    asked = np.asarray([rules[row.role].compare.min_group for row in rows], dtype=np.float64)
    np.maximum.at(least, groups[~foreign], asked[~foreign])
    return total(np.ones(len(rows)), groups) < least[groups]


def _units(rows: Sequence[Row], groups: I64, rules: Mapping[str, Algorithm]) -> I64:
    """(rows,): number of the unit of `scale`. A foreign row is in its group's: a mapping changes no group's std."""

    def unit(row: Row, group: int) -> tuple[str, int | str]:
        scale = rules[row.role].divisor
        if row.foreign or scale == "group":
            return "group", group
        return ("model", "") if scale == "model" else ("role", row.role)

    return numbered(unit(row, group) for row, group in zip(rows, groups.tolist(), strict=True))
