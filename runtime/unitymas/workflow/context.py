"""One run of the workflow on one task: plays roles, calls tools, and leaves the records."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from unitymas.api.errors import Author, Failed, Failure
from unitymas.api.ports import ToolAnswer
from unitymas.api.records import Call, CallId, Message, Reply, Request, Trajectory, Visit
from unitymas.expr.errors import EvaluationError
from unitymas.workflow.keys import Place, seed_of
from unitymas.workflow.structure import here
from unitymas.workflow.team import Player


class Value(dict[str, object]):
    """A node's value: a record for expressions, with attributes for Python."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field `{name}`; there are {', '.join(self)}") from None


def plain(value: object) -> object:
    """The value with plain records, as expressions take them: of a Value, or of a list of them."""
    if isinstance(value, Value):
        return dict(value)
    return [plain(item) for item in cast(list[object], value)] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply with what the controller saw of the call; times in seconds since its rollout began."""

    reply: Reply
    started_s: float
    ended_s: float
    retries: int = 0


class Dispatch(Protocol):
    """The controller's way to models and tools: limits, retries and failure classes are applied there."""

    async def generate(self, model: str, request: Request) -> Answered:
        """One generation. Raises Infrastructure when the retries are used up."""
        ...

    async def call_tool(self, tool: str, arguments: Mapping[str, object]) -> ToolAnswer:
        """One tool call. Raises Infrastructure when the retries are used up."""
        ...

    def now(self) -> float:
        """Seconds since the rollout of this step or evaluation began."""
        ...


@dataclass(slots=True)
class Context:
    """One run of the workflow on one task: who plays, where calls go, the records they leave."""

    trajectory: Trajectory
    team: Mapping[str, Player]
    dispatch: Dispatch
    run_seed: int
    most_calls: int
    open: dict[str, Place] = field(default_factory=dict[str, Place])
    """Where the visits stand that were made and have not ended, by key."""
    calls: int = 0
    """Made so far, those beyond `most_calls` among them."""
    copies: bool = False
    """Whoever plays is given values of its own, which it may change: the records stay as they are."""
    _tasks: set[asyncio.Task[object]] = field(default_factory=set["asyncio.Task[object]"])
    """Those that visits run in now."""
    _closed: bool = False

    async def close(self) -> None:
        """The trajectory has ended: whatever of it still runs is cancelled."""
        self._closed = True
        left = self._tasks - {cast("asyncio.Task[object]", asyncio.current_task())}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def visit(self, node: str) -> Visit:
        """A new record, keyed now."""
        if self._closed:
            raise asyncio.CancelledError(f"visit {node} of a trajectory that has ended")
        place = here()
        key, order = place.claim(node)
        visit = Visit(key, node, order, (), turns=place.turns, items=place.items)
        place.follow(visit)
        self.open[key] = place
        self.trajectory.visits.append(visit)
        return visit

    async def play(self, player: Player, visit: Visit, values: Mapping[str, object]) -> Value:
        """Play a role: render, generate, parse, check, record."""
        visit.role, visit.model = player.role.name, player.model
        seen = {"turn": visit.turn, "index": visit.index, "fresh": True, **values}
        with self._recorded(visit):
            request = self._request(player, visit, _rendered(player, seen))
            answered = await self.dispatch.generate(player.model, request)
            visit.text = answered.reply.text
            visit.calls = (_call(str(request.id), player.model, answered),)
            output, ok = await _read(player, visit.text, seen)
        visit.value = {"output": output, "text": visit.text, "ok": ok, "ran": True, "calls": 1}
        visit.failure = None if ok else Failure.POLICY
        return self._given(visit)

    async def use(self, tool: str, visit: Visit, arguments: Mapping[str, object]) -> Value:
        """Call a tool and record it."""
        visit.tool = tool
        with self._recorded(visit):
            answer = await self.dispatch.call_tool(tool, arguments)
        visit.value = {**answer.value, "ok": answer.ok, "ran": True}
        if not answer.ok:
            visit.failure, visit.error = Failure.POLICY, answer.error
        return self._given(visit)

    def _given(self, visit: Visit) -> Value:
        return Value(deepcopy(visit.value) if self.copies else visit.value)

    @contextmanager
    def _recorded(self, visit: Visit) -> Generator[None]:
        """The visit has begun, and ends inside: its times and whatever fails are kept on it."""
        place = self.open[visit.key]
        place.begun = True
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._tasks.add(task)
        visit.started_s = self.dispatch.now()
        try:
            yield
        except Failed as failed:
            visit.failure, visit.error = failed.failure, str(failed)
            raise
        finally:
            visit.ended_s = self.dispatch.now()
            place.running -= 1
            self._tasks.discard(task)
            del self.open[visit.key]

    def _request(self, player: Player, visit: Visit, messages: tuple[Message, ...]) -> Request:
        visit.prompt = "\n\n".join(message.text for message in messages)
        self.calls += 1
        if self.calls > self.most_calls:
            raise Author(visit.key, f"call {self.calls} of a workflow that may make {self.most_calls}")
        trajectory = self.trajectory
        call = CallId(trajectory.step, trajectory.task.id, trajectory.rollout, visit.key, 0, trajectory.phase)
        return Request(
            id=call,
            order=visit.order,
            messages=messages,
            sampling=player.sampling,
            seed=seed_of(self.run_seed, call),
            role=player.role.name,
            keep=trajectory.phase == "train",
        )


def _rendered(player: Player, seen: Mapping[str, object]) -> tuple[Message, ...]:
    try:
        return player.messages(seen)
    except EvaluationError as error:
        raise Author(f"prompt of role {player.role.name}", str(error)) from error


async def _read(player: Player, text: str, seen: Mapping[str, object]) -> tuple[object, bool]:
    try:
        return await player.read(text, seen)
    except EvaluationError as error:
        raise Author(f"output check of role {player.role.name}", str(error)) from error


def _call(key: str, model: str, answered: Answered) -> Call:
    reply = answered.reply
    return Call(
        id=key,
        model=model,
        finish=reply.finish,
        prompt_tokens=reply.prompt_tokens,
        output_tokens=reply.output_tokens,
        truncated_tokens=reply.truncated_tokens,
        version=reply.version,
        started_s=answered.started_s,
        ended_s=answered.ended_s,
        retries=answered.retries,
    )
