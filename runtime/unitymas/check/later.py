"""What the language can say and this release cannot run: refused before a run, with what to use meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from unitymas.api.algorithm import DEFAULT_SCALE
from unitymas.api.errors import Finding
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.names import ESTIMATORS
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.run import TrainingRunSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.rewards.compile import compile_rewards
from unitymas.tools import check_tools
from unitymas.workflow.compile import Seen

LATER = "later"


def of_workflow(workflow: WorkflowSpec) -> Iterator[Finding]:
    """Tools that need a sandbox, a session or a server; conversations; tools that a model calls itself."""
    yield from (finding for finding in check_tools(workflow).items if finding.check == LATER)
    for number, role in enumerate(workflow.roles):
        path = f"spec.roles[{number}]"
        if role.memory != "none":
            hint = "keep the conversation in `state`, and print it in the prompt"
            yield Finding(LATER, f"{path}.memory", f"`{role.memory}`", "none: conversations come later", hint)
        if role.tools:
            found = ", ".join(f"`{name}`" for name in role.tools)
            hint = "call the tool at a node of its own, with what the role's output says"
            yield Finding(LATER, f"{path}.tools", found, "no tools: a model's own tool calls come later", hint)


def of_rewards(reward: RewardSpecSpec, seen: Seen) -> Iterator[Finding]:
    """Metrics that need a sandbox or a computer algebra system."""
    _, findings = compile_rewards(reward, **seen)
    yield from (finding for finding in findings.items if finding.check == LATER)


def of_mapping(mapping: ModelMappingSpec) -> Iterator[Finding]:
    """Adapters."""
    for number, model in enumerate(mapping.models):
        if model.adapter_of is not None:
            hint = "give each model a source of its own"
            expected = "a model with a source: adapters come later"
            yield Finding(LATER, f"spec.models[{number}].adapterOf", f"`{model.adapter_of}`", expected, hint)


def of_run(run: TrainingRunSpec) -> Iterator[Finding]:
    """Data to train on; estimators, engines and schedules that this release has."""
    if not run.data.train:
        yield Finding("no-data", "spec.data.train", "nothing", "rows to train on")
    if run.algorithm.estimator not in ESTIMATORS:
        gone = [name for name in DEFAULT_SCALE if name not in ESTIMATORS]
        expected = f"one of {', '.join(ESTIMATORS)}: {' and '.join(gone)} come later"
        yield Finding(LATER, "spec.algorithm.estimator", f"`{run.algorithm.estimator}`", expected)
    if run.schedule.max_staleness:
        path, found = "spec.schedule.maxStaleness", f"{run.schedule.max_staleness}"
        yield Finding(LATER, path, found, "0: asynchronous training comes later")
    for name in run.sessions:
        yield Finding(LATER, f"spec.sessions.{name}", "a session", "no sessions: they come later")
    for model, place in run.placement.items():
        if place.engine not in ("auto", "hf"):
            path, expected = f"spec.placement.{model}.engine", "auto or hf: further engines come later"
            yield Finding(LATER, path, f"`{place.engine}`", expected)
        for field, value in (("tensorParallel", place.tensor_parallel), ("nodes", place.nodes)):
            if value != 1:
                expected = "1: models larger than one worker come later"
                yield Finding(LATER, f"spec.placement.{model}.{field}", f"{value}", expected)
