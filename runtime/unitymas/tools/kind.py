"""What the file of a tool holds: a class that builds itself from its spec and from what the run offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from unitymas.api.ports import Tool, Workers
from unitymas.api.tool import Tool as ToolSpec

Corpora = Callable[[str], Sequence[Mapping[str, str]]]
"""The corpus rows (id, title, text) of a source of the run, by the source's name."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run offers to its tools."""

    corpora: Corpora
    workers: Workers
    timeout_s: float
    """Of one call of this tool."""


class Kind(Protocol):
    """The class of a tool."""

    keeps_limit: ClassVar[bool]
    """It holds `timeout_s` itself; else its guard does."""

    @staticmethod
    def of(spec: ToolSpec, offer: Offer) -> Tool:
        """The tool. Raises BadInput for what its spec gets wrong."""
        ...
