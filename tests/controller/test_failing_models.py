"""Engines that break: one that does so once changes nothing, one that stays dead ends the step; the run resumes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from support.runs import Heard, quickstart_project, train_here, weights_of
from support.scripted import run_loop
from unitymas.api.errors import Infrastructure
from unitymas.api.ports import ModelGroup
from unitymas.api.resources import Project
from unitymas.controller.barrier import Barrier
from unitymas.controller.store import Store
from unitymas.models import Backend, build_groups

pytestmark = pytest.mark.integration
STEPS = 3
RUN: Mapping[str, Any] = {
    "schedule": {"steps": STEPS, "tasksPerStep": 4},
    "evaluation": {"every": STEPS, "select": "last"},
    "limits": {"retries": 1},
}


class Breaks:
    """An engine that breaks from its nth batch on, so often."""

    def __init__(self, engine: Any, *, at: int, times: int) -> None:
        self.engine, self.at, self.times, self.batches = engine, at, times, 0

    def generate(self, prompts: Any) -> Any:
        self.batches += 1
        if self.at <= self.batches < self.at + self.times:
            raise RuntimeError("out of memory")
        return self.engine.generate(prompts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@dataclass
class Attempt(Heard):
    """Knows the model groups; what `wreck` does to them is done when step 2 starts."""

    backend: Backend = "local"
    wreck: Callable[[Mapping[str, Any]], None] = lambda groups: None
    groups: dict[str, ModelGroup] = field(default_factory=dict[str, ModelGroup])

    async def build(self, project: Project, locate: Callable[[str], Path]) -> Mapping[str, ModelGroup]:
        self.groups = await build_groups(project, locate, backend=self.backend)
        return self.groups

    def phase(self, name: str, total: int) -> None:
        super().phase(name, total)
        if name == "step 2":
            self.wreck(cast("dict[str, Any]", self.groups))


def break_engine(times: int) -> Callable[[Mapping[str, Any]], None]:
    def wreck(groups: Mapping[str, Any]) -> None:
        core = groups["answerer"]._link._core
        core._engine = Breaks(core._engine, at=1, times=times)

    return wreck


def kill_worker(groups: Mapping[str, Any]) -> None:
    os.kill(groups["answerer"]._link.pid, signal.SIGKILL)


def run(project: Project, folder: Path, attempt: Attempt) -> None:
    run_loop(project, folder, attempt.build, observer=attempt)


def said(folder: Path) -> list[tuple[Any, ...]]:
    """What was asked, said and rewarded in training and evaluation, in order."""
    columns = ("trajectory", "visit", "prompt", "text", "reward", "score")
    files = sorted((folder / "trajectories").iterdir())
    return [tuple(row[name] for name in columns) for file in files for row in pq.read_table(file).to_pylist()]


def apart(first: Path, second: Path) -> float:
    """Largest distance between the final weights of two runs."""
    found = 0.0
    for model in ("searcher", "answerer"):
        one, other = (weights_of(folder / "checkpoints" / f"step-{STEPS}", model) for folder in (first, second))
        found = max(found, *(float((one[name] - other[name]).abs().max()) for name in one))
    return found


def crossed(folder: Path) -> list[object]:
    """Bytes that came out of the model groups in the first step."""
    first = next(record for record in Store(folder).read_metrics() if record["phase"] == "train")
    return [first[f"group/{model}/bytes_out"] for model in ("searcher", "answerer")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return quickstart_project(tmp_path_factory.mktemp("manifests"), run=RUN)


@pytest.fixture(scope="module")
def alone(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which nothing breaks."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    train_here(project, folder)
    return folder


def test_an_engine_that_breaks_once_changes_neither_trajectories_nor_weights(
    project: Project, alone: Path, tmp_path: Path
) -> None:
    run(project, tmp_path / "run", Attempt(wreck=break_engine(1)))
    assert said(tmp_path / "run") == said(alone)
    assert apart(tmp_path / "run", alone) == 0.0


def test_an_engine_that_stays_broken_ends_the_step_and_the_run_resumes(
    project: Project, alone: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        Infrastructure, match=r"train after step 1: 16 of 16 .*model answerer: RuntimeError: out of memory"
    ):
        run(project, tmp_path / "run", Attempt(wreck=break_engine(9)))
    found = Barrier(tmp_path / "run" / "checkpoints").latest()
    assert found is not None and found[1].step == 1
    run(project, tmp_path / "run", Attempt())
    assert said(tmp_path / "run") == said(alone)
    assert apart(tmp_path / "run", alone) == 0.0


def test_on_ray_a_dead_worker_ends_the_step_and_the_resumed_run_equals_a_local_one(
    project: Project, alone: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(Infrastructure, match=r"train after step 1: 16 of 16 .*model answerer: its Ray worker broke"):
        run(project, folder, Attempt(backend="ray", wreck=kill_worker))
    found = Barrier(folder / "checkpoints").latest()
    assert found is not None and found[1].step == 1
    run(project, folder, Attempt(backend="ray"))
    assert said(folder) == said(alone)
    assert apart(folder, alone) <= 1e-5
    assert crossed(folder) == crossed(alone)
