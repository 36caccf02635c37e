"""What every tool has around it: a time limit, retries, failure classes, and answers of the declared shape."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

from unitymas.api import shapes
from unitymas.api.errors import Author, Deadline, Infrastructure, boundary
from unitymas.api.ports import Tool, ToolAnswer
from unitymas.api.shapes import Record, Shape

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
"""Between tries: doubling from the first to the longest."""


class Guarded:
    """A tool whose every call ends in an answer of its shape, in Infrastructure, or in Author.

    A call that breaks or is late is tried again, `retries` times at most. `timeout_s`: of one try; None when the tool
    keeps a limit of its own. Arguments of a wrong shape are the policy's mistake, an answer of a wrong shape the
    author's. Where `ok` is false, fields that the tool left out are empty.
    """

    def __init__(self, tool: Tool, *, name: str, timeout_s: float | None, retries: int) -> None:
        self._tool = tool
        self._where = f"tool {name}"
        self._timeout_s = timeout_s
        self._retries = retries

    @property
    def shape(self) -> Record:
        """See `api.ports.Tool`."""
        return self._tool.shape

    @property
    def arguments(self) -> Mapping[str, Shape] | None:
        """See `api.ports.Tool`."""
        return self._tool.arguments

    async def call(self, arguments: Mapping[str, object]) -> ToolAnswer:
        """Answer one call. Raises Infrastructure when the retries are used up, Author at once."""
        declared = self._tool.arguments
        if declared is not None:
            self._refuse_unknown(arguments, declared)
            try:
                arguments = cast(dict[str, object], shapes.conform(Record(tuple(declared.items())), arguments))
            except shapes.ShapeError as error:
                return self._mistake(f"argument{error.path}: found {error.found}; expected {error.expected}")
        return self._conformed(await self._tried(arguments))

    async def close(self) -> None:
        """Close the tool."""
        await self._tool.close()

    async def _tried(self, arguments: Mapping[str, object]) -> ToolAnswer:
        for done in range(self._retries):
            with suppress(Infrastructure):
                return await self._once(arguments)
            await asyncio.sleep(min(FIRST_WAIT_S * 2**done, LONGEST_WAIT_S))
        return await self._once(arguments)

    async def _once(self, arguments: Mapping[str, object]) -> ToolAnswer:
        async with boundary(Author, self._where):
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._tool.call(arguments)
            except (TimeoutError, Deadline) as error:
                late = str(error) or f"no answer within {self._timeout_s:g} s"
                raise Infrastructure(self._where, late) from error

    def _refuse_unknown(self, arguments: Mapping[str, object], declared: Mapping[str, Shape]) -> None:
        unknown = [name for name in arguments if name not in declared]
        if unknown:
            raise Author(self._where, f"argument: found `{unknown[0]}`; expected {', '.join(declared)}")

    def _mistake(self, error: str) -> ToolAnswer:
        return ToolAnswer(cast(dict[str, object], shapes.empty(self.shape)), ok=False, error=error)

    def _conformed(self, answer: ToolAnswer) -> ToolAnswer:
        given = dict(answer.value)
        if not answer.ok:
            given = {**self._mistake("").value, **given}
        try:
            value = cast(dict[str, object], shapes.conform(self.shape, given))
        except shapes.ShapeError as error:
            what = f"its answer{error.path}: found {error.found}; expected {error.expected}"
            raise Author(self._where, what) from error
        if not shapes.encodable(answer.error):
            raise Author(self._where, f"its error: found {answer.error!r}; expected text that UTF-8 can write")
        return ToolAnswer(value, answer.ok, answer.error)
