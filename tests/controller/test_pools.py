"""Rows of a run's splits: named after where they are, and no two tasks of a split alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.scripted import Learner, run_scripted, small_project, yes
from unitymas.api.errors import BadInput
from unitymas.api.records import TaskRow
from unitymas.controller.pools import read_pools
from unitymas.controller.rollout import wanted_of
from unitymas.data import Sources


def write(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def pools_of(tmp_path: Path, *files: str) -> list[list[str]]:
    data: Any = {"train": [{"source": "rows", "file": file} for file in files]}
    project = small_project(tmp_path, data=data)
    pools = read_pools(project, Sources(project.run.spec, tmp_path))
    return [[row.id for row in pool.rows] for pool in pools["train"]]


def test_rows_without_an_id_are_named_after_source_file_and_line(tmp_path: Path) -> None:
    for folder in ("easy", "hard"):
        write(tmp_path / folder / "rows.jsonl", [{"question": "why?"}])
    found = pools_of(tmp_path, "easy/rows.jsonl", "hard/rows.jsonl")
    assert found == [["rows/easy/rows.jsonl:1"], ["rows/hard/rows.jsonl:1"]]


def test_an_id_that_two_files_share_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", [{"id": name, "question": "why?"}, {"id": "7", "question": "how?"}])
    with pytest.raises(
        BadInput, match=r"spec\.data\.train\[1\]: found the id `7`, which spec\.data\.train\[0\] has too"
    ):
        pools_of(tmp_path, "a.jsonl", "b.jsonl")


def test_a_file_without_a_row_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "none.jsonl", [])
    with pytest.raises(BadInput, match=r"TrainingRun/small: spec\.data\.train\[1\]: found no row in rows/none\.jsonl"):
        pools_of(tmp_path, "train.jsonl", "none.jsonl")
    with pytest.raises(BadInput, match=r"spec\.data\.train: found no file"):
        pools_of(tmp_path)


def test_bad_rows_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", [{"id": "1"}])
    with pytest.raises(BadInput) as caught:
        pools_of(tmp_path, "a.jsonl", "b.jsonl")
    assert [finding.path for finding in caught.value.findings] == [
        "rows/a.jsonl:1: question",
        "rows/b.jsonl:1: question",
    ]


def test_a_task_that_comes_twice_in_a_step_gets_further_rollouts() -> None:
    tasks = [TaskRow(name, {}) for name in "aba"]
    wanted = [(each.task.id, each.rollout) for each in wanted_of(tasks, each=2, step=0)]
    assert wanted == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 2), ("a", 3)]


def test_trajectories_of_a_step_are_told_apart_where_an_epoch_ends(tmp_path: Path) -> None:
    group = Learner("m", yes)
    run_scripted(small_project(tmp_path / "p", tasks=3), tmp_path / "run", {"m": group})  # 2 tasks a step
    assert all(len(set(visits)) == len(visits) == 4 for _, visits in group.lessons)
