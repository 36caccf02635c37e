"""A run's settings name what exists: sources, models, tools, roles; and what it selects by is there."""

from __future__ import annotations

from collections.abc import Iterator

from unitymas.api.errors import Finding
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.run import Dataset, TrainingRunSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.names import named, repeated

SOURCE = "a source of the run (spec.sources)"


def datasets(run: TrainingRunSpec) -> Iterator[tuple[str, Dataset]]:
    """Every file of rows, with its path."""
    for split, parts in (("train", run.data.train), ("dev", run.data.dev), ("test", run.data.test)):
        for number, part in enumerate(parts):
            yield f"spec.data.{split}[{number}]", part


def own_sources(run: TrainingRunSpec) -> Iterator[Finding]:
    """Data and checkpoints name sources of the run."""
    yield from repeated([source.name for source in run.sources], "spec.sources")
    given = [(f"{path}.source", part.source) for path, part in datasets(run)]
    if run.checkpoint.source is not None:
        given.append(("spec.checkpoint.source", run.checkpoint.source))
    for path, name in given:
        yield from _source(run, path, name)


def corpora(workflow: WorkflowSpec, run: TrainingRunSpec) -> Iterator[Finding]:
    """Retrievers name sources of the run."""
    for number, tool in enumerate(workflow.tools):
        if tool.retriever is not None:
            yield from _source(run, f"spec.tools[{number}].retriever.corpus", tool.retriever.corpus)


def weights(mapping: ModelMappingSpec, run: TrainingRunSpec) -> Iterator[Finding]:
    """Models that are not on the hub name sources of the run."""
    for number, model in enumerate(mapping.models):
        if isinstance(model.source, str):
            yield from _source(run, f"spec.models[{number}].source", model.source)


def _source(run: TrainingRunSpec, path: str, name: str) -> Iterator[Finding]:
    known = [source.name for source in run.sources]
    if name not in known:
        yield Finding("unknown-source", path, *named(name, known, SOURCE))


def names_of_workflow(run: TrainingRunSpec, workflow: WorkflowSpec) -> Iterator[Finding]:
    """Per-role settings name roles, sessions name tools that have one."""
    roles = [role.name for role in workflow.roles]
    for name in run.algorithm.roles:
        if name not in roles:
            path = f"spec.algorithm.roles.{name}"
            yield Finding("unknown-role", path, *named(name, roles, "a role of the workflow"))
    tools = [tool.name for tool in workflow.tools if tool.session != "none"]
    for name in run.sessions:
        if name not in tools:
            yield Finding("unknown-tool", f"spec.sessions.{name}", *named(name, tools, "a tool with a session"))


def placement(run: TrainingRunSpec, mapping: ModelMappingSpec) -> Iterator[Finding]:
    """Placements name models that have a group of their own: adapters are in their base's, endpoints elsewhere."""
    models = [model.name for model in mapping.models if model.source is not None]
    for name in run.placement:
        if name not in models:
            path = f"spec.placement.{name}"
            yield Finding("unknown-model", path, *named(name, models, "a model of the mapping with a source"))


def selection(run: TrainingRunSpec) -> Iterator[Finding]:
    """Choosing the best weights takes rows to choose by."""
    if run.evaluation.select == "best" and run.data.train and not run.data.dev:
        expected = "rows for evaluation.select: best"
        yield Finding("no-dev", "spec.data.dev", "nothing", expected, "or set spec.evaluation.select to last")


def scored(run: TrainingRunSpec, reward: RewardSpecSpec) -> Iterator[Finding]:
    """Choosing the best weights takes a score."""
    if run.evaluation.select == "best" and run.data.train and reward.score is None:
        expected = "the metric that the run's evaluation.select: best chooses by"
        hint = "or set spec.evaluation.select of the run to last"
        yield Finding("no-score", "spec.score", "nothing", expected, hint)
