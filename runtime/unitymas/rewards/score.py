"""Scores a trajectory: its metrics in their order, then every visit's rewards, then the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from unitymas.api import shapes
from unitymas.api.errors import Author, boundary
from unitymas.api.ports import Workers
from unitymas.api.records import Trajectory, Visit
from unitymas.expr.cel import Program
from unitymas.expr.errors import EvaluationError
from unitymas.rewards.compile import AFTER, Aside, MetricProgram, RewardProgram
from unitymas.rewards.series import Series
from unitymas.rewards.share import Parts, finite, parts, parts_of, rewarded, visit_record


@dataclass(slots=True)
class Scoring:
    """What is known of one trajectory while it is scored."""

    program: RewardProgram
    trajectory: Trajectory
    variables: dict[str, object]
    """What expressions see: the trajectory, and the metrics so far."""
    series: dict[str, Series] = field(default_factory=dict[str, Series])
    metrics: dict[str, float | Sequence[float]] = field(default_factory=dict[str, "float | Sequence[float]"])

    @staticmethod
    def of(program: RewardProgram, trajectory: Trajectory) -> Scoring:
        """Nothing known yet but the trajectory itself."""
        roles = rewarded(trajectory)
        calls = [call for visit in roles for call in visit.calls]
        tools = [visit for visit in trajectory.visits if visit.tool and visit.value.get("ran", False)]
        usage = {
            "calls": float(len(calls)),
            "visits": float(len(roles)),
            "outputTokens": float(sum(call.output_tokens for call in calls)),
            "toolCalls": float(len(tools)),
        }
        variables: dict[str, object] = {
            "task": trajectory.task.fields,
            "nodes": {**program.empty["nodes"], **trajectory.nodes},
            "state": {**program.empty["state"], **trajectory.state},
            "result": trajectory.result,
            "usage": usage,
        }
        return Scoring(program, trajectory, variables)

    def visits(self, metric: MetricProgram) -> Sequence[Visit | None]:
        """Where a metric is read: the visits of its nodes that ran, or once after the trajectory."""
        if not metric.at:
            return [None]
        return [visit for visit in self.trajectory.visits if visit.node in metric.at and visit.value.get("ran", False)]

    def arguments(self, metric: MetricProgram, visit: Visit | None) -> dict[str, object]:
        """A metric's keywords at one place. Raises Author."""
        seen = self.variables if visit is None else {**self.variables, "visit": visit_record(visit)}
        programs = metric.arguments[AFTER if visit is None else visit.node]
        return {name: _argument(metric, name, program, seen, visit) for name, program in programs.items()}

    def add(self, metric: MetricProgram, visits: Sequence[Visit | None], values: list[float]) -> None:
        """Record a metric's values: one, or a reading for each visit."""
        if not metric.at:
            self.metrics[metric.name] = self.variables[metric.name] = values[0]
            return
        series = Series([visit.order for visit in visits if visit is not None], values)
        self.series[metric.name] = series
        self.metrics[metric.name] = values
        self.variables[metric.name] = series.statistics

    def parts(self) -> Parts:
        """The parts of every visit's reward, when all metrics are known."""
        return parts(self.program, self.trajectory, self.variables, self.series)

    def finish(self, given: Parts) -> None:
        """Write everything onto the trajectory."""
        for visit in self.trajectory.visits:
            visit.rewards = given.get(visit.key, {})
        self.trajectory.metrics = self.metrics
        if self.program.score is not None:
            self.trajectory.score = cast(float, self.metrics[self.program.score])


async def score(trajectory: Trajectory, program: RewardProgram, *, workers: Workers, timeout_s: float) -> None:
    """Write metrics, score and every visit's rewards onto the trajectory.

    `timeout_s`: of one metric at one place, where the RewardSpec sets none. Only users' code and computer algebra go
    to the workers. Raises Author for an expression or a function that fails or gives no finite number, Deadline and
    Infrastructure as the workers do.
    """
    limit_s = program.timeout_s or timeout_s
    scoring = Scoring.of(program, trajectory)
    for metric in program.metrics:
        visits = scoring.visits(metric)
        values = [
            await _value(metric, scoring.arguments(metric, visit), _where(metric, visit), workers, limit_s)
            for visit in visits
        ]
        scoring.add(metric, visits, values)
    if program.python is None:
        given = scoring.parts()
    else:
        entrypoint = program.python.entrypoint
        where = f"rewards {entrypoint}"
        trajectory.metrics = scoring.metrics  # so that the function sees them
        yielded = await workers.call(entrypoint, [trajectory], where=where, timeout_s=limit_s)
        given = parts_of(yielded, trajectory, where)
    scoring.finish(given)


async def _value(
    metric: MetricProgram, arguments: Mapping[str, object], where: str, workers: Workers, timeout_s: float
) -> float:
    if isinstance(metric.run, Aside):
        aside = metric.run
        value = await workers.call(aside.entrypoint, arguments, where=where, timeout_s=timeout_s, setup=aside.setup)
    else:
        async with boundary(Author, where):
            value = metric.run(**arguments)
    return finite(value, where)


def _argument(
    metric: MetricProgram, name: str, program: Program, seen: Mapping[str, object], visit: Visit | None
) -> object:
    try:
        return shapes.conform(metric.wanted[name], program.evaluate(seen))
    except EvaluationError as error:
        raise Author(_where(metric, visit), str(error)) from error
    except shapes.ShapeError as error:
        what = f"`{program.text}`{error.path}: found {error.found}; expected {error.expected}"
        raise Author(_where(metric, visit), what) from error


def _where(metric: MetricProgram, visit: Visit | None) -> str:
    return f"metric {metric.name} ({metric.path})" + (f", visit {visit.key}" if visit is not None else "")
