"""The user's code: every entry point can be imported, in a process of its own, and is what it is used as."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping, Sequence

from unitymas.api.errors import BadInput, Failed, Finding
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.data import Sources
from unitymas.rewards.userprocess import find
from unitymas.rewards.worker import ProcessPool

IMPORT_S = 60.0
"""Most seconds that importing one module may take."""
COROUTINE, FUNCTION = "async def", "callable"


def of_workflow(workflow: WorkflowSpec, sources: Sources) -> Iterator[Finding]:
    """Entry points of outputs, tools and the workflow itself."""
    given: dict[str, tuple[str, str]] = {}
    for number, role in enumerate(workflow.roles):
        if role.output.entrypoint is not None:
            given[f"spec.roles[{number}].output.entrypoint"] = (role.output.entrypoint, FUNCTION)
    for number, tool in enumerate(workflow.tools):
        if tool.python is not None:
            given[f"spec.tools[{number}].python.entrypoint"] = (tool.python.entrypoint, FUNCTION)
    if workflow.python is not None:
        given["spec.python.entrypoint"] = (workflow.python.entrypoint, COROUTINE)
    yield from _wrong(given, sources)


def of_rewards(reward: RewardSpecSpec, sources: Sources) -> Iterator[Finding]:
    """Entry points of metrics and rewards."""
    given: dict[str, tuple[str, str]] = {}
    for number, metric in enumerate(reward.metrics):
        if metric.python is not None:
            given[f"spec.metrics[{number}].python.entrypoint"] = (metric.python.entrypoint, FUNCTION)
    if reward.python is not None:
        given["spec.python.entrypoint"] = (reward.python.entrypoint, FUNCTION)
    yield from _wrong(given, sources)


def _wrong(given: Mapping[str, tuple[str, str]], sources: Sources) -> Iterator[Finding]:
    """given: entry point and what it has to be, by path."""
    if not given:
        return
    try:
        paths = [str(path) for path in sources.python_paths()]
    except BadInput as error:
        yield from error.findings
        return
    kinds = asyncio.run(_kinds([entrypoint for entrypoint, _ in given.values()], paths))
    for (path, (entrypoint, wanted)), kind in zip(given.items(), kinds, strict=True):
        if kind != wanted:
            expected = "async def run(task, agents, tools)" if wanted == COROUTINE else "a function or class to import"
            yield Finding("entrypoint", path, f"`{entrypoint}`: {kind}", expected)


async def _kinds(entrypoints: Sequence[str], paths: Sequence[str]) -> list[str]:
    """What each entry point is; what went wrong where it cannot be told."""
    pool = ProcessPool(python_paths=paths)
    kinds: list[str] = []
    try:
        for entrypoint in entrypoints:
            try:
                asked = [entrypoint, list(paths)]
                kind = await pool.call(f"{__name__}:kind_of", asked, where=entrypoint, timeout_s=IMPORT_S)
                kinds.append(str(kind))
            except Failed as error:
                kinds.append(error.message.partition("\n")[0])
    finally:
        await pool.close()
    return kinds


def kind_of(entrypoint: str, paths: Sequence[str]) -> str:
    """What an entry point is: `async def`, `callable`, or another type's name. Runs in a process for users' code.

    Raises ImportError when there is no such module or name, and what the module raises.
    """
    found = find(entrypoint, paths)
    if inspect.iscoroutinefunction(found):
        return COROUTINE
    return FUNCTION if callable(found) else type(found).__name__
