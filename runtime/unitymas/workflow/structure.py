"""The structure of a workflow in plain Python: loops, items, blocks, branches. It gives visits their places."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from unitymas.workflow.keys import Place

Item = TypeVar("Item")
Result = TypeVar("Result")

_PLACE: ContextVar[Place] = ContextVar("unitymas_place")


def here() -> Place:
    """Where the calling code stands; an asyncio task of its own gets a branch of its own."""
    place, task = _PLACE.get(), asyncio.current_task()
    if place.owner is None:
        place.owner = task
    elif task is not None and place.owner is not task:
        place = place.fork(task)
        _PLACE.set(place)
    return place


@contextmanager
def standing(place: Place) -> Generator[None]:
    """The code inside stands in this place."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)


def turns(name: str, most: int) -> Iterator[int]:
    """The turns of a loop, 0, 1, ...; leave it with `break`. Visits inside are keyed `name[turn]`."""
    outer = here()
    outer.join()
    key, order = outer.step(name)
    try:
        for turn in range(most):
            _PLACE.set(outer.inside(f"{key}[{turn}].", (*order, (False, turn)), turn=(name, turn)))
            yield turn
            outer.join()
    finally:
        outer.join()
        _PLACE.set(outer)


async def each(
    name: str,
    items: Sequence[Item],
    body: Callable[[Item], Awaitable[Result]],
    *,
    parallel: bool = False,
) -> list[Result]:
    """Run `body` for every item; visits inside are keyed `name[item]`. Returns the results in item order."""
    outer = here()
    outer.join()
    key, order = outer.step(name)

    def place(index: int) -> Place:
        return outer.inside(f"{key}[{index}].", (*order, (parallel, index)), item=(name, index))

    if parallel:
        return await _at_once([_standing(place(index), body, item) for index, item in enumerate(items)], outer)
    results: list[Result] = []
    for index, item in enumerate(items):
        with standing(place(index)):
            results.append(await body(item))
        outer.join()
    return results


@contextmanager
def within(name: str) -> Generator[None]:
    """A block: visits inside are keyed `name.`."""
    outer = here()
    outer.join()
    key, order = outer.step(name)
    try:
        with standing(outer.inside(f"{key}.", order)):
            yield
    finally:
        outer.join()


async def together(bodies: Sequence[Callable[[], Awaitable[Result]]]) -> list[Result]:
    """All bodies at once, each in a branch that the others do not see. Returns their results in order."""
    outer = here()
    outer.join()
    branches = outer.branches(len(bodies))
    return await _at_once([_standing(place, body) for place, body in zip(branches, bodies, strict=True)], outer)


async def _standing(place: Place, body: Callable[..., Awaitable[Result]], *given: object) -> Result:
    """Run one of several at once, in its place."""
    place.owner = asyncio.current_task()
    with standing(place):
        return await body(*given)


async def _at_once(coroutines: Sequence[Coroutine[Any, Any, Result]], outer: Place) -> list[Result]:
    """All of them, owned: one that fails cancels the others, and its own error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        outer.join()
    return [task.result() for task in tasks]
