"""One run of the workflow on one task: plays roles, calls tools, and leaves the records."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from unitymas.api.errors import Author, Failed, Failure
from unitymas.api.ports import ToolAnswer
from unitymas.api.records import Call, CallId, Message, Reply, Request, Trajectory, Visit
from unitymas.expr.errors import EvaluationError
from unitymas.workflow.keys import Place, seed_of
from unitymas.workflow.structure import claim
from unitymas.workflow.team import Player


class Value(dict[str, object]):
    """A node's value: a record for expressions, with attributes for Python."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field `{name}`; there are {', '.join(self)}") from None


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply with what the controller saw of the call; times in seconds since the attempt started."""

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
        """Seconds since the attempt started."""
        ...


@dataclass(slots=True)
class Context:
    """One run of the workflow on one task: who plays, where calls go, the records they leave."""

    trajectory: Trajectory
    team: Mapping[str, Player]
    dispatch: Dispatch
    run_seed: int
    most_calls: int
    root: Place = field(default_factory=Place)
    calls: int = 0

    def visit(self, node: str) -> Visit:
        """A new record, keyed now."""
        place, key, order = claim(node)
        visit = Visit(key, node, order, place.follow(key), turns=place.turns, items=place.items)
        self.trajectory.visits.append(visit)
        return visit

    async def play(self, player: Player, visit: Visit, values: Mapping[str, object]) -> Value:
        """Play a role: render, generate, parse, check, record."""
        visit.role, visit.model = player.role.name, player.model
        visit.started_s = self.dispatch.now()
        seen = {"turn": visit.turn, "index": visit.index, "fresh": True, **values}
        with recorded(visit, self.dispatch):
            request = self._request(player, visit, _rendered(player, seen))
            answered = await self.dispatch.generate(player.model, request)
            visit.text = answered.reply.text
            visit.calls = (_call(str(request.id), player.model, answered),)
            output, ok = await _read(player, visit.text, seen)
        visit.value = {"output": output, "text": visit.text, "ok": ok, "ran": True, "calls": 1}
        visit.failure = None if ok else Failure.POLICY
        return Value(visit.value)

    async def use(self, tool: str, visit: Visit, arguments: Mapping[str, object]) -> Value:
        """Call a tool and record it."""
        visit.tool = tool
        visit.started_s = self.dispatch.now()
        with recorded(visit, self.dispatch):
            answer = await self.dispatch.call_tool(tool, arguments)
        visit.value = {**answer.value, "ok": answer.ok, "ran": True}
        if not answer.ok:
            visit.failure, visit.error = Failure.POLICY, answer.error
        return Value(visit.value)

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


@contextmanager
def recorded(visit: Visit, dispatch: Dispatch) -> Generator[None]:
    """Whatever fails inside is kept on the visit, with the time."""
    try:
        yield
    except Failed as failed:
        visit.failure, visit.error = failed.failure, str(failed)
        raise
    finally:
        visit.ended_s = dispatch.now()


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
