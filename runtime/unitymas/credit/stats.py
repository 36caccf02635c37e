"""Statistics of visits by unit (a comparison group, a role, a model): everything that estimators share.

Columns have shape (visits,); a statistic comes back per visit, so that it can be subtracted or divided at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from unitymas.credit.port import F64, I64, Batch, Bools

EPSILON = 1e-6
"""Added to a std before it divides, in reward units: keeps noise of rounding from becoming an advantage."""


def numbered(names: Iterable[Hashable]) -> I64:
    """A number for each name, equal for equal names, in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.asarray([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def total(values: F64 | I64 | Bools, units: I64) -> F64:
    """Sum over the unit."""
    sums = np.bincount(units, weights=values.astype(np.float64))
    return np.asarray(sums, dtype=np.float64)[units]


def mean(values: F64, units: I64, weights: F64) -> F64:
    """Weighted mean over the unit; 0 where the unit has no weight."""
    weight = total(weights, units)
    return np.divide(total(values * weights, units), weight, out=np.zeros_like(values), where=weight > 0)


def varied(values: F64, units: I64, where: Bools) -> Bools:
    """Whether the unit's values differ, among those of `where`. A mean cannot tell: three 0.1s are 1e-17 off theirs."""
    size = int(units.max(initial=-1)) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, units[where], values[where])
    np.maximum.at(high, units[where], values[where])
    return (high > low)[units]


def centred(batch: Batch) -> F64:
    """Reward minus the group's mean, foreign visits included; exactly 0 in a group of equal rewards."""
    baseline = mean(batch.rewards, batch.groups, batch.counted.astype(np.float64))
    moves = batch.counted & varied(batch.rewards, batch.groups, batch.counted)
    return np.where(moves, batch.rewards - baseline, 0.0)


def scaled(values: F64, batch: Batch) -> F64:
    """Centred rewards over the sample std of their unit, where `scale` asks for it; 0 for foreign visits.

    The std is about 0. Where groups lie within units that is the std about the mean; where a group spans roles, it
    keeps a role that is always off by the same amount from being divided by nothing.
    """
    degrees = np.maximum(total(batch.counted, batch.units) - 1.0, 1.0)
    std = np.sqrt(total(np.where(batch.counted, values**2, 0.0), batch.units) / degrees)
    return np.where(batch.trained, np.where(batch.divided, values / (std + EPSILON), values), 0.0)


def whitened(values: F64, units: I64, weights: F64, divided: Bools) -> F64:
    """Values minus their unit's weighted mean, over its sample std where `divided`; 0 in a unit of equal values.

    weights: how many tokens each value stands for, so that the statistics are those of the tokens.
    """
    off = values - mean(values, units, weights)
    std = np.sqrt(total(weights * off**2, units) / np.maximum(total(weights, units) - 1.0, 1.0))
    moves = varied(values, units, weights > 0)
    return np.where(moves, np.where(divided, off / (std + EPSILON), off), 0.0)
