"""The format `choice`."""

from __future__ import annotations

from unitymas.api.shapes import STRING, Shape
from unitymas.api.workflow import Output as OutputSpec


class Choice:
    """One of the given words and nothing else, case counting; white space around it does not."""

    def __init__(self, spec: OutputSpec) -> None:
        self.shape: Shape = STRING
        self._choices = frozenset(spec.choices or ())

    def parse(self, text: str) -> str:
        """The word. Raises ValueError for any other reply."""
        word = text.strip()
        if word not in self._choices:
            raise ValueError("none of the choices")
        return word
