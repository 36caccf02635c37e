"""The format `regex`."""

from __future__ import annotations

import regex

from unitymas.api.shapes import STRING, Shape
from unitymas.api.workflow import Output as OutputSpec

LIMIT_S = 1.0
"""Of one search: a pattern that backtracks without end must not hold up the event loop."""


class Regex:
    """The first group of the pattern's first match, or the whole match where it has no group.

    Raises ValueError when the pattern cannot be compiled.
    """

    def __init__(self, spec: OutputSpec) -> None:
        self.shape: Shape = STRING
        try:
            self._pattern = regex.compile(spec.pattern or "")
        except regex.error as error:
            raise ValueError(f"a regular expression ({error})") from error

    def parse(self, text: str) -> str:
        """The group's text. Raises ValueError when nothing matches, or the search takes longer than LIMIT_S."""
        try:
            match = self._pattern.search(text, timeout=LIMIT_S)
        except TimeoutError as error:
            raise ValueError(f"the pattern took longer than {LIMIT_S:g} s") from error
        found = None if match is None else match.group(1 if self._pattern.groups else 0)
        if found is None:
            raise ValueError("no match of the pattern")
        return found
