"""What a step or an evaluation was like, in numbers; and who wants to hear of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from unitymas.api.ports import Update
from unitymas.api.records import Trajectory
from unitymas.controller.evaluate import Estimate


@dataclass(frozen=True, slots=True)
class StepReport:
    """One training step. `numbers` are flat: `score`, `reward/<role>`, `model/<model>/<metric>`, `time/...`."""

    step: int
    """Steps done, this one included."""
    steps: int
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """One evaluation of one set of weights, by kind of sampling."""

    split: str
    step: int
    """Steps done when these weights were made."""
    scores: Mapping[str, Estimate] = field(default_factory=dict[str, Estimate])
    """By sampling, `greedy` or `sampled`."""


class Observer(Protocol):
    """Hears of a run's progress: a display, a log, the operator."""

    def phase(self, name: str, total: int) -> None:
        """Something of `total` trajectories starts, such as `step 3` or `dev greedy`."""
        ...

    def trajectory(self, trajectory: Trajectory) -> None:
        """A trajectory has ended."""
        ...

    def step(self, report: StepReport) -> None:
        """A step has been published."""
        ...

    def evaluation(self, report: EvaluationReport) -> None:
        """An evaluation is done."""
        ...

    def saved(self, step: int, path: str) -> None:
        """A checkpoint has been written."""
        ...


def numbers_of(trajectories: Sequence[Trajectory], updates: Mapping[str, Update]) -> dict[str, float]:
    """The flat numbers of one step; no `score` where no trajectory has one."""
    scores = [trajectory.score for trajectory in trajectories if trajectory.score is not None]
    numbers = {"trajectories": float(len(trajectories))} | ({"score": _mean(scores)} if scores else {})
    by_role: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    unparsed: Counter[str] = Counter()
    for trajectory in trajectories:
        for visit in trajectory.visits:
            if not visit.role or not visit.calls:
                continue
            by_role.setdefault(visit.role, []).append(visit.reward)
            unparsed[visit.role] += not visit.ok
            for name, value in visit.rewards.items():
                parts.setdefault(f"reward/{visit.role}/{name}", []).append(value)
    for role, rewards in by_role.items():
        numbers[f"reward/{role}"] = _mean(rewards)
        numbers[f"visits/{role}"] = float(len(rewards))
        numbers[f"unparsed/{role}"] = unparsed[role] / len(rewards)
    numbers |= {name: _mean(values) for name, values in parts.items()}
    calls = [call for trajectory in trajectories for visit in trajectory.visits for call in visit.calls]
    numbers["calls"] = float(len(calls))
    for name in ("prompt_tokens", "output_tokens", "truncated_tokens"):
        numbers[name] = float(sum(getattr(call, name) for call in calls))
    failures = Counter(trajectory.failure.value for trajectory in trajectories if trajectory.failure)
    numbers |= {f"failures/{name}": float(count) for name, count in failures.items()}
    for model, update in sorted(updates.items()):
        numbers |= {f"model/{model}/{name}": value for name, value in update.metrics.items()}
    return numbers


def _mean(values: Sequence[float]) -> float:
    return float(sum(values) / len(values)) if values else 0.0
