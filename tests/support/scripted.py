"""Whole runs without a model: scripted groups that pretend to learn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.runs import Heard
from unitymas.api.ports import ModelGroup, Update
from unitymas.api.records import Request, Row
from unitymas.api.resources import ModelMapping, MultiAgentWorkflow, Project, RewardSpec, TrainingRun
from unitymas.controller import session
from unitymas.controller.assemble import Build
from unitymas.controller.barrier import Barrier
from unitymas.controller.folder import digest
from unitymas.controller.loop import Loop
from unitymas.controller.pools import read_pools
from unitymas.controller.report import EvaluationReport
from unitymas.controller.stop import Stop
from unitymas.controller.store import Store
from unitymas.data import Sources
from unitymas.models.engines.scripted import ScriptedGroup


class Learner(ScriptedGroup):
    """A scripted group that trains (`api.ports.Trains`): its weights are what it has been taught, step by step."""

    def __init__(self, name: str, script: Any, **options: Any) -> None:
        super().__init__(name, script, **options)
        self.lessons: list[tuple[int, list[str]]] = []
        """Step, and the visits learnt from."""

    async def train(self, rows: Sequence[Row], *, step: int) -> Update:
        self.lessons.append((step, [row.visit for row in rows]))
        return Update({"rows": float(len(rows))})

    async def publish(self, version: int) -> None:
        self.version = version

    async def save(self, folder: Path) -> None:
        (folder / "lessons.json").write_text(json.dumps(self.lessons), "utf-8")

    async def load(self, folder: Path, *, version: int) -> None:
        self.lessons = [(step, visits) for step, visits in json.loads((folder / "lessons.json").read_text("utf-8"))]
        self.version = version

    async def export(self, folder: Path) -> None:
        await self.save(folder)


def yes(request: Request) -> str:
    """A script: always the same."""
    return "yes"


def write_rows(folder: Path, tasks: int) -> None:
    """As many rows in `train.jsonl`, `dev.jsonl` and `test.jsonl` each."""
    for split in ("train", "dev", "test"):
        rows = [{"id": f"{split}{number}", "question": f"{split} {number}"} for number in range(tasks)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def small_project(folder: Path, *, tasks: int = 6, tool: Mapping[str, Any] | None = None, **run: Any) -> Project:
    """One role that answers, one model; `run`: fields of the run's spec. With a `tool`, a node calls it before.

    Python entry points are found in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, tasks)
    metadata = {"name": "small"}
    answer: dict[str, Any] = {"name": "answer", "role": "answerer"}
    workflow: dict[str, Any] = {
        "input": {"visible": {"question": "string"}},
        "roles": [{"name": "answerer", "prompt": "{{ task.question }}", "output": {"format": "raw"}}],
        "nodes": [answer],
        "result": "nodes.answer.output",
    }
    if tool is not None:
        workflow["tools"] = [{"name": "helper", "returns": {"found": "string"}, **tool}]
        workflow["nodes"] = [answer, {"name": "help", "tool": "helper", "with": {"query": "task.question"}}]
    reward = {
        "metrics": [{"name": "right", "cel": "result == 'yes' ? 1.0 : 0.0"}],
        "rewards": [{"name": "right", "roles": ["answerer"], "value": "right"}],
        "score": "right",
    }
    spec: dict[str, Any] = {
        "sources": [{"name": "rows", "path": str(folder)}, {"name": "code", "path": str(folder), "python": True}],
        "data": {split: [{"source": "rows", "file": f"{split}.jsonl"}] for split in ("train", "dev", "test")},
        "algorithm": {"rolloutsPerTask": 2},
        "schedule": {"steps": 4, "tasksPerStep": 2},
        "evaluation": {"every": 2, "select": "last"},
        "checkpoint": {"every": 1, "keep": 2},
        **run,
    }
    mapping = {"models": [{"name": "m", "source": "rows"}], "roles": {"answerer": "m"}}
    return Project(
        run=TrainingRun.model_validate({"metadata": metadata, "spec": spec}),
        workflow=MultiAgentWorkflow.model_validate({"metadata": metadata, "spec": workflow}),
        mapping=ModelMapping.model_validate({"metadata": metadata, "spec": mapping}),
        reward=RewardSpec.model_validate({"metadata": metadata, "spec": reward}),
        folder=str(folder),
    )


def run_scripted(
    project: Project, folder: Path, groups: Mapping[str, ModelGroup], *, observer: Heard | None = None
) -> list[EvaluationReport]:
    """Run the loop on these groups, from the newest checkpoint in the folder on."""

    async def build(*_: object) -> Mapping[str, ModelGroup]:
        return groups

    return run_loop(project, folder, build, observer=observer)


def run_loop(project: Project, folder: Path, build: Build, *, observer: Heard | None = None) -> list[EvaluationReport]:
    """Run the loop on what `build` makes, from the newest checkpoint in the folder on."""
    sources = Sources(project.run.spec, Path(project.folder))

    async def main(stop: Stop) -> list[EvaluationReport]:
        async with session.opened(project, sources, build) as assembly:
            loop = Loop(
                spec=project.run.spec,
                digest=digest(project),
                assembly=assembly,
                pools=read_pools(project, sources),
                store=Store(folder),
                barrier=Barrier(folder / session.CHECKPOINTS, project.run.spec.checkpoint.keep),
                observer=observer or Heard(),
                stop=stop,
            )
            return await loop.run()

    return session.run_async(main)
