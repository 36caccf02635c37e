"""What each class of failure does to a trajectory: tried again, left out, scored as it stands, or the run's end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog

from support.scripted import Learner, run_scripted, small_project, yes
from unitymas.api.errors import Author, Deadline, Failed, Failure, Infrastructure
from unitymas.api.ports import ToolAnswer
from unitymas.api.records import Reply, Request, TaskRow, Trajectory
from unitymas.api.run import Limits
from unitymas.controller.barrier import Barrier
from unitymas.controller.rollout import Rollout, Wanted, counted, require_enough
from unitymas.controller.store import Store
from unitymas.workflow import Answered, Workflow, prepare

TASKS = ("a", "b", "c")


@dataclass
class Dispatch:
    """Answers yes, but for some tasks: what `fails` gives is raised so often, and those that `hang` never answer."""

    fails: Mapping[str, tuple[Failed, int]] = field(default_factory=dict[str, "tuple[Failed, int]"])
    hang: frozenset[str] = frozenset()
    asked: Counter[str] = field(default_factory=Counter[str])

    async def generate(self, model: str, request: Request) -> Answered:
        task = request.id.task
        self.asked[task] += 1
        if task in self.hang:
            await asyncio.Event().wait()
        error, times = self.fails.get(task, (None, 0))
        if error is not None and self.asked[task] <= times:
            raise error
        return Answered(Reply("yes", "stop", 1, 1, 0, version=0), 0.0, 0.0)

    async def call_tool(self, tool: str, arguments: Mapping[str, object]) -> ToolAnswer:
        raise AssertionError(tool)

    def now(self) -> float:
        return 0.0


async def scored(trajectory: Trajectory) -> None:
    trajectory.score = 1.0 if trajectory.result == "yes" else 0.0


def workflow(tmp_path: Path) -> Workflow:
    return prepare(small_project(tmp_path).workflow.spec, {"answerer": "m"})


def roll(tmp_path: Path, dispatch: Dispatch, *, score: Any = scored, **limits: Any) -> list[Trajectory]:
    rollout = Rollout(
        workflow=workflow(tmp_path),
        dispatch=dispatch,
        score=score,
        limits=Limits.model_validate({"retries": 2, "trajectory": 0.2, **limits}),
        run_seed=0,
        most=2,
    )
    wanted = [Wanted(TaskRow(task, {"question": task}), 0, 0) for task in TASKS]
    return asyncio.run(rollout.all(wanted, lambda trajectory: None))


def failures(trajectories: list[Trajectory]) -> dict[str, Failure | None]:
    return {trajectory.task.id: trajectory.failure for trajectory in trajectories}


@pytest.mark.parametrize("times", [1, 2])
def test_what_broke_is_tried_again_as_often_as_the_run_allows(tmp_path: Path, times: int) -> None:
    dispatch = Dispatch({"b": (Infrastructure("model m", "broke"), times)})
    trajectories = roll(tmp_path, dispatch)
    assert failures(trajectories) == dict.fromkeys(TASKS)
    assert [trajectory.score for trajectory in trajectories] == [1.0, 1.0, 1.0]
    assert dispatch.asked == {"a": 1, "b": times + 1, "c": 1}
    assert [len(trajectory.visits) for trajectory in trajectories] == [1, 1, 1]


def test_what_stays_broken_is_lost_with_its_reason(tmp_path: Path) -> None:
    dispatch = Dispatch({"b": (Infrastructure("model m", "broke"), 9)})
    trajectories = roll(tmp_path, dispatch)
    assert failures(trajectories) == {"a": None, "b": Failure.INFRASTRUCTURE, "c": None}
    assert dispatch.asked["b"] == 3
    assert trajectories[1].error == "model m: broke"
    assert trajectories[1].score is None
    assert not counted(trajectories[1], Limits())


@pytest.mark.parametrize("rule", ["score", "drop"])
def test_a_late_trajectory_is_scored_as_it_stands_or_left_out(tmp_path: Path, rule: Any) -> None:
    trajectories = roll(tmp_path, Dispatch(hang=frozenset({"b"})), onDeadline=rule)
    late = trajectories[1]
    assert failures(trajectories) == {"a": None, "b": Failure.DEADLINE, "c": None}
    assert late.error == "not finished within limits.trajectory, 0.2s"
    assert late.score == (0.0 if rule == "score" else None)
    assert counted(late, Limits.model_validate({"onDeadline": rule})) == (rule == "score")


def test_a_late_trajectory_fails_the_run_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(Deadline, match=r"trajectory train/0/b/0: not finished within limits\.trajectory, 0\.2s"):
        roll(tmp_path, Dispatch(hang=frozenset({"b"})), onDeadline="fail")


def test_a_mistake_of_the_author_ends_the_step_at_once(tmp_path: Path) -> None:
    dispatch = Dispatch({"a": (Author("prompt", "no such field"), 9)}, hang=frozenset({"b"}))
    with pytest.raises(Author, match="prompt: no such field"):
        roll(tmp_path, dispatch, trajectory="60s")
    assert dispatch.asked["a"] == 1


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Infrastructure("metric", "its process died"), Failure.INFRASTRUCTURE),
        (Deadline("metric", "late"), Failure.DEADLINE),
    ],
)
def test_a_metric_that_breaks_or_is_late_costs_its_own_trajectory(
    tmp_path: Path, error: Failed, failure: Failure
) -> None:
    async def score(trajectory: Trajectory) -> None:
        if trajectory.task.id == "b":
            raise error
        await scored(trajectory)

    trajectories = roll(tmp_path, Dispatch(), score=score)
    assert failures(trajectories) == {"a": None, "b": failure, "c": None}
    assert trajectories[1].error == str(error)
    assert trajectories[1].visits[0].reward == 0.0


def test_lost_trajectories_are_in_neither_loss_nor_baseline_and_counted(tmp_path: Path) -> None:
    def broken(request: Request) -> Exception | None:
        lost = (request.id.phase, request.id.step, request.id.rollout) == ("train", 1, 0)
        return Infrastructure("model m", "broke") if lost else None

    group = Picky("m", yes, failure=broken)
    project = small_project(tmp_path / "p", limits={"retries": 1})
    run_scripted(project, tmp_path / "run", {"m": group})
    lost = [visits for step, visits in group.lessons if step == 1]
    assert [visit.split("/")[3] for visit in lost[0]] == ["1", "1"]
    record = next(
        record for record in Store(tmp_path / "run").read_metrics() if (record["step"], record["phase"]) == (2, "train")
    )
    assert (record["failures/infrastructure"], record["trajectories"]) == (2.0, 4.0)


def test_a_step_that_loses_too_many_fails_and_the_run_resumes(tmp_path: Path) -> None:
    def broken(request: Request) -> Exception | None:
        return Infrastructure("model m", "engine died") if (request.id.phase, request.id.step) == ("train", 2) else None

    project, folder = small_project(tmp_path / "p", limits={"retries": 0}), tmp_path / "run"
    with pytest.raises(
        Infrastructure, match=r"train after step 2: 4 of 4 trajectories lost; the last one: .*engine died"
    ):
        run_scripted(project, folder, {"m": Learner("m", yes, failure=broken)})
    found = Barrier(folder / "checkpoints").latest()
    assert found is not None and found[1].step == 2
    resumed = Learner("m", yes)
    run_scripted(project, folder, {"m": resumed})
    assert [step for step, _ in resumed.lessons] == [0, 1, 2, 3]


def test_an_error_that_nobody_foresaw_ends_the_run_instead_of_hanging_it(tmp_path: Path) -> None:
    def broken(request: Request) -> Exception:
        return ZeroDivisionError("division by zero")

    group = Learner("m", yes, failure=broken)
    with pytest.raises(Author, match="model m: ZeroDivisionError: division by zero"):
        run_scripted(small_project(tmp_path / "p"), tmp_path / "run", {"m": group})


class Picky(Learner):
    """Fails single requests of a batch: as a group that takes single requests does (`api.ports.Streams`)."""

    async def answer(self, request: Request) -> Reply:
        return (await self.generate([request]))[0]


@pytest.mark.parametrize("failure", [Failure.DEADLINE, Failure.INFRASTRUCTURE])
def test_too_many_that_do_not_count_fail_the_attempt(failure: Failure) -> None:
    limits = Limits.model_validate({"onDeadline": "drop", "failedShare": 0.5})
    given = [Trajectory(TaskRow(task, {}), 0, 0, failure=failure, error="why") for task in TASKS]
    given[0].failure = None
    error = {Failure.DEADLINE: Deadline, Failure.INFRASTRUCTURE: Infrastructure}[failure]
    with pytest.raises(error, match="train: 2 of 3 trajectories lost; the last one: why"):
        require_enough(given, limits, "train")
    given[1].failure = None
    require_enough(given, limits, "train")


def test_late_trajectories_that_are_scored_are_warned_of_where_they_are_many() -> None:
    given = [Trajectory(TaskRow(task, {}), 0, 0, failure=Failure.DEADLINE, error="why") for task in TASKS]
    with structlog.testing.capture_logs() as logs:
        require_enough(given, Limits(), "train")
    assert [(told["event"], told["late"], told["of"]) for told in logs] == [("trajectories.late", 3, 3)]
