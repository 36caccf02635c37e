"""Which tasks a step trains on, and what else it does: pure functions of seed and step, so that resuming is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unitymas.api.records import TaskRow
from unitymas.api.run import Evaluation, Schedule


@dataclass(frozen=True, slots=True)
class Pool:
    """The rows of one file, with its share of the draws."""

    rows: Sequence[TaskRow]
    weight: float = 1.0


@lru_cache(maxsize=64)
def _shuffled(seed: int, pool: int, epoch: int, size: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng([seed, pool, epoch]).permutation(size).tolist())


def _nth(seed: int, pools: Sequence[Pool], pool: int, draw: int) -> TaskRow:
    """The draw-th row taken from a pool: every epoch holds each row once, in an order of its own."""
    rows = pools[pool].rows
    epoch, position = divmod(draw, len(rows))
    return rows[_shuffled(seed, pool, epoch, len(rows))[position]]


@lru_cache(maxsize=8)
def _picks(weights: tuple[float, ...], count: int) -> tuple[tuple[int, int], ...]:
    """(pool, draw within it) of the first `count` draws: always the pool that lags most behind its share."""
    if len(weights) == 1:
        return tuple((0, draw) for draw in range(count))
    taken = [0] * len(weights)
    total = sum(weights)
    picks: list[tuple[int, int]] = []
    for draw in range(1, count + 1):
        lag = [draw * weight / total - done for weight, done in zip(weights, taken, strict=True)]
        pool = lag.index(max(lag))
        picks.append((pool, taken[pool]))
        taken[pool] += 1
    return tuple(picks)


def tasks_of(seed: int, pools: Sequence[Pool], *, step: int, per_step: int) -> list[TaskRow]:
    """The tasks of one step, `per_step` of them: no row is skipped or repeated before its pool has been used up."""
    picks = _picks(tuple(pool.weight for pool in pools), (step + 1) * per_step)
    return [_nth(seed, pools, pool, draw) for pool, draw in picks[step * per_step :]]


def evaluates(step: int, evaluation: Evaluation, schedule: Schedule) -> bool:
    """Whether dev is looked at when `step` steps are done."""
    return step % evaluation.every == 0 or step == schedule.steps


def dev_tasks(seed: int, rows: Sequence[TaskRow], most: int | None) -> list[TaskRow]:
    """The dev tasks of every point of the curve: always the same ones."""
    if most is None or most >= len(rows):
        return list(rows)
    chosen = sorted(np.random.default_rng([seed, 0xDE5]).permutation(len(rows))[:most].tolist())
    return [rows[index] for index in chosen]
