"""A real run whose tool and whose answers come back after random delays is the run without them, bit for bit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any, cast

import pytest

from support.playing import record_of
from support.runs import QUICKSTART, Heard, quickstart_project, weights_of
from support.scripted import run_loop
from unitymas.api.ports import ModelGroup, Trains, Update
from unitymas.api.records import Reply, Request, Row
from unitymas.models import build_groups

pytestmark = pytest.mark.integration

SLOW = f"""
import json, random, time

ROWS = [json.loads(line) for line in open({str(QUICKSTART / "corpus.jsonl")!r}, encoding="utf-8")]
WORDS = [set(row["text"].lower().split()) for row in ROWS]
LONGEST_S = __LONGEST_S__

def find(query):
    time.sleep(random.SystemRandom().random() * LONGEST_S)
    asked = set(query.lower().split())
    best = sorted(range(len(ROWS)), key=lambda row: (-len(asked & WORDS[row]), row))[:2]
    return {{"passages": [{{**ROWS[row], "score": float(len(asked & WORDS[row]))}} for row in best]}}
"""
PASSAGES = [{"id": "string", "title": "string", "text": "string", "score": "number"}]


@dataclass
class Late:
    """A model group whose answers are late."""

    group: Any
    longest_s: float

    @property
    def name(self) -> str:
        return self.group.name

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        replies = await self.group.generate(requests)
        await asyncio.sleep(SystemRandom().random() * self.longest_s)
        return replies

    async def train(self, rows: Sequence[Row], *, step: int) -> Update:
        return await self.group.train(rows, step=step)

    async def publish(self, version: int) -> None:
        await self.group.publish(version)

    async def save(self, folder: Path) -> None:
        await self.group.save(folder)

    async def load(self, folder: Path, *, version: int) -> None:
        await self.group.load(folder, version=version)

    async def export(self, folder: Path) -> None:
        await self.group.export(folder)

    async def stat(self) -> Mapping[str, float]:
        return await self.group.stat()

    async def close(self) -> None:
        await self.group.close()


def run(folder: Path, *, longest_s: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Records of every trajectory, and the last weights."""
    folder.mkdir()
    (folder / "slow.py").write_text(SLOW.replace("__LONGEST_S__", repr(longest_s)))
    tool = {"name": "facts", "python": {"entrypoint": "slow:find"}, "returns": {"passages": PASSAGES}}
    project = quickstart_project(
        folder / "manifests",
        workflow={"tools": [tool]},
        run={"sources": ({"name": "code", "path": str(folder), "python": True},), "schedule": {"steps": 2}},
    )

    async def build(*given: Any) -> Mapping[str, ModelGroup]:
        groups = await build_groups(*given, backend="local")
        return {name: cast(ModelGroup, Late(group, longest_s)) for name, group in groups.items()}

    heard = Heard()
    run_loop(project, folder / "run", build, observer=heard)
    trajectories = sorted(heard.trajectories, key=lambda trajectory: trajectory.id)
    weights = weights_of(folder / "run" / "checkpoints" / "step-2", project.mapping.spec.models[0].name)
    return [record_of(trajectory) for trajectory in trajectories], weights


def test_arrival_order_changes_neither_trajectories_nor_weights(tmp_path: Path) -> None:
    import torch

    assert isinstance(Late(None, 0.0), Trains)
    records, weights = run(tmp_path / "prompt", longest_s=0.0)
    late_records, late_weights = run(tmp_path / "late", longest_s=0.02)
    assert late_records == records
    assert any(visit["rewards"] for record in records for visit in record["visits"])
    assert late_weights.keys() == weights.keys()
    assert all(torch.equal(late_weights[name], weight) for name, weight in weights.items())
