"""The port of rollout engines: token ids in, token ids out, inside the model group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from unitymas.api.records import Sampling
from unitymas.models.buffer import Sample

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Prompt:
    """One generation asked of an engine."""

    ids: tuple[int, ...]
    """The whole prompt, control tokens included; at least one token."""
    seed: int
    """Decides what is sampled, whatever else is in the batch."""
    sampling: Sampling


class Engine(Protocol):
    """What samples from one model's weights. Blocking: a model group calls it from its compute thread."""

    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """Answer a batch, in the order given; equal prompts, seeds and weights give equal ids."""
        ...

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Serve these weights from now on, stamped with the version.

        Names and shapes are those of the Hugging Face checkpoint, all of them. Raises ValueError where they differ;
        then nothing may be generated until a load succeeds.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
