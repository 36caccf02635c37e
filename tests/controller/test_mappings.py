"""Which model plays and trains which role: only the ModelMapping changes, and what is frozen stays bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from support.models import shuffled_vocabulary
from support.runs import Heard, quickstart_project
from support.scripted import run_loop
from unitymas.api.ports import ModelGroup
from unitymas.api.resources import Project
from unitymas.controller.report import StepReport
from unitymas.controller.store import Store
from unitymas.models import build_groups

pytestmark = pytest.mark.integration
STEPS = 3
RATE = {"optimizer": {"learningRate": 5.0e-4}}
SIZE: Mapping[str, Any] = {"schedule": {"steps": STEPS, "tasksPerStep": 4}, "limits": {"parity": 1e-4}}


@dataclass
class Weighing(Heard):
    """Takes a digest of every model's served weights after each step, and before the first."""

    groups: dict[str, ModelGroup] = field(default_factory=dict[str, ModelGroup])
    digests: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    async def build(self, project: Project, locate: Callable[[str], Path]) -> Mapping[str, ModelGroup]:
        self.groups = await build_groups(project, locate, backend="local")
        self.weigh()
        return self.groups

    def step(self, report: StepReport) -> None:
        super().step(report)
        self.weigh()

    def weigh(self) -> None:
        for name, group in self.groups.items():
            weights = cast(Any, group)._link._core._engine.model.state_dict()
            digest = blake2b(digest_size=8)
            for weight in weights.values():
                digest.update(weight.numpy().tobytes())
            self.digests.setdefault(name, []).append(digest.hexdigest())


@dataclass(frozen=True)
class Outcome:
    """A run under one mapping."""

    folder: Path
    weighing: Weighing
    metrics: list[dict[str, Any]]

    @property
    def saved(self) -> set[str]:
        """Models in the last checkpoint."""
        return {path.name for path in (self.folder / "checkpoints" / f"step-{STEPS}").iterdir() if path.is_dir()}

    def changed(self, model: str) -> list[bool]:
        """Step by step, whether a model's served weights have changed."""
        digests = self.weighing.digests[model]
        return [before != after for before, after in pairwise(digests)]

    def texts(self, file: str, role: str) -> list[str]:
        rows = pq.read_table(self.folder / "trajectories" / file).to_pylist()
        return [row["text"] for row in rows if row["role"] == role]


def outcome(folder: Path, mapping: Mapping[str, Any], **run: Any) -> Outcome:
    project = quickstart_project(folder / "manifests", mapping=mapping, run={**SIZE, **run})
    weighing = Weighing()
    run_loop(project, folder / "run", weighing.build, observer=weighing)
    metrics = [record for record in Store(folder / "run").read_metrics() if record["phase"] == "train"]
    return Outcome(folder / "run", weighing, metrics)


def test_separate_models_part_from_the_same_first_weights(tmp_path: Path) -> None:
    found = outcome(tmp_path, {})
    digests = found.weighing.digests
    assert digests["searcher"][0] == digests["answerer"][0]
    assert digests["searcher"][-1] != digests["answerer"][-1]
    assert found.saved == {"searcher", "answerer"}


def test_a_shared_model_learns_from_both_roles(tmp_path: Path) -> None:
    found = outcome(
        tmp_path,
        {"models": [{"name": "both", "source": "model", **RATE}], "roles": {"searcher": "both", "answerer": "both"}},
    )
    assert found.saved == {"both"}
    assert any(found.changed("both"))
    for record in found.metrics:
        assert record["model/both/rows"] == record["visits/searcher"] + record["visits/answerer"]


def test_a_frozen_role_of_a_shared_model_is_not_learnt_from(tmp_path: Path) -> None:
    found = outcome(
        tmp_path,
        {
            "models": [{"name": "both", "source": "model", **RATE}],
            "roles": {"searcher": "both", "answerer": {"model": "both", "train": False}},
        },
    )
    assert any(found.changed("both"))
    for record in found.metrics:
        assert record["model/both/rows"] == record["visits/searcher"]
        assert "model/both/answerer/tokens" not in record


def test_a_model_of_frozen_roles_only_is_served_and_stays_bit_for_bit(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"roles": {"answerer": {"model": "answerer", "train": False}}})
    assert any(found.changed("searcher"))
    assert not any(found.changed("answerer"))
    assert found.saved == {"searcher"}
    assert not any(name.startswith("model/answerer/") for record in found.metrics for name in record)
    assert found.metrics[-1]["group/answerer/buffered_tokens"] == 0


def test_a_frozen_model_is_served_and_stays_bit_for_bit(tmp_path: Path) -> None:
    found = outcome(
        tmp_path,
        {
            "models": [
                {"name": "searcher", "source": "model", "trainable": False},
                {"name": "answerer", "source": "model", **RATE},
            ],
        },
    )
    assert not any(found.changed("searcher"))
    assert any(found.changed("answerer"))
    assert found.saved == {"answerer"}


def test_a_model_with_another_tokenizer_says_the_same_and_learns_too(tmp_path: Path) -> None:
    twin = {"name": "twin", "path": str(shuffled_vocabulary(tmp_path / "twin"))}
    mapping = {
        "models": [
            {"name": "searcher", "source": "model", **RATE},
            {"name": "answerer", "source": "twin", **RATE},
        ]
    }
    plain = outcome(tmp_path / "plain", {}, sources=(twin,))
    found = outcome(tmp_path / "mixed", mapping, sources=(twin,))
    for role in ("searcher", "answerer"):
        first = found.texts("dev-greedy-000000.parquet", role)
        assert first == plain.texts("dev-greedy-000000.parquet", role)
        assert any(first)
    assert any(found.changed("searcher")) and any(found.changed("answerer"))


def test_the_mapping_is_all_that_differs(tmp_path: Path) -> None:
    shared = {"models": [{"name": "both", "source": "model"}], "roles": {"searcher": "both", "answerer": "both"}}
    first, second = (
        quickstart_project(tmp_path / name, mapping=mapping) for name, mapping in (("a", {}), ("b", shared))
    )
    assert (first.workflow, first.reward) == (second.workflow, second.reward)
    assert first.run.spec.model_dump(exclude={"sources"}) == second.run.spec.model_dump(exclude={"sources"})
