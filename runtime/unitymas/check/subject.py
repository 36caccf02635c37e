"""What is checked together: a run with what it refers to, or the resources of one name, some of them absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from unitymas.api import shapes
from unitymas.api.errors import Finding
from unitymas.api.load import STDIN, Loaded
from unitymas.api.load_errors import did_you_mean
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.resources import (
    KINDS,
    ModelMapping,
    MultiAgentWorkflow,
    Project,
    RewardSpec,
    TrainingRun,
)
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.run import TrainingRunSpec, ref_name
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.walk import steps
from unitymas.data.sources import Sources
from unitymas.workflow.compile import Compiled, Seen, compile_workflow, seen_by_rewards
from unitymas.workflow.declared import all_nodes

Kind = Literal["MultiAgentWorkflow", "RewardSpec", "ModelMapping", "TrainingRun"]
Part = Literal["workflow", "compilation", "reward", "seen", "mapping", "run", "sources"]
"""What a check may ask for, by the subject's attribute; a check whose parts are not all there is left out."""
_REFS: Mapping[str, Kind] = {
    "workflow_ref": "MultiAgentWorkflow",
    "mapping_ref": "ModelMapping",
    "reward_ref": "RewardSpec",
}


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiled workflow, with what was found wrong on the way."""

    compiled: Compiled
    findings: tuple[Finding, ...]

    @property
    def shaped(self) -> bool:
        """Whether it is known what every field and every node gives."""
        nodes = sum(1 for _ in all_nodes(self.compiled.spec.nodes or ()))
        return nodes == sum(1 for _ in steps(self.compiled)) and all(each.check != "shape" for each in self.findings)


@dataclass(frozen=True)
class Subject:
    """Specs that belong together; None for those that are not given."""

    names: Mapping[str, str]
    """The resource's name by kind, of those given."""
    workflow: WorkflowSpec | None = None
    reward: RewardSpecSpec | None = None
    mapping: ModelMappingSpec | None = None
    run: TrainingRunSpec | None = None
    folder: Path = field(default_factory=Path)
    """Where relative paths of the run's sources start."""

    @cached_property
    def compilation(self) -> Compilation | None:
        """The workflow, compiled."""
        if self.workflow is None:
            return None
        compiled, findings = compile_workflow(self.workflow)
        return Compilation(compiled, tuple(findings.items))

    @cached_property
    def seen(self) -> Seen:
        """What rewards may see; where the workflow does not tell, or is not given, they may see anything."""
        told = self.compilation
        if told is None or not told.shaped:
            return Seen(task=None, nodes=None, state=None, result=shapes.ANY, role_outputs=None, node_values=None)
        return seen_by_rewards(told.compiled)

    @cached_property
    def sources(self) -> Sources | None:
        """The run's sources, to be looked up on this machine."""
        return None if self.run is None else Sources(self.run, self.folder, self.names["TrainingRun"])


def subjects_of(given: Loaded | Project) -> tuple[list[Subject], list[Finding]]:
    """What belongs together, and the references that lead nowhere.

    Each run with what it refers to; what no run refers to, with what has the same name. A reference counts as wrong
    only where resources of its kind are given at all: any part of the four kinds may be checked alone.
    """
    if isinstance(given, Project):
        found = {resource.kind: resource for resource in (given.run, given.workflow, given.mapping, given.reward)}
        return [_subject(found, Path(given.folder))], []
    runs = list(_runs(given))
    findings = [finding for name, run in runs for finding in _missing(given, name, run)]
    subjects: list[Subject] = []
    taken: set[tuple[str, str]] = set()
    for name, run in runs:
        keys = {"TrainingRun": name, **{kind: ref_name(run.spec, ref, name) for ref, kind in _REFS.items()}}
        taken |= set(keys.items())
        subjects.append(_together(given, keys))
    left = {name: None for kind, name in given.resources if (kind, name) not in taken}
    for name in left:
        subjects.append(_together(given, {kind: name for kind in KINDS if (kind, name) not in taken}))
    return subjects, findings


def _runs(loaded: Loaded) -> Iterator[tuple[str, TrainingRun]]:
    for (_, name), resource in loaded.resources.items():
        if isinstance(resource, TrainingRun):
            yield name, resource


def _missing(loaded: Loaded, name: str, run: TrainingRun) -> Iterator[Finding]:
    for ref, kind in _REFS.items():
        wanted, known = ref_name(run.spec, ref, name), loaded.names(kind)
        if known and wanted not in known:
            path = f"spec.{ref.removesuffix('_ref')}Ref.name"
            expected = f"a {kind} of these manifests: {', '.join(known)}"
            hint = did_you_mean(wanted, known)
            yield Finding("missing-ref", path, f"`{wanted}`", expected, hint, kind="TrainingRun", name=name)


def _together(loaded: Loaded, names: Mapping[str, str]) -> Subject:
    found = {kind: loaded.resources[kind, name] for kind, name in names.items() if (kind, name) in loaded.resources}
    file = loaded.documents["TrainingRun", names["TrainingRun"]].file if "TrainingRun" in found else STDIN
    return _subject(found, Path() if file == STDIN else Path(file).parent)


def _subject(
    found: Mapping[str, MultiAgentWorkflow | RewardSpec | ModelMapping | TrainingRun], folder: Path
) -> Subject:
    workflow, reward = found.get("MultiAgentWorkflow"), found.get("RewardSpec")
    mapping, run = found.get("ModelMapping"), found.get("TrainingRun")
    return Subject(
        names={kind: resource.name for kind, resource in found.items()},
        workflow=workflow.spec if isinstance(workflow, MultiAgentWorkflow) else None,
        reward=reward.spec if isinstance(reward, RewardSpec) else None,
        mapping=mapping.spec if isinstance(mapping, ModelMapping) else None,
        run=run.spec if isinstance(run, TrainingRun) else None,
        folder=folder,
    )
