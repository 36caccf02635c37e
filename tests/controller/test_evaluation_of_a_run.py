"""What a run is evaluated on and when: dev along the way, test once at the end, neither of them trained on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.runs import Heard
from support.scripted import Learner, run_scripted, small_project, yes
from unitymas.api.records import Request
from unitymas.controller.store import Store


def improves_and_forgets(request: Request) -> str:
    """Right with the weights of step 2 only."""
    return "yes" if LEARNER.version == 2 else "no"


LEARNER = Learner("m", improves_and_forgets)


def run(tmp_path: Path, learner: Learner, evaluation: Mapping[str, Any]) -> tuple[Heard, list[Any]]:
    heard = Heard()
    project = small_project(tmp_path / "p", evaluation=evaluation)
    reports = run_scripted(project, tmp_path / "run", {"m": learner}, observer=heard)
    return heard, reports


def test_first_weights_are_evaluated_and_test_is_touched_once_at_the_end(tmp_path: Path) -> None:
    learner = Learner("m", yes)
    heard, _ = run(tmp_path, learner, {"every": 2, "select": "last"})
    looked = [(report.split, report.step) for report in heard.evaluations]
    assert looked == [("dev", 0), ("dev", 2), ("dev", 4), ("test", 0), ("test", 4)]
    phases = [request.id.phase for request in learner.requests]
    assert phases.index("test-greedy") == len(phases) - 2 * 6
    assert [(r.id.task, r.id.step) for r in learner.requests[-12:]] == [
        (f"test{task}", step) for step in (0, 4) for task in range(6)
    ]


def test_dev_and_test_are_never_trained_on(tmp_path: Path) -> None:
    learner = Learner("m", yes)
    run(tmp_path, learner, {"every": 1, "select": "last"})
    assert {request.id.task.rstrip("0123456789") for request in learner.requests if request.keep} == {"train"}
    learnt = {visit.split("/")[2].rstrip("0123456789") for _, visits in learner.lessons for visit in visits}
    assert learnt == {"train"}
    for request in learner.requests:
        split = request.id.task.rstrip("0123456789")
        assert request.id.phase.partition("-")[0] == split


def test_the_best_weights_on_dev_are_chosen_for_test(tmp_path: Path) -> None:
    LEARNER.requests.clear()
    heard, reports = run(tmp_path, LEARNER, {"every": 1, "select": "best"})
    curve = [report.scores["greedy"].mean for report in heard.evaluations if report.split == "dev"]
    assert curve == [0.0, 0.0, 1.0, 0.0, 0.0]
    assert [(report.step, report.scores["greedy"].mean) for report in reports] == [(0, 0.0), (2, 1.0)]


def test_where_no_weights_are_better_the_first_are_chosen_and_tested_once(tmp_path: Path) -> None:
    _, reports = run(tmp_path, Learner("m", yes), {"every": 1, "select": "best"})
    assert [report.step for report in reports] == [0]


def test_every_kind_of_sampling_is_told_apart_and_the_first_one_chooses(tmp_path: Path) -> None:
    learner = Learner("m", yes)
    evaluation = {"every": 4, "sampling": ["sampled", "greedy"], "repeats": 3, "tasks": 2, "select": "last"}
    heard, _ = run(tmp_path, learner, evaluation)
    assert [list(report.scores) for report in heard.evaluations] == [["sampled", "greedy"]] * 4
    dev = [request for request in learner.requests if request.id.phase.startswith("dev") and request.id.step == 0]
    asked = [(request.id.phase, request.sampling.temperature) for request in dev]
    assert asked == [("dev-sampled", 1.0)] * 6 + [("dev-greedy", 0.0)] * 2


def test_every_step_tells_the_seconds_since_the_command(tmp_path: Path) -> None:
    run(tmp_path, Learner("m", yes), {"every": 4})
    records = [record for record in Store(tmp_path / "run").read_metrics() if record["phase"] == "train"]
    seconds = [float(str(record["time/attempt_s"])) for record in records]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
