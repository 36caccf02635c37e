"""From a run and what it refers to, to the parts that a loop works with."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import cast

from unitymas.api import shapes
from unitymas.api.errors import Author, BadInput, Finding
from unitymas.api.ports import ModelGroup, Tool, Workers
from unitymas.api.records import Row, Trajectory, Visit
from unitymas.api.resources import Project
from unitymas.api.workflow import WorkflowSpec
from unitymas.controller.dispatch import Desk
from unitymas.controller.rounds import Rounds
from unitymas.credit import rows
from unitymas.data import Sources, read_corpus
from unitymas.expr.cel import Environment, Program
from unitymas.expr.errors import EvaluationError
from unitymas.rewards import ProcessPool, RewardProgram, compile_rewards, score, visit_record
from unitymas.tools import build_tools
from unitymas.workflow import Workflow, prepare, seen_by_rewards
from unitymas.workflow.play import Code

Build = Callable[[Project, Callable[[str], Path]], Awaitable[Mapping[str, ModelGroup]]]
"""From a project, and where its sources are by name, to its model groups, ready to serve."""


@dataclass(frozen=True, slots=True)
class BusyWorkers:
    """Workers whose jobs count as something under way: no round of generation starts meanwhile."""

    workers: Workers
    rounds: Rounds

    async def call(
        self,
        entrypoint: str,
        arguments: Mapping[str, object] | Sequence[object],
        *,
        where: str,
        timeout_s: float,
        setup: Mapping[str, object] | None = None,
    ) -> object:
        """See `api.ports.Workers`."""
        with self.rounds.busy():
            return await self.workers.call(entrypoint, arguments, where=where, timeout_s=timeout_s, setup=setup)


@dataclass(slots=True)
class Assembly:
    """Workflow, rewards, tools and model groups of a run, ready to work together."""

    project: Project
    workflow: Workflow
    rewards: RewardProgram
    groups: Mapping[str, ModelGroup]
    tools: Mapping[str, Tool]
    rounds: Rounds
    workers: Workers
    _anchors: dict[str, Program] = field(default_factory=dict[str, Program])

    def desk(self, *, greedy: bool = False) -> Desk:
        """A way to models and tools; `greedy`: every call at temperature 0."""
        return Desk(self.groups, self.tools, self.rounds, greedy)

    async def score(self, trajectory: Trajectory) -> None:
        """Give a trajectory its metrics, its visits their rewards."""
        await score(trajectory, self.rewards, workers=self.workers, timeout_s=self.project.run.spec.limits.metric_s)

    def rows(self, trajectories: Sequence[Trajectory]) -> dict[str, list[Row]]:
        """What each model group learns: one row a visit of the trained roles."""
        mapping = self.project.mapping.spec
        return rows(
            trajectories,
            algorithm=self.project.run.spec.algorithm,
            model_of={role: mapping.model_of(role) for role in mapping.roles},
            trained={role for role in mapping.roles if mapping.trains(role)},
            evaluate=self._anchor,
        )

    def _anchor(self, expression: str, visit: Visit) -> object:
        program = self._anchors.get(expression)
        if program is None:
            program = self._anchors[expression] = Environment.of({"visit": shapes.ANY}).compile(expression)
        try:
            return program.evaluate({"visit": visit_record(visit)})
        except EvaluationError as error:
            own = self.project.run.spec.algorithm.roles.get(visit.role)
            of_role = f"roles.{visit.role}." if own is not None and own.compare is not None else ""
            raise Author(f"spec.algorithm.{of_role}compare.by, visit {visit.key}", str(error)) from error


async def assemble(project: Project, sources: Sources, stack: AsyncExitStack, *, build: Build) -> Assembly:
    """Build everything that a run needs; what must be closed is left on the stack.

    Raises BadInput before any model is loaded when something is wrong.
    """
    spec, mapping = project.run.spec, project.mapping.spec
    pool = ProcessPool(python_paths=[str(path) for path in sources.python_paths()])
    stack.push_async_callback(pool.close)
    groups: dict[str, ModelGroup] = {}
    rounds = Rounds(groups, spec.limits.call_s)
    workers = BusyWorkers(pool, rounds)
    tools = build_tools(
        project.workflow.spec,
        corpora=lambda name: [asdict(passage) for passage in read_corpus(sources.path(name))],
        limits=spec.limits,
        workers=workers,
    )
    for tool in tools.values():
        stack.push_async_callback(tool.close)
    workflow = prepare(
        project.workflow.spec,
        {role: mapping.model_of(role) for role in mapping.roles},
        code=_code(project.workflow.spec, sources),
        workers=workers,
    )
    rewards, findings = compile_rewards(project.reward.spec, **seen_by_rewards(workflow.compiled))
    findings.raise_if_any()
    groups.update(await build(project, sources.path))
    for group in groups.values():
        stack.push_async_callback(group.close)
    return Assembly(project, workflow, rewards, groups, tools, rounds, workers)


def _code(spec: WorkflowSpec, sources: Sources) -> Code | None:
    """The function of a code-first workflow. Raises BadInput when it cannot be imported."""
    if spec.python is None:
        return None
    for path in reversed(sources.python_paths()):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    module, _, name = spec.python.entrypoint.partition(":")
    try:
        return cast(Code, getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        searched = ", ".join(str(path) for path in sources.python_paths()) or "no source has python: true"
        raise BadInput(
            [
                Finding(
                    "entrypoint",
                    "spec.python.entrypoint",
                    found=f"`{spec.python.entrypoint}`: {error}",
                    expected=f"a function importable from the run's python sources ({searched})",
                )
            ]
        ) from error
