"""Batches are formed when nothing else can advance, in an order that arrival does not change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from support.field import field_workflow
from support.playing import Answering, Streaming, by_hash, echo, on_desk, played, record_of
from unitymas.api import shapes
from unitymas.api.errors import Author, Failed, Infrastructure, UnityMASError
from unitymas.api.records import CallId, Message, Reply, Request, Sampling, Segment, TaskRow
from unitymas.controller.dispatch import Desk
from unitymas.controller.rounds import Rounds, place_of
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.tools.retriever import PASSAGE

REPLIES: Mapping[str, Sequence[str]] = {
    "planner": ['["decompose", "retrieve", "respond"]', '["rewrite", "retrieve", "select", "respond"]', "no plan"],
    "rewriter": ["query"],
    "decomposer": ['["one", "two", "three"]', '["one"]'],
    "selector": ['["one"]', "none"],
    "answerer": ["<answer>yes</answer>", "<answer>no</answer>"],
}
FIELDS = {"question": "what?", "answers": ["yes"]}


class Batches(ScriptedGroup):
    """Remembers its batches; answers come back after a delay that differs by call."""

    def __init__(self, delays: Random | None) -> None:
        def delay_s(request: Request) -> float:
            return delays.random() / 1000 if delays is not None else 0.0

        super().__init__("m", by_hash(REPLIES, seed=3), delay_s=delay_s)
        self.batches: list[list[CallId]] = []
        self.asked = asyncio.Event()

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.batches.append([request.id for request in requests])
        self.asked.set()
        return await super().generate(requests)


def wiki(delays: Random | None) -> Answering:
    """A retriever that finds one passage, named as the query."""

    def found(arguments: Mapping[str, object]) -> dict[str, object]:
        query = str(arguments["query"])
        return {"passages": [{"id": query, "title": query, "text": query, "score": 1.0}]}

    return Answering(shapes.record(passages=shapes.ListOf(PASSAGE)), found, delays)


def asked(task: str, *, role: str = "planner", rollout: int = 0) -> Request:
    messages = (Message("user", (Segment("?"),)),)
    return Request(CallId(0, task, rollout, "plan", 0), ((False, 0),), messages, Sampling(), seed=0, role=role)


def test_arrival_order_changes_neither_trajectories_nor_batches() -> None:
    one = field_workflow("11")
    tasks = [TaskRow(f"t{number}", FIELDS) for number in range(6)]
    runs: list[tuple[list[dict[str, Any]], list[list[CallId]]]] = []
    for seed in (None, 0, 1, 2):
        delays = None if seed is None else Random(seed)
        group = Batches(delays)
        trajectories = played(one.workflow, group, tasks, tools={"wiki": wiki(delays)}, rollouts=3, rewards=one.rewards)
        runs.append(([record_of(trajectory) for trajectory in trajectories], group.batches))
    assert all(run == runs[0] for run in runs)
    assert len(runs[0][1][0]) == 18  # all that wait form one batch


def test_a_batch_is_ordered_by_place_whoever_asked_first() -> None:
    requests = [asked(task, rollout=rollout) for task in ("b", "a", "c") for rollout in (1, 0)]
    group = Batches(None)

    async def main(desk: Desk) -> None:
        await asyncio.gather(*(desk.generate("m", request) for request in requests))

    on_desk(main, {"m": group})
    assert group.batches == [[request.id for request in sorted(requests, key=place_of)]]


def test_no_round_starts_while_anything_else_can_advance() -> None:
    heard: list[str] = []

    class Group(Batches):
        async def generate(self, requests: Sequence[Request]) -> list[Reply]:
            heard.append("round")
            return await super().generate(requests)

    async def slow(desk: Desk) -> None:
        await desk.call_tool("echo", {"query": "q"})
        heard.append("tool")
        await asyncio.sleep(0)
        await desk.generate("m", asked("a"))

    async def main(desk: Desk) -> None:
        await asyncio.gather(desk.generate("m", asked("b")), slow(desk), desk.generate("m", asked("c")))

    on_desk(main, {"m": (group := Group(None))}, {"echo": echo(Random(0))})
    assert heard == ["tool", "round"]
    assert [call.task for call in group.batches[0]] == ["a", "b", "c"]


def test_one_round_at_a_time_for_all_models() -> None:
    groups = {name: Batches(Random(at)) for at, name in enumerate("mn")}

    async def twice(desk: Desk, model: str, task: str) -> None:
        await desk.generate(model, asked(task))
        await desk.generate(model, asked(task, rollout=1))

    async def main(desk: Desk) -> int:
        await asyncio.gather(*(twice(desk, model, task) for model in "mn" for task in "ab"))
        return desk.rounds.rounds

    assert on_desk(main, groups) == 2
    assert [[len(batch) for batch in group.batches] for group in groups.values()] == [[2, 2], [2, 2]]


@pytest.mark.parametrize("when", ["waiting", "asked"])
def test_a_cancelled_request_holds_nobody_up(when: str) -> None:
    group = Batches(Random(0))

    async def main(desk: Desk) -> list[str]:
        cancelled = asyncio.ensure_future(desk.generate("m", asked("a")))
        others = [asyncio.ensure_future(desk.generate("m", asked(task))) for task in "bc"]
        await asyncio.sleep(0)  # all have asked, and the loop was never idle: no round has started
        if when == "asked":
            await group.asked.wait()
        cancelled.cancel()
        answered = await asyncio.gather(*others)
        after = await desk.generate("m", asked("d"))
        return [answer.reply.text for answer in (*answered, after)]

    assert len(on_desk(main, {"m": group})) == 3


@pytest.mark.parametrize(
    ("broken", "told"),
    [(Infrastructure("engine", "gone"), Infrastructure), (Author("engine", "no"), Author), (LookupError("?"), Author)],
)
def test_an_error_reaches_every_request_of_its_batch_and_no_other(broken: Exception, told: type[Failed]) -> None:
    groups = {"m": ScriptedGroup("m", by_hash(REPLIES, 0), failure=lambda _: broken), "n": Batches(None)}

    async def main(desk: Desk) -> list[Any]:
        wanted = [desk.generate(model, asked(task)) for model in "mn" for task in "ab"]
        outcomes = await asyncio.gather(*wanted, return_exceptions=True)
        return [*outcomes, await desk.generate("n", asked("c"))]

    outcomes = on_desk(main, groups)
    assert [type(outcome) is told for outcome in outcomes] == [True, True, False, False, False]
    assert outcomes[0] is not outcomes[1]
    assert all(isinstance(outcome, UnityMASError) for outcome in outcomes[:2])


def test_a_group_that_takes_requests_as_they_come_answers_at_once() -> None:
    heard: list[str] = []
    groups = {"m": Batches(None), "judge": Streaming("judge", by_hash(REPLIES, 0), Random(0))}

    async def one(desk: Desk, model: str, task: str) -> None:
        await desk.generate(model, asked(task))
        heard.append(model)

    async def main(desk: Desk) -> int:
        await asyncio.gather(one(desk, "m", "a"), one(desk, "judge", "b"), one(desk, "judge", "c"))
        return desk.rounds.rounds

    assert on_desk(main, groups) == 1
    assert heard == ["judge", "judge", "m"]


def test_rounds_need_a_loop_that_knows_when_it_is_idle() -> None:
    with pytest.raises(TypeError, match="expected an IdleLoop"):
        asyncio.run(Rounds({}).serve())
