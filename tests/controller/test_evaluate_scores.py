"""A score with its interval: tasks are resampled, not trajectories; what infrastructure lost is apart."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.errors import Failure
from unitymas.api.records import TaskRow, Trajectory
from unitymas.controller.evaluate import Estimate, estimate
from unitymas.controller.store import Store


def ended(task: str, score: float | None, *, repeat: int = 0, failure: Failure | None = None) -> Trajectory:
    return Trajectory(TaskRow(task, {}), step=0, rollout=repeat, phase="test-sampled", score=score, failure=failure)


scores = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20)


@given(scores)
def test_the_interval_holds_the_mean(given: list[float]) -> None:
    found = estimate([ended(str(task), score) for task, score in enumerate(given)])
    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
    assert min(given) - 1e-9 <= found.low <= found.high <= max(given) + 1e-9


@given(scores, st.integers(2, 5))
def test_repeats_of_a_task_narrow_no_interval(given: list[float], repeats: int) -> None:
    once = [ended(str(task), score) for task, score in enumerate(given)]
    often = [ended(str(task), score, repeat=repeat) for task, score in enumerate(given) for repeat in range(repeats)]
    first, second = estimate(once), estimate(often)
    assert first.tasks == second.tasks == len(given)
    assert math.isclose(first.low, second.low, abs_tol=1e-9)
    assert math.isclose(first.high, second.high, abs_tol=1e-9)


def test_a_failure_of_the_policy_counts_with_its_score_or_zero() -> None:
    found = estimate([ended("a", 1.0), ended("b", None, failure=Failure.POLICY), ended("c", None)])
    assert found.mean == 1 / 3
    assert (found.tasks, found.lost) == (3, 0)


def test_what_infrastructure_lost_is_in_no_mean_and_told() -> None:
    found = estimate([ended("a", 1.0), ended("b", 0.0, failure=Failure.INFRASTRUCTURE)])
    assert (found.mean, found.tasks, found.lost) == (1.0, 1, 1)
    assert str(found).endswith("on 1 tasks, 1 lost")


def test_the_same_seed_gives_the_same_interval() -> None:
    given = [ended(str(task), float(task % 2)) for task in range(9)]
    assert estimate(given, seed=4) == estimate(given, seed=4)


def test_nothing_left_has_no_mean() -> None:
    found = estimate([ended("a", None, failure=Failure.INFRASTRUCTURE)])
    assert math.isnan(found.mean)
    assert (found.tasks, found.lost) == (0, 1)


def test_where_no_score_is_asked_for_there_is_no_mean_also_read_back(tmp_path: Path) -> None:
    found = estimate([ended("a", None), ended("b", None, failure=Failure.POLICY)])
    assert math.isnan(found.mean)
    assert str(found) == "no score on 2 tasks"
    Store(tmp_path).write_json("summary.json", {"chosen": {"greedy": asdict(found)}})
    written = json.loads((tmp_path / "summary.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert written["chosen"]["greedy"]["mean"] is None
    assert math.isnan(Estimate.read(written["chosen"]["greedy"]).low)


def test_late_metrics_count_zero_even_where_all_are_late() -> None:
    assert estimate([ended("a", None, failure=Failure.DEADLINE)]).mean == 0.0
