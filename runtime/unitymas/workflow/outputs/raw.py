"""The format `raw`."""

from __future__ import annotations

from unitymas.api.shapes import STRING, Shape
from unitymas.api.workflow import Output as OutputSpec


class Raw:
    """The whole reply, unchanged: always parses."""

    def __init__(self, spec: OutputSpec) -> None:
        self.shape: Shape = STRING

    def parse(self, text: str) -> str:
        """The reply."""
        return text
