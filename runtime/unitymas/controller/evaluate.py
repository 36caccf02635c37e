"""Evaluation: the curve on dev, and once, at the end, first and chosen weights on test; with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unitymas.api.errors import Failure
from unitymas.api.records import Trajectory

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean score with its 95 % bootstrap interval over tasks."""

    mean: float
    low: float
    high: float
    tasks: int
    lost: int
    """Trajectories lost to infrastructure: in no mean, shown apart."""

    @staticmethod
    def read(written: Mapping[str, Any]) -> Estimate:
        """From JSON, which has null for what is not a number."""
        found: dict[str, Any] = {name: math.nan if value is None else value for name, value in written.items()}
        return Estimate(**found)

    def __str__(self) -> str:
        lost = f", {self.lost} lost" if self.lost else ""
        scored = "no score" if math.isnan(self.mean) else f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return f"{scored} on {self.tasks} tasks{lost}"


def estimate(trajectories: Sequence[Trajectory], *, seed: int = 0) -> Estimate:
    """Mean score by task, then over tasks, so that repeats of a task are not counted as independent.

    A failure of the policy counts with the score it got, or 0 where it got none; one of infrastructure is left out.
    Where no score is asked for, or all is lost, there is no mean: it is NaN.
    """
    by_task: dict[str, list[float]] = {}
    lost = 0
    for trajectory in trajectories:
        if trajectory.failure is Failure.INFRASTRUCTURE:
            lost += 1
        else:
            by_task.setdefault(trajectory.task.id, []).append(trajectory.score or 0.0)
    means = np.array([np.mean(scores) for scores in by_task.values()], dtype=np.float64)
    if means.size == 0 or not _scored(trajectories):
        return Estimate(math.nan, math.nan, math.nan, means.size, lost)
    draws = np.random.default_rng(seed).integers(0, means.size, (RESAMPLES, means.size))
    low, high = np.quantile(means[draws].mean(axis=1), [0.025, 0.975])
    return Estimate(float(means.mean()), float(low), float(high), means.size, lost)


def _scored(trajectories: Sequence[Trajectory]) -> bool:
    """Whether a score is asked for: one that ended well has none only where it is not."""
    ended = [trajectory.score for trajectory in trajectories if trajectory.failure is None]
    return not ended or any(score is not None for score in ended)
