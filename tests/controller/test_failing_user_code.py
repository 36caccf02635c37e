"""Tools, rewards and data that fail: the class, the message, and what comes of it. Without a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.runs import Heard
from support.scripted import Learner, run_scripted, small_project, yes
from unitymas.api.errors import Author, BadInput
from unitymas.api.resources import Project, RewardSpec
from unitymas.cli.display import step_line
from unitymas.controller import session
from unitymas.controller.barrier import Barrier
from unitymas.controller.store import Store

TOOL: Mapping[str, Any] = {"python": {"entrypoint": "helpers:look_up"}}
FLAKY = """
    import random
    from pathlib import Path

    from unitymas.api.errors import Infrastructure

    CALLS = Path(__file__).with_name("calls.txt")

    def look_up(query):
        with CALLS.open("a") as calls:
            calls.write(query + "\\n")
        number = len(CALLS.read_text().splitlines())
        if query.startswith("train") and random.Random(number).random() < 0.3:
            raise Infrastructure("wiki.example", "503 service unavailable")
        return {"found": query.upper()}
"""


def project_with(folder: Path, code: str, **run: Any) -> Project:
    project = small_project(folder, tool=TOOL, **run)
    (folder / "helpers.py").write_text(dedent(code), "utf-8")
    return project


def train_record(folder: Path, step: int) -> dict[str, Any]:
    records = Store(folder).read_metrics()
    return next(record for record in records if (record["phase"], record["step"]) == ("train", step))


def test_a_tool_that_fails_three_times_in_ten_is_asked_again_and_nothing_is_lost(tmp_path: Path) -> None:
    project = project_with(tmp_path / "p", FLAKY, limits={"retries": 3})
    group = Learner("m", yes)
    run_scripted(project, tmp_path / "run", {"m": group})
    asked = [line for line in (tmp_path / "p" / "calls.txt").read_text().splitlines() if line.startswith("train")]
    assert len(asked) > 4 * 4
    assert [len(visits) for _, visits in group.lessons] == [4, 4, 4, 4]


def test_trajectories_lost_to_a_tool_are_in_neither_loss_nor_baseline_and_counted(tmp_path: Path) -> None:
    limits = {"retries": 0, "failedShare": 1.0}
    project = project_with(tmp_path / "p", FLAKY, limits=limits, schedule={"steps": 4, "tasksPerStep": 4})
    group = Learner("m", yes)
    run_scripted(project, tmp_path / "run", {"m": group})
    lost = 0
    for step, visits in group.lessons:
        file = tmp_path / "run" / "trajectories" / f"step-{step + 1:06d}.parquet"
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
        failed = {row["trajectory"]: row["trajectory_error"] for row in rows if row["trajectory_failure"]}
        assert all("tool helpers:look_up: Infrastructure: wiki.example: 503" in error for error in failed.values())
        assert {visit.rpartition("/")[0] for visit in visits} == {row["trajectory"] for row in rows} - set(failed)
        assert train_record(tmp_path / "run", step + 1).get("failures/infrastructure", 0.0) == len(failed)
        lost += len(failed)
    assert 0 < lost < 32


def test_a_tool_that_hangs_is_cut_off_and_its_trajectories_are_lost(tmp_path: Path) -> None:
    hanging = """
        import time

        def look_up(query):
            if query == "train 3":
                time.sleep(3600)
            return {"found": query}
    """
    limits = {"tool": "3s", "retries": 0}
    schedule = {"steps": 3, "tasksPerStep": 2}
    project = project_with(tmp_path / "p", hanging, limits=limits, schedule=schedule)
    heard = Heard()
    run_scripted(project, tmp_path / "run", {"m": Learner("m", yes)}, observer=heard)
    lost = [trajectory for trajectory in heard.trajectories if trajectory.failure is not None]
    assert {trajectory.task.id for trajectory in lost} == {"train3"}
    assert lost[0].error == "tool helper: tool helpers:look_up: helpers:look_up ran longer than 3 s"
    assert sum(report.numbers.get("failures/infrastructure", 0.0) for report in heard.steps) == len(lost) == 2


def test_a_mistake_in_a_tool_ends_the_run_with_its_line(tmp_path: Path) -> None:
    project = project_with(tmp_path / "p", 'def look_up(query):\n    return {"found": query["name"]}\n')
    with pytest.raises(Author, match=r"tool .*TypeError: string indices .*\n.*helpers\.py:2 in look_up") as caught:
        run_scripted(project, tmp_path / "run", {"m": Learner("m", yes)})
    assert str(tmp_path / "p") in str(caught.value)
    assert not (tmp_path / "run" / "trajectories").exists()


def test_a_reward_that_raises_ends_the_run_at_once_with_its_line(tmp_path: Path) -> None:
    project = small_project(tmp_path / "p")
    (tmp_path / "p" / "rewarding.py").write_text("def worth(result):\n    return 1 / (len(result) - 3)\n", "utf-8")
    python = {"entrypoint": "rewarding:worth", "with": {"result": "result"}}
    metric = {"name": "right", "python": python}
    spec = {**project.reward.spec.model_dump(by_alias=True, exclude_unset=True), "metrics": [metric]}
    reward = RewardSpec.model_validate({"metadata": {"name": "small"}, "spec": spec})
    heard, group = Heard(), Learner("m", yes)
    broken = Project(project.run, project.workflow, project.mapping, reward, project.folder)
    with pytest.raises(Author, match=r"metric right .*ZeroDivisionError: .*\n.*rewarding\.py:2 in worth"):
        run_scripted(broken, tmp_path / "run", {"m": group}, observer=heard)
    assert not group.lessons
    assert Barrier(tmp_path / "run" / "checkpoints").latest() is None


def test_a_broken_row_is_named_before_anything_is_loaded(tmp_path: Path) -> None:
    project = small_project(tmp_path / "p")
    rows = (tmp_path / "p" / "dev.jsonl").read_text("utf-8").splitlines()
    rows[2] = json.dumps({"id": "dev2", "question": 7})
    (tmp_path / "p" / "dev.jsonl").write_text("\n".join([*rows, "{half"]), "utf-8")
    with pytest.raises(BadInput) as caught:
        session.run_async(lambda stop: session.train(project, folder=tmp_path / "run", observer=Heard(), stop=stop))
    assert [finding.path for finding in caught.value.findings] == ["rows/dev.jsonl:3: question", "rows/dev.jsonl:7"]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("algorithm", "path"),
    [
        ({"compare": {"by": ["1 / (size(visit.output) - 3)"]}}, "compare.by"),
        ({"roles": {"answerer": {"compare": {"by": ["1 / (size(visit.output) - 3)"]}}}}, "roles.answerer.compare.by"),
    ],
)
def test_a_comparison_that_fails_on_a_value_ends_the_run_with_its_field(
    tmp_path: Path, algorithm: Mapping[str, Any], path: str
) -> None:
    project = small_project(tmp_path / "p", algorithm={"rolloutsPerTask": 2, **algorithm})
    group = Learner("m", yes)
    with pytest.raises(Author, match=rf"^spec\.algorithm\.{path}, visit answer: .*1 / \(size"):
        run_scripted(project, tmp_path / "run", {"m": group})
    assert not group.lessons


def test_a_run_without_a_score_trains_and_its_scores_are_null(tmp_path: Path) -> None:
    project = small_project(tmp_path / "p")
    spec = project.reward.spec.model_copy(update={"score": None})
    reward = project.reward.model_copy(update={"spec": spec})
    heard, group = Heard(), Learner("m", yes)
    run_scripted(replace(project, reward=reward), tmp_path / "run", {"m": group}, observer=heard)
    assert [step for step, _ in group.lessons] == [0, 1, 2, 3]
    records = Store(tmp_path / "run").read_metrics()
    assert {record.get("score") for record in records} == {None}
    assert "score none" in step_line(heard.steps[0])
