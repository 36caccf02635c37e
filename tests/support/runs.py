"""The quickstart made short, and ways to run it, for tests that train for real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from unitymas.api.load import read, resolve
from unitymas.api.records import Trajectory
from unitymas.api.resources import Project
from unitymas.controller import session
from unitymas.controller.report import EvaluationReport, StepReport

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
SHORT: Mapping[str, Any] = {
    "algorithm": {"rolloutsPerTask": 4},
    "schedule": {"steps": 3, "tasksPerStep": 2},
    "evaluation": {"every": 2, "sampling": ["greedy"]},
    "checkpoint": {"every": 1, "keep": 3},
}
"""In place of what the quickstart says: seconds, not minutes."""
SPREAD: Mapping[str, Any] = {"name": "spread", "roles": ["searcher", "answerer"], "value": "size(visit.text) % 11"}
"""A reward that differs between most replies: a handful of trajectories teaches something, however bad the model."""
ROWS: Mapping[str, int] = {"train": 40, "dev": 4, "test": 4}


@dataclass(slots=True)
class Heard:
    """An observer that shows nothing and remembers everything."""

    phases: list[str] = field(default_factory=list[str])
    trajectories: list[Trajectory] = field(default_factory=list[Trajectory])
    steps: list[StepReport] = field(default_factory=list[StepReport])
    evaluations: list[EvaluationReport] = field(default_factory=list[EvaluationReport])
    checkpoints: list[int] = field(default_factory=list[int])

    def phase(self, name: str, total: int) -> None:
        self.phases.append(name)

    def trajectory(self, trajectory: Trajectory) -> None:
        self.trajectories.append(trajectory)

    def step(self, report: StepReport) -> None:
        self.steps.append(report)

    def evaluation(self, report: EvaluationReport) -> None:
        self.evaluations.append(report)

    def saved(self, step: int, path: str) -> None:
        self.checkpoints.append(step)


def quickstart_manifests(
    folder: Path, *, rows: Mapping[str, int] = ROWS, model: Path | None = None, **changes: Mapping[str, Any]
) -> Path:
    """Write the quickstart's manifests and its first `rows` into a folder, made short.

    changes: by resource (`run`, `workflow`, `mapping`, `reward`), what its spec says instead: mappings are merged,
    tuples added to lists, anything else replaces. model: another folder in place of the example's own model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    questions = folder / "data"
    questions.mkdir(exist_ok=True)
    for split, count in rows.items():
        lines = (QUICKSTART / "data" / f"{split}.jsonl").read_text("utf-8").splitlines(keepends=True)
        # spread over the file: the rows of one country follow each other
        (questions / f"{split}.jsonl").write_text("".join(lines[:: len(lines) // count][:count]), "utf-8")
    places = {"questions": questions, "model": model}
    yaml = YAML()  # keeps the order of fields
    yaml.default_flow_style = False
    for name in ("workflow", "reward", "mapping", "run"):
        document = cast("dict[str, Any]", yaml.load((QUICKSTART / f"{name}.yaml").read_text("utf-8")))
        if name == "run":
            for source in document["spec"]["sources"]:
                source["path"] = str(places.get(source["name"]) or QUICKSTART / source["path"])
            document["spec"] = merged(document["spec"], SHORT)
        if name == "reward":
            document["spec"]["rewards"].append(dict(SPREAD))
        document["spec"] = merged(document["spec"], changes.get(name, {}))
        with (folder / f"{name}.yaml").open("w", encoding="utf-8") as file:
            yaml.dump(document, file)
    return folder


def merged(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged, key by key; a list is extended by what is a tuple; anything else is replaced."""
    result = dict(before)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], cast("Mapping[str, Any]", value))
        elif isinstance(value, tuple):
            result[key] = [*result.get(key, []), *cast("tuple[Any, ...]", value)]
        else:
            result[key] = value
    return result


def quickstart_project(folder: Path, **options: Any) -> Project:
    """What `quickstart_manifests` writes, loaded."""
    return resolve(read([quickstart_manifests(folder, **options)]))


def weights_of(checkpoint: Path, model: str) -> dict[str, Any]:
    """Every weight of a model's policy in a checkpoint, by name."""
    import torch

    (file,) = (checkpoint / model / "policy").glob("model_*.pt")
    read: dict[str, Any] = torch.load(file, weights_only=False)
    return {name: getattr(weight, "to_local", lambda weight=weight: weight)() for name, weight in read.items()}


def train_here(project: Project, folder: Path, observer: Heard | None = None, **options: Any) -> session.Summary:
    """Train in this process; `options` as `session.train` takes them."""
    heard = observer or Heard()
    return session.run_async(lambda stop: session.train(project, folder=folder, observer=heard, stop=stop, **options))
