"""Structural keys: where in the workflow a visit stands, and the seed of each call. Arrival never matters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from unitymas.api.errors import Author
from unitymas.api.records import CallId, Order, Visit


def seed_of(run_seed: int, call: CallId) -> int:
    """Seed of one call, 63 bits: a hash of run, phase, step, task, rollout, visit and call."""
    digest = blake2b(f"{run_seed}/{call}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


@dataclass(slots=True)
class Place:
    """A stretch of the workflow in which nodes follow each other: the whole, a loop's turn, an item, a branch.

    It goes stage by stage: a stage is one visit, or what runs at once. Positions are handed out when a call is made,
    so concurrent code gives the same keys whatever answers first.
    """

    prefix: str = ""
    order: Order = ()
    turns: Mapping[str, int] = field(default_factory=dict[str, int])
    items: Mapping[str, int] = field(default_factory=dict[str, int])
    after: tuple[str, ...] = ()
    """Keys of the visits that the first one here follows."""
    owner: asyncio.Task[object] | None = None
    leaf: str | None = None
    """A visit of this name that comes first is the place itself: `solve[3]`, not `solve[3].solve`."""
    begun: bool = False
    """Something of the stage has begun: the next call is of another stage."""
    running: int = 0
    """Visits made here that have not ended."""
    _position: int = 0
    _names: dict[str, int] = field(default_factory=dict[str, int])
    _siblings: dict[str, Place] | None = None
    """Which branch of a parallel block calls what, by name: they share a prefix."""
    _last: tuple[str, ...] = ()
    """Keys of the last visits of the stages before, none at first."""
    _stage: list[Visit | Place] = field(default_factory=list["Visit | Place"])
    _base: Order = ()
    """Where the stage stands."""

    def step(self, name: str) -> tuple[str, Order]:
        """Key and order of the next thing called `name` here; a repeated name gets a number. Raises Author."""
        if not name.isidentifier():
            raise Author("workflow code", f"found `{name}`; expected a name such as `answer`")
        if self._siblings is not None and self._siblings.setdefault(name, self) is not self:
            raise Author("workflow code", f"found `{name}` in two branches; expected names apart, such as .at('other')")
        position = self._position
        self._position = position + 1
        seen = self._names.get(name, 0)
        self._names[name] = seen + 1
        key = f"{self.prefix}{name}" if seen == 0 else f"{self.prefix}{name}#{seen}"
        return key, (*self.order, (False, position))

    def claim(self, name: str) -> tuple[str, Order]:
        """Key and order of a visit of `name` made now. Raises Author."""
        if name == self.leaf and not self._position:
            self._position = 1
            return self.prefix[:-1], self.order
        return self.step(name)

    def inside(
        self,
        prefix: str,
        order: Order,
        *,
        turn: tuple[str, int] | None = None,
        item: tuple[str, int] | None = None,
        owner: asyncio.Task[object] | None = None,
    ) -> Place:
        """A place inside this one, in its stage; of a loop's turn or an item a visit of the same name is the leaf."""
        place = Place(
            prefix=prefix,
            order=order,
            turns=_within(self.turns, *turn) if turn else self.turns,
            items=_within(self.items, *item) if item else self.items,
            after=self._last or self.after,
            owner=owner or self.owner,
            leaf=(turn or item or (None,))[0],
        )
        self._stage.append(place)
        self._base, self.begun = order, True
        return place

    def branches(self, count: int) -> list[Place]:
        """The branches of a parallel block: keyed as this place is, none seen by another."""
        order: Order = (*self.order, (False, self._position))
        self._position += 1
        branches = [self.inside(self.prefix, (*order, (True, index))) for index in range(count)]
        siblings: dict[str, Place] = {}
        for branch in branches:
            branch._siblings = siblings
        return branches

    def fork(self, task: asyncio.Task[object]) -> Place:
        """The branch of a task of its own: at once with what still runs here, else after it."""
        if not self.running and all(isinstance(one, Visit) or _done(one.owner) for one in self._stage):
            self.join()
        key, order = self.step("branch")
        return self.inside(f"{key}.", self._abreast() if self._stage else (*order, (True, 0)), owner=task)

    def follow(self, visit: Visit) -> None:
        """A visit is made here: it follows what was before, at once with visits made before it that wait to begin."""
        if self.begun:
            self.join()
        if self._stage:
            visit.order = self._abreast()
        else:
            self._base = visit.order
        visit.parents = self._last or self.after
        self._stage.append(visit)
        self.running += 1

    def join(self) -> None:
        """The stage is over: what comes next follows its last visits."""
        self._last = self._reached()
        self._stage.clear()
        self.begun = False

    def _abreast(self) -> Order:
        """The order of one more in the stage."""
        first = self._stage[0]
        if isinstance(first, Visit):  # it was alone so far
            first.order = (*self._base, (True, 0))
        return (*self._base, (True, len(self._stage)))

    def _reached(self) -> tuple[str, ...]:
        """Keys of the last visits made here; none where nothing was visited."""
        keys: dict[str, None] = {}
        for one in self._stage:
            keys.update(dict.fromkeys((one.key,) if isinstance(one, Visit) else one._reached()))
        return tuple(keys) or self._last


def _within(around: Mapping[str, int], name: str, number: int) -> dict[str, int]:
    """One loop or forEach further in: it comes last, in place of one around it that has its name."""
    return {**{other: at for other, at in around.items() if other != name}, name: number}


def _done(task: asyncio.Task[object] | None) -> bool:
    return task is not None and task.done()
