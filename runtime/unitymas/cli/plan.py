"""What a run will train, shown before it starts."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from unitymas.api.mapping import Hub, Model
from unitymas.api.resources import Project
from unitymas.api.run import Dataset
from unitymas.data import Sources, scan_rows
from unitymas.workflow.bound import most_calls


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model of the plan."""

    name: str
    weights: str
    parameters: int | None
    """None where that is not known before loading."""
    roles: tuple[str, ...]
    learning_rate: float | None
    """None for a model that is served only."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be trained, in names and numbers."""

    run: str
    models: Sequence[ModelLine]
    steps: int
    tasks_per_step: int
    rollouts_per_task: int
    estimator: str
    most_calls: int
    """Of one trajectory."""
    tasks: dict[str, int]
    """By split."""


def plan_of(project: Project) -> Plan:
    """The plan of a run; reads its data and the headers of its weights. Raises BadInput."""
    spec, mapping = project.run.spec, project.mapping.spec
    sources = Sources(spec, Path(project.folder), project.run.name)
    return Plan(
        run=project.run.name,
        models=[_model_line(model, project, sources) for model in mapping.models],
        steps=spec.schedule.steps,
        tasks_per_step=spec.schedule.tasks_per_step,
        rollouts_per_task=spec.algorithm.rollouts_per_task,
        estimator=spec.algorithm.estimator,
        most_calls=most_calls(project.workflow.spec),
        tasks={
            "train": _count(spec.data.train, project, sources),
            "dev": _count(spec.data.dev, project, sources),
            "test": _count(spec.data.test, project, sources),
        },
    )


def table_of(plan: Plan) -> RenderableType:
    """The plan as a small table and two lines."""
    models = Table("model", "roles", "weights", box=box.SIMPLE_HEAD, pad_edge=False)
    models.add_column("parameters", justify="right")
    models.add_column("learning rate", justify="right")
    for line in plan.models:
        models.add_row(
            line.name,
            ", ".join(line.roles) or "-",
            line.weights,
            "?" if line.parameters is None else short(line.parameters),
            "served only" if line.learning_rate is None else f"{line.learning_rate:g}",
        )
    tasks = ", ".join(f"{count:,} {split}" for split, count in plan.tasks.items())
    return Group(
        models,
        f"{plan.steps} steps of {plan.tasks_per_step} tasks x {plan.rollouts_per_task} rollouts, {plan.estimator}; "
        f"at most {plan.most_calls} calls a trajectory",
        f"tasks: {tasks}",
    )


def short(count: int) -> str:
    """A count in three figures: `557k`, `1.54B`."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return str(count)


def parameters_of(weights: Path) -> int | None:
    """Parameters in a folder's safetensors files, from their headers alone; None where it has none."""
    files = sorted(weights.glob("*.safetensors")) if weights.is_dir() else []
    return sum(_parameters(file) for file in files) if files else None


def _parameters(file: Path) -> int:
    with file.open("rb") as content:  # 8 bytes of length, then JSON: name to dtype, shape, offsets
        (length,) = struct.unpack("<Q", content.read(8))
        header = json.loads(content.read(length))
    return sum(prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def _model_line(model: Model, project: Project, sources: Sources) -> ModelLine:
    mapping = project.mapping.spec
    weights, parameters = _weights(model, sources)
    roles = tuple(
        role if mapping.trains(role) or not model.trained else f"{role} (frozen)"
        for role in mapping.roles
        if mapping.model_of(role) == model.name
    )
    return ModelLine(model.name, weights, parameters, roles, model.optimizer.learning_rate if model.trained else None)


def _weights(model: Model, sources: Sources) -> tuple[str, int | None]:
    """Where weights come from, and how many parameters they have."""
    if model.endpoint is not None:
        return f"{model.endpoint.model} at {model.endpoint.url}", None
    if model.lora is not None:
        return f"adapter of {model.adapter_of}, rank {model.lora.rank}", None
    if isinstance(model.source, Hub):
        return model.source.hub, None
    name = model.source or ""
    return f"source {name}", parameters_of(sources.path(name))


def _count(parts: Sequence[Dataset], project: Project, sources: Sources) -> int:
    fields = project.workflow.spec.input
    return sum(1 for part in parts for _ in scan_rows(sources.path(part.source, part.file), fields))
