"""Structural keys: where in the workflow a visit stands, and the seed of each call. Arrival never matters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from unitymas.api.records import CallId, Order


def seed_of(run_seed: int, call: CallId) -> int:
    """Seed of one call, 63 bits: a hash of run, phase, step, task, rollout, visit and call."""
    digest = blake2b(f"{run_seed}/{call}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


@dataclass(slots=True)
class Place:
    """A stretch of the workflow in which nodes follow each other: the whole, a loop's turn, an item, a branch.

    Positions are handed out when a call is made, so concurrent code gives the same keys whatever answers first.
    """

    prefix: str = ""
    order: Order = ()
    turns: Mapping[str, int] = field(default_factory=dict[str, int])
    items: Mapping[str, int] = field(default_factory=dict[str, int])
    last: tuple[str, ...] = ()
    """Keys of the visits that nothing in this place has followed yet."""
    owner: asyncio.Task[object] | None = None
    _position: int = 0
    _names: dict[str, int] = field(default_factory=dict[str, int])
    _open: list[Place] = field(default_factory=list["Place"])
    """Places inside whose ends have not been followed yet."""

    def step(self, name: str) -> tuple[str, Order]:
        """Key and order of the next thing called `name` here; a repeated name gets a number."""
        position = self._position
        self._position = position + 1
        seen = self._names.get(name, 0)
        self._names[name] = seen + 1
        key = f"{self.prefix}{name}" if seen == 0 else f"{self.prefix}{name}#{seen}"
        return key, (*self.order, (False, position))

    def inside(
        self,
        key: str,
        order: Order,
        *,
        turn: tuple[str, int] | None = None,
        item: tuple[str, int] | None = None,
        owner: asyncio.Task[object] | None = None,
    ) -> Place:
        """A place inside this one, whose first visit follows what was last here when all before it had ended."""
        place = Place(
            prefix=f"{key}.",
            order=order,
            turns={**self.turns, turn[0]: turn[1]} if turn else self.turns,
            items={**self.items, item[0]: item[1]} if item else self.items,
            last=self.last,
            owner=owner or self.owner,
        )
        self._open.append(place)
        return place

    def branch(self, index: int) -> Place:
        """A branch of a parallel block: keyed as this place is, seen by no other branch."""
        place = self.inside(self.prefix[:-1], (*self.order, (True, index)))
        place.prefix = self.prefix
        return place

    def ends(self) -> tuple[str, ...]:
        """Keys of the visits that whatever comes next follows."""
        if self._open:
            merged = dict.fromkeys(key for place in self._open for key in place.ends())
            self.last = tuple(merged) or self.last
        return self.last

    def join(self) -> None:
        """All places inside have ended: what comes next follows their last visits."""
        self.ends()
        self._open.clear()

    def follow(self, key: str) -> tuple[str, ...]:
        """Record that the visit `key` comes next. Returns its parents."""
        parents = self.ends()
        self._open.clear()
        self.last = (key,)
        return parents
