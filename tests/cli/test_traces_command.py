"""`unitymas traces`, on a store that the controller wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import Result

from unitymas.api.errors import Failure
from unitymas.api.records import Call, TaskRow, Trajectory, Visit
from unitymas.cli.tables import QUERIES
from unitymas.controller.store import Store

Command = Callable[..., Result]


def visit(key: str, *, reward: float, ok: bool = True) -> Visit:
    call = Call(f"{key}/0", "small", "stop", 10, 4, 0, 0, 0.0, 0.5)
    return Visit(
        key=key,
        node="search",
        order=((False, 0),),
        parents=(),
        role="searcher",
        model="small",
        turns={"hops": 0},
        prompt="where is nairobi ?\nthink [first]",
        text="kenya city",
        value={"output": "kenya city", "ok": ok, "ran": True},
        calls=(call,),
        rewards={"hit": reward, "answer": 0.25},
    )


def trajectory(task: str, rollout: int, *, reward: float) -> Trajectory:
    return Trajectory(
        TaskRow(task, {"question": "?"}),
        step=0,
        rollout=rollout,
        visits=[visit("hops[0].search", reward=reward), visit("hops[1].search", reward=0.0, ok=False)],
        result="kenya",
        metrics={"f1": reward},
        score=reward,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Store(tmp_path / "run's [folder]")
    lost = trajectory("q2", 0, reward=0.0)
    lost.failure, lost.error = Failure.INFRASTRUCTURE, "tool wiki: gone"
    store.trajectories("step-000001", [trajectory("q1", 0, reward=1.0), trajectory("q1", 1, reward=0.0), lost])
    store.metrics({"step": 1, "phase": "train", "score": 0.5, "reward/searcher": 0.75})
    with store.metrics_path.open("a") as lines:
        lines.write('{"step": 2, "pha')  # as a kill leaves it
    return store.folder


def test_without_sql_an_overview_and_queries_are_shown(unitymas: Command, folder: Path) -> None:
    result = unitymas("traces", folder)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].split()[:4] == ["phase", "steps", "trajectories", "visits"]
    assert "train" in result.stdout and '"reward/..."' in result.stdout
    for _, sql in QUERIES:
        assert sql in result.stdout


@pytest.mark.parametrize("sql", [sql for _, sql in QUERIES])
def test_every_query_that_is_suggested_runs(unitymas: Command, folder: Path, sql: str) -> None:
    assert unitymas("traces", folder, sql).exit_code == 0


def test_csv_and_json_hold_the_same_rows(unitymas: Command, folder: Path) -> None:
    sql = "SELECT trajectory, position, reward FROM visits ORDER BY ALL"
    as_csv = csv.DictReader(StringIO(unitymas("traces", folder, sql, "--output", "csv").stdout))
    as_json = json.loads(unitymas("traces", folder, sql, "--output", "json").stdout)
    assert [{name: str(value) for name, value in row.items()} for row in as_json] == list(as_csv)
    assert len(as_json) == 6


def test_metrics_are_a_table_whose_cut_last_line_is_passed_over(unitymas: Command, folder: Path) -> None:
    rows = json.loads(
        unitymas("traces", folder, 'SELECT step, "reward/searcher" FROM metrics', "--output", "json").stdout
    )
    assert rows[0] == {"step": 1, "reward/searcher": 0.75}


def test_one_trajectory_is_told_visit_by_visit(unitymas: Command, folder: Path) -> None:
    result = unitymas("traces", folder, "--trajectory", "train/0/q1/0")
    assert result.exit_code == 0
    first, second = result.stdout.index("hops[0].search"), result.stdout.index("hops[1].search")
    assert first < second
    assert "reward 1.250 = hit +1.000 answer +0.250" in result.stdout
    assert "think [first]" in result.stdout
    assert "kenya city" in result.stdout


def test_a_lost_trajectory_tells_its_failure(unitymas: Command, folder: Path) -> None:
    assert (
        "infrastructure failure: tool wiki: gone" in unitymas("traces", folder, "--trajectory", "train/0/q2/0").stdout
    )


def test_an_unknown_trajectory_is_bad_input_with_near_ones(unitymas: Command, folder: Path) -> None:
    result = unitymas("traces", folder, "--trajectory", "train/0/q1/9")
    assert result.exit_code == 2
    assert "hint: such as train/0/q1/0, train/0/q1/1" in result.stderr


def test_wrong_sql_is_bad_input_with_what_duckdb_says(unitymas: Command, folder: Path) -> None:
    result = unitymas("traces", folder, "SELECT nothing FROM visits")
    assert result.exit_code == 2
    assert "SQL: found Binder Error" in result.stderr


def test_a_folder_without_trajectories_is_bad_input(unitymas: Command, tmp_path: Path) -> None:
    result = unitymas("traces", tmp_path)
    assert result.exit_code == 2
    assert "expected the folder of a run" in result.stderr


@pytest.mark.parametrize("sql", ["", ";", "SELECT 1; SELECT 2"])
def test_what_is_not_one_query_is_bad_input(unitymas: Command, folder: Path, sql: str) -> None:
    assert unitymas("traces", folder, sql).exit_code == 2
