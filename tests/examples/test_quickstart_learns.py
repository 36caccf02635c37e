"""The shipped quickstart learns within a few steps; a frozen role stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from unitymas.api.load import read, resolve
from unitymas.api.mapping import RoleModel
from unitymas.api.resources import Project

pytestmark = pytest.mark.integration
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
Trained = Callable[[Project, Path], Any]


def _short(steps: int, *, tasks: int, sampling: str) -> Project:
    """The shipped quickstart, but for its length and for how it is looked at: at the end, on a part of dev."""
    project = resolve(read([QUICKSTART]))
    spec = project.run.spec
    changed = spec.model_copy(
        update={
            "schedule": spec.schedule.model_copy(update={"steps": steps}),
            "data": spec.data.model_copy(update={"test": []}),
            "evaluation": spec.evaluation.model_copy(
                update={"every": steps, "tasks": tasks, "sampling": [sampling], "repeats": 1}
            ),
        }
    )
    return replace(project, run=project.run.model_copy(update={"spec": changed}))


def _freeze(project: Project, role: str) -> Project:
    spec = project.mapping.spec
    roles = {**spec.roles, role: RoleModel(model=spec.model_of(role), train=False)}
    mapping = project.mapping.model_copy(update={"spec": spec.model_copy(update={"roles": roles})})
    return replace(project, mapping=mapping)


def test_ten_steps_of_the_shipped_quickstart_answer_most_dev_questions(trained: Trained, tmp_path: Path):
    heard = trained(_short(10, tasks=100, sampling="sampled"), tmp_path / "run")
    first, last = (report.scores["sampled"].mean for report in heard.evaluations)
    assert first < 0.2
    assert last > 0.5  # 0.83 was seen


def test_a_frozen_searcher_asks_as_before_and_only_the_answerer_is_saved(trained: Trained, tmp_path: Path):
    heard = trained(_freeze(_short(2, tasks=20, sampling="greedy"), "searcher"), tmp_path / "run")
    assert all(step.numbers["group/searcher/version"] == 0 for step in heard.steps)
    assert not any(name.startswith("model/searcher/") for step in heard.steps for name in step.numbers)
    saved = tmp_path / "run" / "checkpoints" / "step-2"
    assert [path.name for path in saved.iterdir() if path.is_dir()] == ["answerer"]
    assert _queries(tmp_path / "run", 0) == _queries(tmp_path / "run", 2)


def _queries(folder: Path, step: int) -> dict[tuple[str, str], str]:
    """What the searcher asked on dev, by task and visit: greedy, so equal weights ask alike."""
    rows = pq.read_table(folder / "trajectories" / f"dev-greedy-{step:06d}.parquet").to_pylist()
    return {(row["task"], row["visit"]): row["text"] for row in rows if row["role"] == "searcher"}
