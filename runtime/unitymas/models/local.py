"""Model groups in this process: one compute thread for all of them, so that the event loop stays alive."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from unitymas.api.errors import Infrastructure, boundary
from unitymas.models.core import GroupCore, GroupSpec


class ComputeThread:
    """The one thread that computes; groups take turns, so that a machine's cores are shared once.

    `users` counts the groups; the last one to leave ends it.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="models", initializer=_one_core)
        self._users = 0

    def join(self) -> None:
        """Count one more group."""
        self._users += 1

    def leave(self) -> None:
        """Count one less."""
        self._users -= 1
        if not self._users:
            self._thread.shutdown(wait=False)

    async def run(self, function: Any, *arguments: object) -> Any:
        """What a blocking function returns."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments))


class LocalLink:
    """The way to a GroupCore in this process."""

    def __init__(self, name: str, core: GroupCore, thread: ComputeThread) -> None:
        self._name = name
        self._core = core
        self._thread = thread

    @classmethod
    async def open(cls, spec: GroupSpec, thread: ComputeThread) -> LocalLink:
        """Build the core, in the thread. Raises what GroupCore raises."""
        thread.join()
        try:
            return cls(spec.model.name, await thread.run(GroupCore, spec), thread)
        except BaseException:
            thread.leave()
            raise

    async def call(self, method: str, *arguments: object) -> Any:
        """See `group.Link`. A call that is cancelled still runs to its end, and its answer is dropped."""
        async with boundary(Infrastructure, f"model {self._name}"):
            return await self._thread.run(getattr(self._core, method), *arguments)

    async def close(self) -> None:
        """See `group.Link`."""
        await self._thread.run(self._core.close)
        self._thread.leave()


def _one_core() -> None:
    import torch

    torch.set_num_threads(1)
