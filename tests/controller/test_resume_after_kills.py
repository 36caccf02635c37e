"""A run that is killed again and again ends as one that is left alone: weights, trajectories, scores, bit for bit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from support.attempts import Attempts
from support.runs import quickstart_manifests, quickstart_project, weights_of
from unitymas.controller.barrier import Barrier
from unitymas.controller.pools import read_pools
from unitymas.controller.schedule import tasks_of
from unitymas.controller.store import Store
from unitymas.data import Sources

pytestmark = pytest.mark.integration
STEPS, KILLS = 12, 10
CHANGES: Mapping[str, Any] = {
    "run": {
        "schedule": {"steps": STEPS},
        "evaluation": {"every": 4, "select": "last"},
        "checkpoint": {"every": 1, "keep": 2},
    }
}
KILLED = -9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `alone` ran without a kill, and `killed` with many; logs of its attempts are beside it."""
    folder = tmp_path_factory.mktemp("resume")
    manifests = quickstart_manifests(folder / "manifests", **CHANGES)
    with Attempts(manifests, folder / "alone") as attempts:
        attempts.start(log=folder / "alone.log")
        assert attempts.end() == 0, (folder / "alone.log").read_text()
    with Attempts(manifests, folder / "killed") as attempts:
        for number in range(KILLS):
            attempts.start(log=folder / f"{number}.log")
            wait_for_moment(number, folder / "killed")
            attempts.kill()
            assert attempts.end() == KILLED, (folder / f"{number}.log").read_text()
            if number == KILLS // 2:
                damage_newest(folder / "killed" / "checkpoints")
        attempts.start(log=folder / "last.log")
        assert attempts.end() == 0, (folder / "last.log").read_text()
    return folder


def wait_for_moment(number: int, run: Path) -> None:
    """The first kill comes before the first checkpoint, every third one inside a write, the others in a step."""
    checkpoints = run / "checkpoints"

    def newest() -> int:
        return max(Barrier(checkpoints).steps(), default=-1)

    if number == 0:
        until(lambda: (run / "resources.yaml").exists())
    elif number % 3 == 1:
        until(lambda: any(checkpoints.glob(".step-*.part/*/policy/model*")))
    else:
        before = newest()
        until(lambda: newest() > before)
        time.sleep(random.Random(number).uniform(0.0, 0.5))


def until(due: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not due():
        assert time.monotonic() < deadline, "the moment to kill never came"
        time.sleep(0.002)


def damage_newest(checkpoints: Path) -> None:
    """What a disk that lost its last writes leaves."""
    newest = max(checkpoints.glob("step-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    (file,) = newest.glob("searcher/policy/optim*")
    file.write_bytes(file.read_bytes()[:-100])


def trajectories(run: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / "trajectories" / name).to_pylist()
    for row in rows:
        row["calls"] = [{key: value for key, value in call.items() if not key.endswith("_s")} for call in row["calls"]]
        del row["started_s"], row["ended_s"]
    return rows


def metrics(run: Path) -> list[dict[str, object]]:
    return [
        {
            name: value
            for name, value in record.items()
            if not name.startswith(("time/", "group/")) and name != "tokens_per_s"
        }
        for record in Store(run).read_metrics()
    ]


def test_final_weights_are_those_of_a_run_left_alone_bit_for_bit(folder: Path) -> None:
    for model in ("searcher", "answerer"):
        alone, killed = (
            weights_of(folder / run / "checkpoints" / f"step-{STEPS}", model) for run in ("alone", "killed")
        )
        first = weights_of(folder / "alone" / "checkpoints" / "step-0", model)
        assert alone.keys() == killed.keys()
        assert all(torch.equal(alone[name], killed[name]) for name in alone)
        assert not all(torch.equal(alone[name], first[name]) for name in alone)


def test_every_trajectory_is_that_of_a_run_left_alone(folder: Path) -> None:
    alone, killed = (
        sorted(path.name for path in (folder / run / "trajectories").iterdir()) for run in ("alone", "killed")
    )
    assert alone == killed
    for name in alone:
        assert trajectories(folder / "alone", name) == trajectories(folder / "killed", name)


def test_no_task_is_skipped_or_repeated(folder: Path) -> None:
    project = quickstart_project(folder / "again", **CHANGES)
    pools = read_pools(project, Sources(project.run.spec, Path(project.folder)))["train"]
    for step in range(STEPS):
        rows = trajectories(folder / "killed", f"step-{step + 1:06d}.parquet")
        expected = [row.id for row in tasks_of(0, pools, step=step, per_step=2)]
        assert list(dict.fromkeys(row["task"] for row in rows)) == expected


def test_metrics_and_scores_are_recorded_once(folder: Path) -> None:
    assert metrics(folder / "killed") == metrics(folder / "alone")
    phases = [(record["phase"], record["step"]) for record in metrics(folder / "alone")]
    assert len(set(phases)) == len(phases)


def test_a_half_written_checkpoint_is_passed_over_and_said_so(folder: Path) -> None:
    logs = [path.read_text() for path in sorted(folder.glob("*.log"))]
    assert any("checkpoint.passed_over" in log and "half-written" in log for log in logs)
    assert any("checkpoint.passed_over" in log and "is not what was written" in log for log in logs)
