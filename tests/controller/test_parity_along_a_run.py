"""Rollout and trainer are the same policy at every step; when they part, the run stops before a weight changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from support.runs import Heard, quickstart_project, train_here, weights_of
from support.scripted import run_loop
from unitymas.api.errors import ParityBroken
from unitymas.api.ports import ModelGroup
from unitymas.api.resources import Project
from unitymas.controller.barrier import Barrier
from unitymas.controller.report import StepReport
from unitymas.controller.store import Store
from unitymas.models import build_groups

pytestmark = pytest.mark.integration
STEPS, BROKEN_AFTER = 6, 3
RUN: Mapping[str, Any] = {
    "algorithm": {"rolloutsPerTask": 8},
    "schedule": {"steps": STEPS, "tasksPerStep": 4},
    "evaluation": {"every": STEPS, "select": "last"},
}


@dataclass
class BrokenSync(Heard):
    """After a step, one model's engine serves other weights than its trainer has."""

    groups: dict[str, ModelGroup] = field(default_factory=dict[str, ModelGroup])
    before: dict[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])

    async def build(self, project: Project, locate: Callable[[str], Path]) -> Mapping[str, ModelGroup]:
        self.groups = await build_groups(project, locate, backend="local")
        return self.groups

    @property
    def core(self) -> Any:
        return cast(Any, self.groups["searcher"])._link._core

    def trained(self) -> dict[str, torch.Tensor]:
        return {name: weight.detach().clone() for name, weight in self.core._trainer.parameters()}

    def step(self, report: StepReport) -> None:
        super().step(report)
        if report.step == BROKEN_AFTER:
            self.before = self.trained()
            for weight in self.core._engine.model.parameters():
                weight.mul_(1.01)


def test_rollout_and_trainer_agree_at_every_step(tmp_path: Path) -> None:
    train_here(quickstart_project(tmp_path / "manifests", run={**RUN, "limits": {"parity": 1e-4}}), tmp_path / "run")
    records = [record for record in Store(tmp_path / "run").read_metrics() if record["phase"] == "train"]
    gaps = [float(str(record[f"model/{model}/parity_max"])) for record in records for model in ("searcher", "answerer")]
    assert len(gaps) == 2 * STEPS
    assert 0 < max(gaps) <= 1e-4


def test_a_broken_sync_stops_the_run_before_a_weight_changes_and_it_resumes(tmp_path: Path) -> None:
    project, folder = quickstart_project(tmp_path / "manifests", run=RUN), tmp_path / "run"
    broken = BrokenSync()
    with pytest.raises(ParityBroken, match=r"model searcher: .* nats .* Nothing was updated"):
        run_loop(project, folder, broken.build, observer=broken)
    after = broken.trained()
    assert all(torch.equal(broken.before[name], after[name]) for name in after)
    found = Barrier(folder / "checkpoints").latest()
    assert found is not None and found[1].step == BROKEN_AFTER
    run_loop(project, folder, BrokenSync().build)
    train_here(project, tmp_path / "alone")
    for model in ("searcher", "answerer"):
        resumed, alone = (
            weights_of(run / "checkpoints" / f"step-{STEPS}", model) for run in (folder, tmp_path / "alone")
        )
        assert all(torch.equal(resumed[name], alone[name]) for name in alone)
