"""A run's folder: the resolved resources it was started with, their digest, its summary."""

from __future__ import annotations

from hashlib import blake2b
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from unitymas.api.errors import BadInput, Finding
from unitymas.api.resources import ModelMapping, MultiAgentWorkflow, Project, Resource, RewardSpec, TrainingRun
from unitymas.controller.store import Store, aside

RESOURCES, SUMMARY = "resources.yaml", "summary.json"
_LATER_CHANGES = ("suspend", "cancel", "cleanup", "runPolicy")
"""Fields of a run that change nothing that is trained: they are left out of the digest."""


def snapshot(project: Project) -> str:
    """The four resources as one canonical YAML text; relative paths made absolute, so that a resume finds them."""
    text = StringIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.dump_all([_plain(project, resource) for resource in _resources(project)], text)
    return text.getvalue()


def _resources(project: Project) -> list[Resource]:
    return [project.workflow, project.reward, project.mapping, project.run]


def _plain(project: Project, resource: Resource) -> dict[str, Any]:
    dumped = resource.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"status"})
    plain: dict[str, Any] = {"apiVersion": resource.api_version, "kind": type(resource).__name__, **dumped}
    spec: dict[str, Any] = plain["spec"]
    for source in spec.get("sources", []) if resource is project.run else []:
        if "path" in source:
            source["path"] = str((Path(project.folder) / source["path"]).resolve())
    return plain


def digest(project: Project) -> str:
    """Digest of what decides the outcome: a run resumes only with the same."""
    run = project.run.model_dump(mode="json", by_alias=True, exclude={"status", "metadata"})
    spec = {name: value for name, value in run["spec"].items() if name not in (*_LATER_CHANGES, "sources")}
    others = [
        resource.model_dump_json(by_alias=True, exclude={"status", "metadata"}) for resource in _resources(project)[:3]
    ]
    return blake2b(repr((spec, others)).encode(), digest_size=16).hexdigest()


def require_new(folder: Path) -> None:
    """Raises BadInput when a run is there already."""
    if (folder / RESOURCES).exists():
        raise BadInput(
            [
                Finding(
                    "run-folder",
                    str(folder),
                    found="a run that was started here before",
                    expected="a new folder",
                    hint=f"continue it with `unitymas resume {folder}`, or give another folder with --to",
                )
            ]
        )


def create(folder: Path, project: Project) -> Store:
    """A new run's folder. Raises BadInput when a run is there already, Infrastructure when it cannot be written."""
    require_new(folder)
    with aside(folder / RESOURCES) as part:
        part.write_text(snapshot(project), "utf-8")
    return Store(folder)


def discard(folder: Path) -> None:
    """Take back what `create` made."""
    (folder / RESOURCES).unlink(missing_ok=True)


def reopen(folder: Path) -> tuple[Store, Project]:
    """A run's folder and what it was started with. Raises BadInput when there is none."""
    path = folder / RESOURCES
    if not path.exists():
        raise BadInput([Finding("run-folder", str(folder), "no resources.yaml", "the folder of a run")])
    documents = {document["kind"]: document for document in YAML(typ="safe").load_all(path.read_text("utf-8"))}
    return Store(folder), Project(
        run=TrainingRun.model_validate(documents["TrainingRun"]),
        workflow=MultiAgentWorkflow.model_validate(documents["MultiAgentWorkflow"]),
        mapping=ModelMapping.model_validate(documents["ModelMapping"]),
        reward=RewardSpec.model_validate(documents["RewardSpec"]),
        folder=str(folder),
    )
