"""The manifests of `tests/workflows`: read, changed where a test needs it, and played with their real tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from support.playing import played
from unitymas.api.algorithm import Algorithm
from unitymas.api.load import read
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.ports import Tool
from unitymas.api.records import TaskRow, Trajectory
from unitymas.api.resources import ModelMapping, MultiAgentWorkflow, RewardSpec
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.run import Limits
from unitymas.api.workflow import WorkflowSpec
from unitymas.credit import rows
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.rewards import ProcessPool, RewardProgram, compile_rewards
from unitymas.tools import build_tools
from unitymas.workflow import Workflow, prepare, seen_by_rewards
from unitymas.workflow.play import Code

FIELD_WORKFLOWS = Path(__file__).parents[1] / "workflows"
TEXTS = {
    "Ada": "Ada Lovelace wrote the first program",
    "Byron": "Byron was the father of Ada Lovelace",
    "London": "London is a city in England",
    "Babbage": "Babbage built the engine",
}
CORPUS = [{"id": title[:2].lower(), "title": title, "text": text} for title, text in TEXTS.items()]


@dataclass(frozen=True)
class FieldWorkflow:
    """A manifest of `tests/workflows`, ready to be played: workflow, rewards and mapping."""

    workflow: Workflow
    rewards: RewardProgram
    mapping: ModelMappingSpec


def field_workflow(
    number: str,
    *,
    change: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
    code: Code | None = None,
) -> FieldWorkflow:
    """The manifest of a number, such as `05`; `change` edits its two specs in place, `code` replaces the nodes."""
    (path,) = FIELD_WORKFLOWS.glob(f"{number}-*.yaml")
    kinds: dict[type[object], Any] = {type(resource): resource for resource in read([path]).resources.values()}
    spec = kinds[MultiAgentWorkflow].spec.model_dump(by_alias=True, exclude_unset=True)
    reward = kinds[RewardSpec].spec.model_dump(by_alias=True, exclude_unset=True)
    if change is not None:
        change(spec, reward)
    parsed = WorkflowSpec.model_validate(spec)
    if code is not None:
        most = prepare(parsed, {}).most_calls
        for replaced in ("state", "nodes", "result"):
            spec.pop(replaced, None)
        parsed = WorkflowSpec.model_validate({**spec, "python": {"entrypoint": "twin:run", "maxCalls": most}})
    mapping = cast(ModelMapping, kinds[ModelMapping]).spec
    models = {role.name: mapping.model_of(role.name) for role in parsed.roles}
    workflow = prepare(parsed, models, code=code)
    program, findings = compile_rewards(RewardSpecSpec.model_validate(reward), **seen_by_rewards(workflow.compiled))
    findings.raise_if_any()
    return FieldWorkflow(workflow, program, mapping)


def play_field(
    one: FieldWorkflow,
    replies: Mapping[str, Sequence[str]],
    fields: Mapping[str, object],
    *,
    rollouts: int = 1,
    code: Path | None = None,
) -> list[Trajectory]:
    """Play it with its real tools: BM25 over a small corpus, the user's functions in processes."""
    workers = ProcessPool(python_paths=[str(code)] if code else [])  # starts no process before it is called
    tools: Mapping[str, Tool] = build_tools(
        one.workflow.spec, corpora=lambda name: CORPUS, limits=Limits(), workers=workers
    )
    group = ScriptedGroup("m", replies)
    tasks = [TaskRow("t", fields)]
    return played(one.workflow, group, tasks, tools=tools, rollouts=rollouts, rewards=one.rewards, workers=workers)


def rewards_of(trajectory: Trajectory) -> dict[str, dict[str, float]]:
    """The parts of every role's visit, by key."""
    return {visit.key: dict(visit.rewards) for visit in trajectory.visits if visit.role}


def groups_of(
    one: FieldWorkflow, trajectories: Sequence[Trajectory], algorithm: Algorithm | None = None
) -> Counter[str]:
    """How many trained visits each comparison group holds."""
    mapping = one.mapping
    by_model = rows(
        trajectories,
        algorithm=algorithm or Algorithm(),
        model_of={role: mapping.model_of(role) for role in mapping.roles},
        trained={role for role in mapping.roles if mapping.trains(role)},
        evaluate=lambda expression, visit: "",
    )
    return Counter(row.group for own in by_model.values() for row in own if not row.foreign)
