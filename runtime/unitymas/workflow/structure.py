"""The structure of a workflow in plain Python: loops, items, blocks, branches. It gives visits their places."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from unitymas.api.records import Order
from unitymas.workflow.keys import Place

Item = TypeVar("Item")
Result = TypeVar("Result")
Leaf = tuple[str, str, Order]

_PLACE: ContextVar[Place] = ContextVar("unitymas_place")
_LEAF: ContextVar[Leaf | None] = ContextVar("unitymas_leaf", default=None)
"""Set where a leaf is repeated under its own name: its visits are `solve[3]`, not `solve[3].solve`."""


def here() -> Place:
    """Where the calling code stands; an asyncio task of its own gets a branch of its own."""
    place = _PLACE.get()
    task = asyncio.current_task()
    if place.owner is None:
        place.owner = task
    if place.owner is not task:
        key, order = place.step("branch")
        place = place.inside(key, (*order[:-1], (True, order[-1][1])), owner=task)
        _PLACE.set(place)
    return place


def claim(node: str) -> tuple[Place, str, Order]:
    """The place of a visit of `node` made now, its key and its order."""
    place = here()
    leaf = _LEAF.get()
    if leaf is None:
        return place, *place.step(node)
    _LEAF.set(None)
    return (place, leaf[1], leaf[2]) if leaf[0] == node else (place, *place.step(node))


@contextmanager
def standing(place: Place, leaf: Leaf | None = None) -> Generator[None]:
    """The code inside stands in this place."""
    tokens = _PLACE.set(place), _LEAF.set(leaf)
    try:
        yield
    finally:
        _LEAF.reset(tokens[1])
        _PLACE.reset(tokens[0])


def turns(name: str, most: int) -> Iterator[int]:
    """The turns of a loop, 0, 1, ...; leave it with `break`. Visits inside are keyed `name[turn]`."""
    outer = here()
    outer.join()
    key, order = outer.step(name)
    try:
        for turn in range(most):
            at, inner = f"{key}[{turn}]", (*order, (False, turn))
            _PLACE.set(outer.inside(at, inner, turn=(name, turn)))
            _LEAF.set((name, at, inner))
            yield turn
            outer.join()
    finally:
        outer.join()
        _PLACE.set(outer)
        _LEAF.set(None)


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
        return outer.inside(f"{key}[{index}]", (*order, (parallel, index)), item=(name, index))

    async def one(item: Item, place: Place) -> Result:
        if parallel:
            place.owner = asyncio.current_task()
        with standing(place, (name, place.prefix[:-1], place.order)):
            return await body(item)

    if parallel:
        places = [place(index) for index in range(len(items))]
        results = await _gather([one(item, inner) for item, inner in zip(items, places, strict=True)])
        outer.join()
        return results
    results: list[Result] = []
    for index, item in enumerate(items):
        results.append(await one(item, place(index)))
        outer.join()
    return results


@contextmanager
def within(name: str) -> Generator[None]:
    """A block: visits inside are keyed `name.`."""
    outer = here()
    outer.join()
    key, order = outer.step(name)
    try:
        with standing(outer.inside(key, order)):
            yield
    finally:
        outer.join()


async def together(bodies: Sequence[Callable[[], Awaitable[Result]]]) -> list[Result]:
    """All bodies at once, each in a branch that the others do not see. Returns their results in order."""
    outer = here()
    outer.join()

    async def one(body: Callable[[], Awaitable[Result]], place: Place) -> Result:
        place.owner = asyncio.current_task()
        with standing(place):
            return await body()

    places = [outer.branch(index) for index in range(len(bodies))]
    results = await _gather([one(body, place) for body, place in zip(bodies, places, strict=True)])
    outer.join()
    return results


async def _gather(coroutines: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """All of them, owned: one that fails cancels the others, and its own error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
