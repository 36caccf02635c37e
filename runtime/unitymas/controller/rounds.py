"""Batches are formed in rounds: when no trajectory can advance without an answer, all waiting requests are asked at
once, ordered by their visits' places. So the order in which answers and tools come back changes no batch.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from unitymas.api.errors import Author, Failed, Infrastructure, UnityMASError, boundary
from unitymas.api.ports import ModelGroup
from unitymas.api.records import Order, Reply, Request


class IdleSelector(selectors.DefaultSelector):
    """A selector that tells when its loop has nothing left to do but wait."""

    on_idle: Callable[[], bool] | None = None
    """May schedule more; says whether it did."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As the selector does, but before a wait `on_idle` is asked."""
        if self.on_idle is None or (timeout is not None and timeout <= 0):
            return super().select(timeout)
        ready = super().select(0)
        # What it schedules is in the loop's own queue: the next pass runs it, so this one must not wait.
        if ready or self.on_idle():
            return ready
        return super().select(timeout)


class IdleLoop(asyncio.SelectorEventLoop):
    """The event loop of a controller: it knows when no coroutine can advance by itself."""

    def __init__(self) -> None:
        self.idle = IdleSelector()
        super().__init__(self.idle)


def place_of(request: Request) -> tuple[str, int, str, int, Order, int]:
    """What requests are sorted by: never when they came."""
    call = request.id
    return (call.phase, call.step, call.task, call.rollout, request.order, call.call)


@dataclass(slots=True)
class _Waiting:
    model: str
    request: Request
    answer: asyncio.Future[Reply]


@dataclass(slots=True)
class Rounds:
    """Collects requests, and asks the model groups when nothing else can advance."""

    groups: Mapping[str, ModelGroup]
    call_s: float = 60.0
    """A batch may take as long as if its calls, each of at most this, came one after another."""
    _waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    _asking: list[_Waiting] = field(default_factory=list[_Waiting])
    _busy: int = 0
    _go: asyncio.Event = field(default_factory=asyncio.Event)
    rounds: int = 0

    async def ask(self, model: str, request: Request) -> Reply:
        """One answer, in one of the next rounds."""
        waiting = _Waiting(model, request, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        return await waiting.answer

    @contextmanager
    def busy(self) -> Generator[None]:
        """Something that is not an answer is under way: a tool, a metric. No round starts meanwhile."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def idle(self) -> bool:
        """The loop has nothing to do: start a round if requests wait and nothing else is under way."""
        starts = bool(self._waiting) and not self._busy and not self._asking
        if starts:
            self._go.set()
        return starts

    async def serve(self) -> None:
        """Run rounds until cancelled; one at a time, all models of a round together. Needs an IdleLoop."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, IdleLoop):
            raise TypeError(f"found {type(loop).__name__}; expected an IdleLoop")
        loop.idle.on_idle = self.idle
        try:
            while True:
                await self._go.wait()
                self._go.clear()
                await self._round()
        finally:
            loop.idle.on_idle = None

    async def _round(self) -> None:
        self._asking = sorted(
            (waiting for waiting in self._waiting if not waiting.answer.done()),
            key=lambda waiting: place_of(waiting.request),
        )
        self._waiting = []
        self.rounds += 1
        by_model: dict[str, list[_Waiting]] = {}
        for waiting in self._asking:
            by_model.setdefault(waiting.model, []).append(waiting)
        try:
            answers = await asyncio.gather(*(self._batch(model, by_model[model]) for model in sorted(by_model)))
        finally:
            asked, self._asking = self._asking, []
        self._deliver(asked, {id(waiting): answer for batch in answers for waiting, answer in batch})

    async def _batch(self, model: str, batch: list[_Waiting]) -> list[tuple[_Waiting, Reply | UnityMASError]]:
        group = self.groups[model]
        try:
            async with asyncio.timeout(self.call_s * len(batch)):
                async with boundary(Author, f"model {model}"):  # else what nobody foresaw would end the rounds unheard
                    replies = await group.generate([waiting.request for waiting in batch])
        except TimeoutError:
            late = Infrastructure(f"model {model}", f"{len(batch)} calls took longer than {self.call_s:g}s each")
            return [(waiting, late) for waiting in batch]
        except UnityMASError as error:
            return [(waiting, error) for waiting in batch]
        return list(zip(batch, replies, strict=True))

    @staticmethod
    def _deliver(asked: list[_Waiting], answers: Mapping[int, Reply | UnityMASError]) -> None:
        for waiting in asked:
            if waiting.answer.done():  # its trajectory was cancelled meanwhile
                continue
            answer = answers[id(waiting)]
            if isinstance(answer, Failed):
                # A copy for each: a shared exception would grow one traceback from many tasks.
                waiting.answer.set_exception(type(answer)(answer.where, answer.message))
            elif isinstance(answer, UnityMASError):
                waiting.answer.set_exception(Infrastructure(f"model {waiting.model}", str(answer)))
            else:
                waiting.answer.set_result(answer)
