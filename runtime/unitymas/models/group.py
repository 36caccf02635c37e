"""Model groups as the controller sees them: the ports on top of a link to the core, wherever that runs."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from unitymas.api.ports import Update
from unitymas.api.records import Reply, Request, Row


class Link(Protocol):
    """The way to one GroupCore: the part of a model group that differs between back ends."""

    async def call(self, method: str, *arguments: object) -> Any:
        """What the core's method returns. Raises what it raises where that is ours, else Infrastructure."""
        ...

    async def close(self) -> None:
        """Close the core and give back where it ran."""
        ...


class Group:
    """A model that is served (`api.ports.ModelGroup`). Counts the bytes that cross the star, pickled."""

    def __init__(self, name: str, link: Link) -> None:
        self.name = name
        self._link = link
        self._crossed = {"calls": 0.0, "bytes_in": 0.0, "bytes_out": 0.0}

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """See `api.ports.ModelGroup`."""
        return await self._call("generate", list(requests))

    async def stat(self) -> Mapping[str, float]:
        """Gauges of the core, and what has crossed since the start: `calls`, `bytes_in` and `bytes_out` of the core."""
        return {**await self._link.call("stat"), **self._crossed}

    async def close(self) -> None:
        """See `api.ports.ModelGroup`."""
        await self._link.close()

    async def _call(self, method: str, *arguments: object) -> Any:
        answer = await self._link.call(method, *arguments)
        self._crossed["calls"] += 1
        self._crossed["bytes_in"] += len(pickle.dumps(arguments))
        self._crossed["bytes_out"] += len(pickle.dumps(answer))
        return answer


class TrainedGroup(Group):
    """A model that is served and trained (`api.ports.Trains`)."""

    async def train(self, rows: Sequence[Row], *, step: int) -> Update:
        """See `api.ports.Trains`."""
        return await self._call("train", list(rows), step)

    async def publish(self, version: int) -> None:
        """See `api.ports.Trains`."""
        await self._call("publish", version)

    async def save(self, folder: Path) -> None:
        """See `api.ports.Trains`."""
        await self._call("save", folder)

    async def load(self, folder: Path, *, version: int) -> None:
        """See `api.ports.Trains`."""
        await self._call("load", folder, version)

    async def export(self, folder: Path) -> None:
        """See `api.ports.Trains`."""
        await self._call("export", folder)
