"""Training an example, and what was heard of it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from unitymas.api.records import Trajectory
from unitymas.api.resources import Project
from unitymas.controller.loop import Stop
from unitymas.controller.report import EvaluationReport, StepReport
from unitymas.controller.session import Summary, run_async, train


@dataclass(slots=True)
class Heard:
    """An observer that keeps everything."""

    steps: list[StepReport] = field(default_factory=list[StepReport])
    evaluations: list[EvaluationReport] = field(default_factory=list[EvaluationReport])

    def phase(self, name: str, total: int) -> None:
        """See `Observer`."""

    def trajectory(self, trajectory: Trajectory) -> None:
        """See `Observer`."""

    def step(self, report: StepReport) -> None:
        """See `Observer`."""
        self.steps.append(report)

    def evaluation(self, report: EvaluationReport) -> None:
        """See `Observer`."""
        self.evaluations.append(report)

    def saved(self, step: int, path: str) -> None:
        """See `Observer`."""


@pytest.fixture
def trained() -> Callable[[Project, Path], Heard]:
    """Trains a project into a folder, to its end."""

    def run(project: Project, folder: Path) -> Heard:
        heard = Heard()

        async def main(stop: Stop) -> Summary:
            return await train(project, folder=folder, observer=heard, stop=stop)

        run_async(main)
        return heard

    return run
