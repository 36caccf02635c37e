"""The protocols that a newcomer implements: Tool, Metric, Output, ModelGroup and its extra powers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from unitymas.api.records import Reply, Request, Row
from unitymas.api.shapes import Record, Shape


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool gave: fields of its declared shape; `ok` false when the arguments were the policy's mistake."""

    value: Mapping[str, object]
    ok: bool = True
    error: str = ""


@runtime_checkable
class Tool(Protocol):
    """Something that a node can call. Raises Infrastructure when it broke, Author when the user's code raised."""

    @property
    def shape(self) -> Record:
        """Fields of an answer, without `ok` and `ran`."""
        ...

    @property
    def arguments(self) -> Mapping[str, Shape] | None:
        """The arguments it takes, or None when only it can tell."""
        ...

    async def call(self, arguments: Mapping[str, object]) -> ToolAnswer:
        """Answer one call."""
        ...

    async def close(self) -> None:
        """Give back what it holds."""
        ...


class Output(Protocol):
    """An output format: from a reply to a value of its shape."""

    @property
    def shape(self) -> Shape:
        """Shape of the output."""
        ...

    def parse(self, text: str) -> object:
        """The value. Raises ValueError when the reply does not parse: a failure of the policy."""
        ...


@runtime_checkable
class ParsesAside(Protocol):
    """An output format whose parser is the user's own code: it runs outside the event loop."""

    @property
    def shape(self) -> Shape:
        """Shape of the output."""
        ...

    async def parse_aside(self, text: str) -> object:
        """The value. Raises ValueError when the reply does not parse, and what Workers raise."""
        ...


class Workers(Protocol):
    """Processes that run users' code and slow pure functions, apart from the event loop."""

    async def call(
        self,
        entrypoint: str,
        arguments: Mapping[str, object] | Sequence[object],
        *,
        where: str,
        timeout_s: float,
        setup: Mapping[str, object] | None = None,
    ) -> object:
        """What `module:name` returns for these keywords, or these positions; an iterator comes back as a list.

        With `setup` the entry point is a class, built once a process with those keywords, then called.
        Raises Author when it cannot be imported or raises (`__cause__` is a ValueError when it raised one), Deadline
        when it ran longer than `timeout_s`, Infrastructure when its process died twice or it raised that itself.
        `where` names the caller.
        """
        ...


@dataclass(frozen=True, slots=True)
class Update:
    """What one update of one model was like."""

    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Such as `loss`, `grad_norm`, `clip_fraction`, `kl`, `parity`, `small_groups`, `tokens`, `rows`."""


@runtime_checkable
class ModelGroup(Protocol):
    """A point of the star: serves one model. Text, ids and numbers cross; token ids and tensors never do."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer one batch, in the order given. Raises Infrastructure when the engine broke."""
        ...

    async def stat(self) -> Mapping[str, float]:
        """Gauges, such as `rss_bytes`, `version`, `buffered_tokens`."""
        ...

    async def close(self) -> None:
        """Give back what it holds."""
        ...


@runtime_checkable
class Streams(Protocol):
    """A model group that takes single requests as they come, and batches them itself."""

    async def answer(self, request: Request) -> Reply:
        """Answer one request. Raises Infrastructure when the engine broke."""
        ...


@runtime_checkable
class Trains(Protocol):
    """A model group whose weights may change."""

    async def train(self, rows: Sequence[Row], *, step: int) -> Update:
        """One update from the kept tokens of the rows' calls; not served before `publish`.

        Raises ParityBroken before anything changes, NotFinite before anything is served, Infrastructure when the
        trainer broke.
        """
        ...

    async def publish(self, version: int) -> None:
        """Serve the trained weights from now on, stamped with the version; forget the kept tokens."""
        ...

    async def save(self, folder: Path) -> None:
        """Write weights, optimiser, critic and RNG into a folder that exists."""
        ...

    async def load(self, folder: Path, *, version: int) -> None:
        """Read what `save` wrote and serve it."""
        ...

    async def export(self, folder: Path) -> None:
        """Write the weights and tokenizer as a Hugging Face folder."""
        ...
