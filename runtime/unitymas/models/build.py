"""From a project to its model groups: which back end, which engine, whose weights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unitymas.api.errors import Findings
from unitymas.api.mapping import Hub, Model, ModelMappingSpec
from unitymas.api.ports import ModelGroup
from unitymas.api.resources import Project
from unitymas.api.run import Placement
from unitymas.models.group import Group, Link, TrainedGroup

if TYPE_CHECKING:
    from unitymas.models.core import GroupSpec

Backend = Literal["local", "ray"]
Locate = Callable[[str], Path]
"""Folder of a source of the run, by name."""
Opener = Callable[["GroupSpec"], Awaitable[Link]]
SERVED_BY: Mapping[str, str] = {"auto": "hf", "hf": "hf"}
"""Engine that a placement asks for, and the one that serves it."""


async def build_groups(
    project: Project, locate: Locate, *, backend: Backend, ray_address: str | None = None
) -> dict[str, ModelGroup]:
    """The model group of each model, ready to serve. Close each; the last one gives back what they share.

    ray_address: of a running cluster; with none, `ray` starts one here.
    Raises BadInput before anything is built when a model cannot be run here; Infrastructure when Ray broke.
    """
    mapping = project.mapping.spec
    findings = Findings()
    paths = {model.name: _inspect(project, model, locate, findings) for model in mapping.models}
    findings.raise_if_any()
    specs = [_spec(project, mapping.model(name), path) for name, path in paths.items() if path is not None]
    opener = _local() if backend == "local" else await _ray(project.run.name, ray_address, groups=len(specs))
    served = await _all(opener, specs)
    return {**{group.name: group for group in served}, **_endpoints(mapping)}


def _inspect(project: Project, model: Model, locate: Locate, findings: Findings) -> Path | None:
    """The folder of a model's weights; None where it is served elsewhere, or cannot be run here."""
    if model.adapter_of is not None:
        found, right = f"an adapter of {model.adapter_of}", "a model with its own weights: adapters come later"
        findings.add("later", _field(model, "adapterOf"), found=found, expected=right, kind="ModelMapping")
        return None
    place = project.run.spec.place(model.name)
    for field, value, right in _elsewhere(place):
        path = f"spec.placement.{model.name}.{field}"
        findings.add("later", path, found=value, expected=f"{right} in this release", kind="TrainingRun")
    if model.source is None:
        return None
    folder = _hub(model, model.source, findings) if isinstance(model.source, Hub) else locate(model.source)
    if folder is not None and not (folder / "config.json").exists():
        right = "a Hugging Face folder with config.json, weights and tokenizer"
        findings.add("no-model", _field(model, "source"), found=str(folder), expected=right, kind="ModelMapping")
    return folder


def _elsewhere(place: Placement) -> Iterator[tuple[str, str, str]]:
    """What a placement asks for and cannot have yet: field, found, right."""
    if place.engine not in SERVED_BY:
        yield "engine", place.engine, f"one of {', '.join(SERVED_BY)}"
    for field, value in (("tensorParallel", place.tensor_parallel), ("nodes", place.nodes)):
        if value != 1:
            yield field, str(value), "1"


def _hub(model: Model, hub: Hub, findings: Findings) -> Path | None:
    """The hub's snapshot on this machine, fetched where it is not there yet."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub.hub, revision=hub.revision, local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    try:
        return Path(snapshot_download(hub.hub, revision=hub.revision))
    except (OSError, ValueError) as caught:
        findings.add(
            "no-model",
            _field(model, "source.hub"),
            found=f"{hub.hub}, neither in the local cache nor to be had from the hub ({type(caught).__name__})",
            expected="a repository that this machine can reach, or a source of the run with the same files",
            hint="fetch it beforehand with `hf download`, or mount a folder and name it as the source",
            kind="ModelMapping",
        )
        return None


def _spec(project: Project, model: Model, path: Path) -> GroupSpec:
    from unitymas.models.core import GroupSpec

    mapping, run = project.mapping.spec, project.run.spec
    place = run.place(model.name)
    mine = [role for role in sorted(mapping.roles) if mapping.model_of(role) == model.name]
    return GroupSpec(
        model=model,
        path=path,
        placement=place,
        engine=SERVED_BY[place.engine],
        algorithm=run.algorithm,
        roles=tuple(role for role in mine if mapping.trains(role)),
        parity=run.limits.parity,
        seed=run.seed,
    )


def _local() -> Opener:
    from unitymas.models.local import ComputeThread, LocalLink

    thread = ComputeThread()
    return lambda spec: LocalLink.open(spec, thread)


async def _ray(run: str, address: str | None, *, groups: int) -> Opener:
    from unitymas.models.ray import Cluster, RayLink

    cluster = Cluster()
    await asyncio.to_thread(cluster.start, address, groups=groups)
    return lambda spec: RayLink.open(spec, cluster, run=run)


async def _all(opener: Opener, specs: Sequence[GroupSpec]) -> list[Group]:
    """Every group, or none: what opened is closed when another failed."""
    opened = await asyncio.gather(*map(opener, specs), return_exceptions=True)
    groups = [
        (TrainedGroup if spec.trained else Group)(spec.model.name, link)
        for spec, link in zip(specs, opened, strict=True)
        if not isinstance(link, BaseException)
    ]
    failed = [link for link in opened if isinstance(link, BaseException)]
    if failed:
        for group in groups:
            await group.close()
        raise failed[0]
    return groups


def _endpoints(mapping: ModelMappingSpec) -> dict[str, ModelGroup]:
    from unitymas.models.engines.endpoint import EndpointGroup

    return {
        model.name: EndpointGroup(model.name, model.endpoint) for model in mapping.models if model.endpoint is not None
    }


def _field(model: Model, field: str) -> str:
    return f"spec.models[{model.name}].{field}"
