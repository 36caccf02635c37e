"""Node visits a second on one core: our interpreter and LangGraph on the same graph, in one run. Prints a table.

Five nodes in a line, 10,000 trajectories. A node renders a prompt from the state and the node before it, asks a model
that answers at once, takes the text of a tag and stores it. Ours also keys, seeds and records every visit, and asks
through the controller's rounds. LangGraph is run both ways that it offers; the faster one counts.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from importlib.metadata import version
from time import process_time
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from unitymas.api.records import Reply, Request, TaskRow, Trajectory
from unitymas.api.workflow import WorkflowSpec
from unitymas.controller.dispatch import Desk
from unitymas.controller.rounds import IdleLoop, Rounds
from unitymas.workflow import play, prepare

TRAJECTORIES = 10_000
NODES = 5
IN_FLIGHT = 64
TARGET = 3.0
REPLY = "<note>seen</note>"
QUESTION = "What is the capital of the country?"


class Instant:
    """A model group that answers at once."""

    name = "m"

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """See `api.ports.ModelGroup`."""
        return [Reply(REPLY, "stop", prompt_tokens=8, output_tokens=1, truncated_tokens=0, version=0)] * len(requests)

    async def stat(self) -> Mapping[str, float]:
        """Nothing to tell."""
        return {}

    async def close(self) -> None:
        """Nothing is held."""


def our_spec() -> WorkflowSpec:
    """The graph in our language."""
    prompt = "Question: {{ task.question }}\nNote: {{ state.note }}\nBefore: {{ given }}\nReply with <note>...</note>."
    names = [f"n{number}" for number in range(NODES)]
    before = ["task.question", *(f"nodes.{name}.output" for name in names)]
    return WorkflowSpec.model_validate(
        {
            "input": {"visible": {"question": "string"}},
            "state": {"note": "string"},
            "roles": [{"name": name, "prompt": prompt, "output": {"format": "tag", "tag": "note"}} for name in names],
            "nodes": [
                {"name": name, "role": name, "with": {"given": given}, "set": {"note": f"nodes.{name}.output"}}
                for name, given in zip(names, before, strict=False)
            ],
            "result": "state.note",
        }
    )


async def run_ours() -> None:
    """All trajectories, through a desk with its rounds."""
    spec = our_spec()
    workflow = prepare(spec, {role.name: "m" for role in spec.roles})
    rounds = Rounds({"m": Instant()})
    serving = asyncio.create_task(rounds.serve())
    desk = Desk(rounds.groups, {}, rounds)

    async def one(number: int) -> None:
        trajectory = Trajectory(TaskRow(f"t{number}", {"question": QUESTION}), 0, 0)
        await play(workflow, trajectory, desk, run_seed=0)
        assert len(trajectory.visits) == NODES
        assert trajectory.result == "seen"

    await limited(one)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


class State(TypedDict, total=False):
    """What LangGraph's nodes share."""

    question: str
    note: str
    given: str


def prompt_of(state: State) -> str:
    """The same prompt, made the fastest way there is."""
    return (
        f"Question: {state.get('question')}\nNote: {state.get('note', '')}\nBefore: {state.get('given')}\n"
        "Reply with <note>...</note>."
    )


def read(reply: str) -> State:
    """The text of the tag, stored."""
    note = reply.rpartition("<note>")[2].partition("</note>")[0].strip()
    return {"note": note, "given": note}


async def ask_soon(prompt: str) -> str:
    """A model that answers at once."""
    assert prompt
    return REPLY


async def node_soon(state: State) -> State:
    """A node that awaits its model."""
    return read(await ask_soon(prompt_of(state)))


def node_now(state: State) -> State:
    """A node that calls its model: no two trajectories at once."""
    assert prompt_of(state)
    return read(REPLY)


def their_graph(node: Callable[[State], State] | Callable[[State], Awaitable[State]]) -> Any:
    """The graph in LangGraph."""
    graph = StateGraph(State)
    names = [f"n{number}" for number in range(NODES)]
    for name in names:
        graph.add_node(name, node)  # pyright: ignore[reportArgumentType, reportCallIssue]
    for first, second in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(first, second)
    return graph.compile()


async def run_theirs_at_once() -> None:
    """All trajectories by `ainvoke`."""
    graph = their_graph(node_soon)

    async def one(number: int) -> None:
        assert (await graph.ainvoke({"question": QUESTION, "given": QUESTION}))["note"] == "seen"

    await limited(one)


async def run_theirs_in_turn() -> None:
    """All trajectories by `invoke`, one after another."""
    graph = their_graph(node_now)
    for _ in range(TRAJECTORIES):
        assert graph.invoke({"question": QUESTION, "given": QUESTION})["note"] == "seen"


async def limited(one: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """Run every trajectory, so many in flight."""
    numbers = iter(range(TRAJECTORIES))

    async def some() -> None:
        for number in numbers:  # shared: each is taken once
            await one(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(some())


def measure(run: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """CPU seconds of one run in this process, on an event loop of its own."""
    gc.collect()
    gc.freeze()  # what imports and earlier runs left is no cost of this one
    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        started = process_time()
        runner.run(run())
        return process_time() - started


def main() -> int:
    """Measure, print, and say whether the target is met."""
    ways = {
        "UnityMAS": run_ours,
        f"LangGraph {version('langgraph')}, ainvoke": run_theirs_at_once,
        f"LangGraph {version('langgraph')}, invoke": run_theirs_in_turn,
    }
    visits = TRAJECTORIES * NODES
    rates = {name: visits / measure(run) for name, run in ways.items()}
    ours, *theirs = rates.values()
    print(f"| {visits:,} node visits, one core | visits a second | µs a visit | times slower than UnityMAS |")
    print("| --- | ---: | ---: | ---: |")
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {1e6 / rate:.0f} | {ours / rate:.1f} |")
    ratio = ours / max(theirs)
    print(f"\nagainst the faster: {ratio:.1f} times; at least {TARGET:g} are wanted")
    return 0 if ratio >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
