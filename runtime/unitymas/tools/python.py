"""The tool `python`: a function of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

from unitymas.api import shapes
from unitymas.api.errors import Author
from unitymas.api.ports import ToolAnswer, Workers
from unitymas.api.shapes import Record, Shape
from unitymas.api.tool import Tool as ToolSpec
from unitymas.tools.kind import Offer


class PythonTool:
    """Calls a function by keyword, in the workers; it returns a record of the declared shape.

    The record may also hold `ok` (false: the arguments were the policy's mistake) and `error` (why), declared or not.
    """

    keeps_limit: ClassVar[bool] = True  # it starts with the function: waiting for a free process is not its fault

    def __init__(self, entrypoint: str, *, returns: Record, workers: Workers, timeout_s: float) -> None:
        self.shape = returns
        self.arguments: Mapping[str, Shape] | None = None
        self._entrypoint = entrypoint
        self._workers = workers
        self._timeout_s = timeout_s

    @staticmethod
    def of(spec: ToolSpec, offer: Offer) -> PythonTool:
        """The tool of an entry point; `returns` is a record, as `check_tools` made sure."""
        assert spec.python is not None
        returns = cast(Record, shapes.parse(spec.returns))
        return PythonTool(spec.python.entrypoint, returns=returns, workers=offer.workers, timeout_s=offer.timeout_s)

    async def call(self, arguments: Mapping[str, object]) -> ToolAnswer:
        """The function's answer. Raises Author, Deadline and Infrastructure as the workers do."""
        where = f"tool {self._entrypoint}"
        value = await self._workers.call(self._entrypoint, arguments, where=where, timeout_s=self._timeout_s)
        if not isinstance(value, Mapping):
            raise Author(where, f"returned {value!r:.60}; expected a record, {shapes.notation(self.shape)}")
        record = cast(Mapping[str, object], value)
        ok = record.get("ok", True)
        if not isinstance(ok, bool):
            raise Author(where, f"its answer.ok: found {ok!r:.60}; expected true or false")
        return ToolAnswer(record, ok=ok, error=str(record.get("error", "")))

    async def close(self) -> None:
        """Nothing to give back: the workers are the run's."""
