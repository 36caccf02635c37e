"""Workflows played on scripted models, through the controller's own rounds: what their tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from random import Random
from typing import Any, TypeVar

from unitymas.api import shapes
from unitymas.api.ports import ModelGroup, Tool, ToolAnswer
from unitymas.api.records import Reply, Request, TaskRow, Trajectory, Visit
from unitymas.api.shapes import Record, Shape
from unitymas.api.workflow import WorkflowSpec
from unitymas.controller.dispatch import Desk
from unitymas.controller.rounds import IdleLoop, Rounds
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.rewards import ProcessPool, RewardProgram, score
from unitymas.workflow import Workflow, play, prepare
from unitymas.workflow.play import Code

Result = TypeVar("Result")
Script = Callable[[Request], str] | Mapping[str, Sequence[str]]


class Here:
    """Workers without processes: the user's code runs where it is called."""

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
        module, _, name = entrypoint.partition(":")
        function = getattr(import_module(module), name)
        return function(**arguments) if isinstance(arguments, Mapping) else function(*arguments)


class Streaming(ScriptedGroup):
    """A scripted group that takes requests as they come; answers return in an order that `random` gives."""

    def __init__(self, name: str, script: Script, random: Random) -> None:
        super().__init__(name, script)
        self._random = random

    async def answer(self, request: Request) -> Reply:
        """See `api.ports.Streams`."""
        await pause(self._random)
        return (await self.generate([request]))[0]


@dataclass
class Answering:
    """A tool that answers as a function says, after a pause where `random` is given."""

    shape: Record
    answer: Callable[[Mapping[str, object]], Mapping[str, object]]
    random: Random | None = None
    arguments: Mapping[str, Shape] | None = None

    async def call(self, arguments: Mapping[str, object]) -> ToolAnswer:
        """See `api.ports.Tool`."""
        await pause(self.random)
        return ToolAnswer(self.answer(arguments))

    async def close(self) -> None:
        """Nothing is held."""


def echo(random: Random | None = None) -> Answering:
    """A tool that finds what it is asked for."""
    found = shapes.record(found=shapes.STRING)
    return Answering(found, lambda arguments: {"found": str(arguments.get("query", ""))}, random)


async def pause(random: Random | None) -> None:
    """Some passes of the event loop: what else runs meanwhile comes first."""
    for _ in range(random.randrange(12) if random is not None else 0):
        await asyncio.sleep(0)


def on_desk(
    main: Callable[[Desk], Awaitable[Result]],
    groups: Mapping[str, ModelGroup],
    tools: Mapping[str, Tool] | None = None,
) -> Result:
    """Run on the controller's loop, with rounds being served."""

    async def run() -> Result:
        rounds = Rounds(groups)
        serving = asyncio.create_task(rounds.serve())
        try:
            return await main(Desk(groups, tools or {}, rounds))
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        return runner.run(run())


def played(
    workflow: Workflow,
    group: ModelGroup,
    tasks: Sequence[TaskRow],
    *,
    tools: Mapping[str, Tool] | None = None,
    rollouts: int = 1,
    rewards: RewardProgram | None = None,
    workers: ProcessPool | None = None,
) -> list[Trajectory]:
    """Every task's trajectories, all at once, by one group for all models; scored where `rewards` are given.

    `workers` are closed at the end: they belong to one event loop.
    """

    async def one(desk: Desk, task: TaskRow, rollout: int) -> Trajectory:
        trajectory = Trajectory(task, 0, rollout)
        await play(workflow, trajectory, desk, run_seed=0)
        if rewards is not None:
            await score(trajectory, rewards, workers=workers or Here(), timeout_s=30.0)
        return trajectory

    async def main(desk: Desk) -> list[Trajectory]:
        wanted = [one(desk, task, rollout) for task in tasks for rollout in range(rollouts)]
        async with asyncio.TaskGroup() as together:
            running = [together.create_task(each) for each in wanted]
        if workers is not None:
            await workers.close()
        return [each.result() for each in running]

    models = {player.model for player in workflow.team.values()}
    try:
        return on_desk(main, dict.fromkeys(models, group), tools)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def one_model(spec: WorkflowSpec) -> dict[str, str]:
    """Every role played by the model `m`."""
    return {role.name: "m" for role in spec.roles}


def play_nodes(
    nodes: Sequence[Mapping[str, Any]],
    script: Script,
    *,
    roles: Sequence[Mapping[str, Any]],
    fields: Mapping[str, object] | None = None,
    random: Random | None = None,
    **spec: Any,
) -> Trajectory:
    """One trajectory of a workflow of these nodes; the tool `echo` is there. `random`: answers come in disorder."""
    given = {"input": {"visible": list(fields or {})}, "tools": [ECHO], "roles": roles, "nodes": nodes, **spec}
    parsed = WorkflowSpec.model_validate(given)
    workflow = prepare(parsed, one_model(parsed))
    return played(workflow, _group(script, random), [TaskRow("t", fields or {})], tools={"echo": echo(random)})[0]


def play_code(
    code: Code,
    script: Script,
    *,
    roles: Sequence[Mapping[str, Any]],
    max_calls: int = 100,
    random: Random | None = None,
    fields: Mapping[str, object] | None = None,
    hidden: Mapping[str, object] | None = None,
) -> Trajectory:
    """One trajectory of a workflow as code; the tool `echo` is there."""
    python = {"entrypoint": "test:run", "maxCalls": max_calls}
    given = {"visible": list(fields or {}), "hidden": list(hidden or {})}
    parsed = WorkflowSpec.model_validate({"input": given, "tools": [ECHO], "roles": roles, "python": python})
    workflow = prepare(parsed, one_model(parsed), code=code)
    task = TaskRow("t", {**(fields or {}), **(hidden or {})})
    return played(workflow, _group(script, random), [task], tools={"echo": echo(random)})[0]


ECHO: Mapping[str, Any] = {"name": "echo", "python": {"entrypoint": "test:echo"}, "returns": {"found": "string"}}


def _group(script: Script, random: Random | None) -> ModelGroup:
    return ScriptedGroup("m", script) if random is None else Streaming("m", script, random)


def by_hash(replies: Mapping[str, Sequence[str]], seed: int) -> Callable[[Request], str]:
    """A script: which of a role's replies comes is a function of the seed and the call, never of arrival."""
    return partial(_by_hash, replies, seed)


def _by_hash(replies: Mapping[str, Sequence[str]], seed: int, request: Request) -> str:
    return Random(f"{seed}/{request.id}").choice(replies[request.role])


def keys(trajectory: Trajectory) -> list[str]:
    """The visits' keys, in order."""
    return [visit.key for visit in trajectory.visits]


def parents(trajectory: Trajectory) -> dict[str, tuple[str, ...]]:
    """The visits' parents, by key."""
    return {visit.key: visit.parents for visit in trajectory.visits}


def value_of(trajectory: Trajectory, key: str) -> Mapping[str, object]:
    """The value of the visit of a key."""
    return visit_of(trajectory, key).value


def visit_of(trajectory: Trajectory, key: str) -> Visit:
    """The visit of a key."""
    return next(visit for visit in trajectory.visits if visit.key == key)


def record_of(trajectory: Trajectory) -> dict[str, Any]:
    """Everything that is recorded of the visits, and the result, but times."""
    visits = [asdict(visit) for visit in trajectory.visits]
    for timed in (each for visit in visits for each in (visit, *visit["calls"])):
        del timed["started_s"], timed["ended_s"]
    rest = (trajectory.result, trajectory.metrics, trajectory.score, trajectory.failure)
    return {"visits": visits, "rest": rest}
