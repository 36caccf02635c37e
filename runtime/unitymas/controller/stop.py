"""Stopping a run cleanly: what a signal sets, and what the loop asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from unitymas.api.errors import UnityMASError

Result = TypeVar("Result")


class Stopped(UnityMASError):
    """The user stopped the run; it has been saved."""

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(f"stopped after step {step}")


@dataclass(slots=True)
class Stop:
    """Set by a signal: the rollout is cut short, an update is finished first."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def unless(self, work: Awaitable[Result]) -> Result | None:
        """The work's result, or None when the stop came first."""
        doing = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self.asked.wait())
        try:
            await asyncio.wait({doing, asked}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            return None
        finally:
            for task in (doing, asked):
                task.cancel()
            await asyncio.gather(doing, asked, return_exceptions=True)
