"""The format `python`."""

from __future__ import annotations

from unitymas.api import shapes
from unitymas.api.errors import Author
from unitymas.api.ports import Workers
from unitymas.api.workflow import Output as OutputSpec


class Python:
    """A function of the user's own, from the reply's text to a value of the shape; runs in the workers."""

    def __init__(self, spec: OutputSpec, *, workers: Workers | None, timeout_s: float) -> None:
        self.shape = shapes.parse(spec.shape)
        self._entrypoint = spec.entrypoint or ""
        self._workers = workers
        self._timeout_s = timeout_s

    async def parse_aside(self, text: str) -> object:
        """The value. Raises ValueError when the function did; Author for what else it raised, or a wrong shape."""
        where = f"output {self._entrypoint}"
        if self._workers is None:
            raise Author(where, "no workers to run it in")
        try:
            value = await self._workers.call(self._entrypoint, [text], where=where, timeout_s=self._timeout_s)
        except Author as error:
            if isinstance(error.__cause__, ValueError):
                raise ValueError(error.message) from error
            raise
        try:
            return shapes.conform(self.shape, value)
        except shapes.ShapeError as error:
            raise Author(where, f"its result{error.path}: found {error.found}; expected {error.expected}") from error
