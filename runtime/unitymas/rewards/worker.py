"""Users' code, and slow pure functions, in a pool of processes: the event loop never waits for them."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

from unitymas.api.errors import Author, Deadline, Infrastructure
from unitymas.rewards.userprocess import HEADER, Answer, Job, main, pack

TRIES = 2
"""Processes that one job may lose: the first may have been killed from outside, for its memory say."""
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class ProcessPool:
    """Workers (`api.ports`) as processes of this machine, each with one job at a time, started when first needed.

    `python_paths`: folders that entry points are imported from, before anything else. `processes`: most at once;
    further jobs wait, and a job's time limit starts when it does. A job past its limit loses its process, with what
    that started; no other job notices. Bound to the event loop that first uses it.
    """

    def __init__(self, *, python_paths: Sequence[str] = (), processes: int = 1) -> None:
        self._paths = tuple(python_paths)
        self._free = asyncio.Semaphore(processes)
        self._idle: list[Process] = []

    async def call(
        self,
        entrypoint: str,
        arguments: Mapping[str, object] | Sequence[object],
        *,
        where: str,
        timeout_s: float,
        setup: Mapping[str, object] | None = None,
    ) -> object:
        """See `api.ports.Workers`."""
        try:
            message = pack(Job(entrypoint, arguments, setup))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise Author(where, f"arguments of {entrypoint} cannot be sent to its process: {error}") from error
        async with self._free:
            for _ in range(TRIES):
                try:
                    answer = await self._attempt(message, timeout_s)
                except TimeoutError as error:
                    raise Deadline(where, f"{entrypoint} ran longer than {timeout_s:g} s") from error
                if answer is not None:
                    return _value(answer, where)
        raise Infrastructure(where, f"the process of {entrypoint} died, {TRIES} times")

    async def close(self) -> None:
        """End the processes."""
        while self._idle:
            await _end(self._idle.pop())

    async def _attempt(self, message: bytes, timeout_s: float) -> Answer | None:
        """The answer; None when the process died of the job. Raises TimeoutError."""
        process = self._idle.pop() if self._idle else await self._start()
        answer = None
        try:
            async with asyncio.timeout(timeout_s):
                answer = await _exchange(process, message)
            return answer
        finally:
            if answer is None:  # dead, late or cancelled: what it would say next belongs to nobody
                await _end(process)
            else:
                self._idle.append(process)

    async def _start(self) -> Process:
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = (sys.executable, "-P", "-c", f"from {main.__module__} import main; main()", *self._paths)
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=environment, start_new_session=True
        )


async def _exchange(process: Process, message: bytes) -> Answer | None:
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(message)
        await process.stdin.drain()
        header = await process.stdout.readexactly(HEADER.size)
        body = await process.stdout.readexactly(HEADER.unpack(header)[0])
    except (ConnectionError, asyncio.IncompleteReadError):
        return None
    try:
        return pickle.loads(body)
    except (ImportError, AttributeError) as error:
        return Answer(error=f"returned an object of the user's own code, not plain data: {error}")


async def _end(process: Process) -> None:
    assert process.stdin is not None and process.stdout is not None
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.stdin.close()
    await process.stdout.read()
    await process.wait()


def _value(answer: Answer, where: str) -> object:
    if not answer.error:
        return answer.value
    if answer.broke:
        raise Infrastructure(where, answer.error)
    raise Author(where, answer.error) from (ValueError(answer.error) if answer.value_error else None)
