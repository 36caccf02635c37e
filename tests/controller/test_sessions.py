"""Starting, resuming and finishing a run in a folder, with real models."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from support.runs import Heard, quickstart_project, train_here, weights_of
from unitymas.api.errors import BadInput, Infrastructure
from unitymas.controller.barrier import Barrier
from unitymas.controller.lock import training
from unitymas.controller.report import StepReport
from unitymas.controller.session import Summary

pytestmark = pytest.mark.integration
RUN: Mapping[str, Any] = {"evaluation": {"every": 3, "select": "last"}}
SMALL_BYTES = 300_000
"""Less than a model's weights, more than a step's trajectories."""


@dataclass
class FullDisk(Heard):
    """From the end of step 2 on, no file may be larger than some bytes: a disk that takes no more, for this process."""

    def step(self, report: StepReport) -> None:
        super().step(report)
        if report.step == 2:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_BYTES, most))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """Folder and summary of a run left alone; its manifests are beside it."""
    folder = tmp_path_factory.mktemp("finished")
    project = quickstart_project(folder / "manifests", run=RUN)
    return folder / "run", train_here(project, folder / "run")


def test_a_full_disk_at_a_checkpoint_leaves_the_last_one_and_the_run_resumes(
    finished: tuple[Path, Summary], tmp_path: Path
) -> None:
    project, folder = quickstart_project(tmp_path / "manifests", run=RUN), tmp_path / "run"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(Infrastructure, match=r"checkpoint .*step-2: .*last checkpoint is untouched: free space"):
            train_here(project, folder, FullDisk())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    found = Barrier(folder / "checkpoints").latest()
    assert found is not None and found[1].step == 1
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-0", "step-1"]
    summary = train_here(project, folder, resume=True)
    assert (summary.chosen_step, summary.chosen) == (finished[1].chosen_step, finished[1].chosen)
    for model in ("searcher", "answerer"):
        resumed, alone = (weights_of(run / "checkpoints" / "step-3", model) for run in (folder, finished[0]))
        assert all(torch.equal(resumed[name], alone[name]) for name in alone)


def test_a_run_that_has_ended_is_not_run_again(finished: tuple[Path, Summary]) -> None:
    folder, summary = finished
    project = quickstart_project(folder.parent / "manifests", run=RUN)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    heard = Heard()
    assert train_here(project, folder, heard, resume=True) == summary
    assert not heard.phases
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_folder_that_holds_a_run_takes_no_new_one(finished: tuple[Path, Summary]) -> None:
    folder, _ = finished
    with pytest.raises(BadInput, match="a run that was started here before"):
        train_here(quickstart_project(folder.parent / "manifests", run=RUN), folder)


def test_a_run_resumes_with_the_resources_that_it_was_started_with_only(finished: tuple[Path, Summary]) -> None:
    folder, _ = finished
    changed = quickstart_project(folder.parent / "changed", run={**RUN, "seed": 7})
    with pytest.raises(BadInput, match="resources that have changed since the run started"):
        train_here(changed, folder, resume=True)


def test_a_new_run_takes_no_checkpoints_of_another(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "quickstart" / "checkpoints" / "step-4").mkdir(parents=True)
    changes = {**RUN, "sources": ({"name": "runs", "path": str(kept)},), "checkpoint": {"source": "runs"}}
    with pytest.raises(BadInput, match="checkpoints of a run before, of steps 4"):
        train_here(quickstart_project(tmp_path / "manifests", run=changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_whose_model_is_missing_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    project = quickstart_project(tmp_path / "manifests", model=tmp_path / "empty", run=RUN)
    with pytest.raises(BadInput, match=r"config\.json"):
        train_here(project, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_checkpoints_go_to_a_source_that_the_run_makes(tmp_path: Path) -> None:
    changes = {
        "schedule": {"steps": 1},
        "sources": ({"name": "runs", "path": str(tmp_path / "kept" / "runs")},),
        "checkpoint": {"source": "runs"},
    }
    project = quickstart_project(tmp_path / "manifests", run=changes)
    train_here(project, tmp_path / "run")
    checkpoints = tmp_path / "kept" / "runs" / "quickstart" / "checkpoints"
    assert Barrier(checkpoints).steps() == [0, 1]
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_run_that_another_process_trains_is_neither_started_nor_resumed(tmp_path: Path) -> None:
    project = quickstart_project(tmp_path / "manifests", run=RUN)
    (tmp_path / "run").mkdir()
    with training(tmp_path / "run"):
        with pytest.raises(BadInput, match="trained by another process"):
            train_here(project, tmp_path / "run")
        assert not (tmp_path / "run" / "resources.yaml").exists()
