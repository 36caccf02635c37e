"""One trajectory: a workflow, of nodes or of code, run on one task, with everything recorded."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb

from unitymas.api.errors import Author, UnityMASError
from unitymas.api.ports import Workers
from unitymas.api.records import Trajectory, Visit
from unitymas.api.workflow import WorkflowSpec
from unitymas.workflow.agents import Agents, Tools
from unitymas.workflow.bound import most_calls
from unitymas.workflow.compile import Compiled, compile_workflow
from unitymas.workflow.context import Context, Dispatch, plain
from unitymas.workflow.interpret import Interpreter
from unitymas.workflow.keys import Place
from unitymas.workflow.structure import standing
from unitymas.workflow.team import Player, build_team

Code = Callable[[Mapping[str, object], Agents, Tools], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow ready to be run: of nodes (`compiled`), or code."""

    spec: WorkflowSpec
    team: Mapping[str, Player]
    compiled: Compiled
    most_calls: int
    """The most generations of one trajectory."""
    code: Code | None = None


def prepare(
    spec: WorkflowSpec, model_of: Mapping[str, str], *, code: Code | None = None, workers: Workers | None = None
) -> Workflow:
    """A workflow ready to be run; `code` is what `spec.python` names. Raises BadInput with all findings."""
    compiled, findings = compile_workflow(spec)
    if spec.python is not None and not inspect.iscoroutinefunction(code):
        findings.add(
            "entrypoint", "spec.python.entrypoint", found=f"{code!r}", expected="async def run(task, agents, tools)"
        )
    findings.raise_if_any()
    team = build_team(spec, model_of, workers=workers)
    return Workflow(spec, team, compiled, most_calls(spec), code if spec.python is not None else None)


async def play(workflow: Workflow, trajectory: Trajectory, dispatch: Dispatch, *, run_seed: int) -> None:
    """Run the workflow on the trajectory's task. Records what has happened, also when it is cut short by an error."""
    fields = trajectory.task.fields
    task = {name: fields[name] for name in workflow.spec.input.visible}
    context = Context(
        trajectory, workflow.team, dispatch, run_seed, workflow.most_calls, copies=workflow.code is not None
    )
    agents, tools = Agents(context, task), Tools(context, [tool.name for tool in workflow.spec.tools])
    trajectory.started_s = dispatch.now()
    try:
        with standing(Place()):
            if workflow.code is None:
                await _interpreted(workflow.compiled, trajectory, task, agents, tools)
            else:
                await _coded(workflow.code, context, task, agents, tools)
    finally:
        trajectory.ended_s = dispatch.now()
        trajectory.visits.sort(key=lambda visit: visit.order)


async def _interpreted(
    compiled: Compiled, trajectory: Trajectory, task: Mapping[str, object], agents: Agents, tools: Tools
) -> None:
    fields = trajectory.task.fields
    interpreter = Interpreter(compiled, {name: fields[name] for name in compiled.spec.input.hidden})
    try:
        trajectory.result = await interpreter.run(task, agents, tools)
    except BaseException:
        trajectory.result = interpreter.cut_short(task)
        raise
    finally:
        trajectory.state = interpreter.state
        trajectory.nodes = {name: interpreter.nodes[name] for name in compiled.nodes}


async def _coded(code: Code, context: Context, task: Mapping[str, object], agents: Agents, tools: Tools) -> None:
    try:
        context.trajectory.result = plain(await code(deepcopy(dict(task)), agents, tools))
        if context.calls > context.most_calls:  # the code has caught what the call raised
            made = f"{context.calls} calls of a workflow that may make {context.most_calls}"
            raise Author("workflow code", made)
        if context.open:
            raise Author("workflow code", f"ended before {', '.join(context.open)}: every call must be awaited")
    except Author as error:
        raise Author(error.where, f"{error.message}{_line(code, error)}") from error
    except UnityMASError:
        raise
    except (Exception, SystemExit) as error:
        raise Author("workflow code", f"{type(error).__name__}: {error}{_line(code, error)}") from error
    finally:
        await context.close()
        context.trajectory.nodes = nodes_of(context.trajectory.visits)


def _line(code: Code, error: BaseException) -> str:
    """Where in the user's own files it was raised: those beside the workflow's, or below."""
    folder = Path(inspect.getfile(code)).parent
    frames = [frame for frame in extract_tb(error.__traceback__) if folder in Path(frame.filename).parents]
    return f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def nodes_of(visits: Sequence[Visit]) -> dict[str, object]:
    """What `nodes` is for rewards of a code-first workflow: the last value by node, a list where items repeat it."""
    nodes: dict[str, object] = {}
    lists: dict[str, dict[int, object]] = {}
    for visit in sorted(visits, key=lambda visit: visit.order):
        if visit.node in visit.items:
            items = lists.setdefault(visit.node, {})
            items[visit.items[visit.node]] = visit.value
            nodes[visit.node] = list(items.values())
        else:
            nodes[visit.node] = visit.value
    return nodes
