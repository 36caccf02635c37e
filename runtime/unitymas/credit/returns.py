"""From rewards to returns: a visit's own reward, or also the later ones of its role."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unitymas.api.algorithm import Algorithm
from unitymas.api.records import Order, Visit
from unitymas.credit.port import F64, Bools


def returns(visits: Sequence[Visit], rule: Algorithm) -> F64:
    """Returns of one role's visits in one trajectory, shape (visits,), in reward units, as the role's rule says."""
    rewards = np.asarray([visit.reward for visit in visits], dtype=np.float64)
    if rule.returns == "own":
        return rewards
    return to_go(rewards, [visit.order for visit in visits], gamma=rule.gamma)


def to_go(rewards: F64, orders: Sequence[Order], *, gamma: float) -> F64:
    """Own reward plus the later ones, each discounted by `gamma` for every stage between; shape (visits,).

    A visit's stage is the length of the longest chain of visits before it. Visits of parallel branches are not later
    than each other: they share a stage or not, but never a reward. In a sequence this is the usual discounted sum.
    """
    later = _later(orders)
    stages = _stages(later, orders)
    factor = np.where(later, gamma ** np.maximum(stages[None, :] - stages[:, None], 0), 0.0)
    return rewards + factor @ rewards


def _later(orders: Sequence[Order]) -> Bools:
    """(visits, visits): whether the second comes after the first in program order."""
    depth = max((len(order) for order in orders), default=0)
    # a place outside a block comes before the places inside: -1 sorts first
    padded = [[*order, *[(False, -1)] * (depth - len(order))] for order in orders]
    table = np.asarray(padded, dtype=np.int64).reshape(len(orders), depth, 2)
    parallel, position = table[:, :, 0] == 1, table[:, :, 1]
    differ = position[:, None, :] != position[None, :, :]
    before = position[:, None, :] < position[None, :, :]
    aside = parallel[:, None, :] & parallel[None, :, :]
    first = differ & (np.cumsum(differ, axis=2) == 1)
    return np.any(first & before & ~aside, axis=2)


def _stages(later: Bools, orders: Sequence[Order]) -> F64:
    stages = np.zeros(len(orders))
    for visit in sorted(range(len(orders)), key=lambda index: [position for _, position in orders[index]]):
        stages[visit] = np.max(stages[later[:, visit]] + 1.0, initial=0.0)
    return stages
