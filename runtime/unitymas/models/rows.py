"""What one update trains on, row by row, and how rows are cut into optimiser steps and forward passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
PADDING = 0.25
"""Most padding of a forward pass, as a share of its cells; a single row pads nothing."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One call, ready to train on: what was sampled is what is trained."""

    prompt: I64
    """(prompt tokens,): token ids, at least one."""
    output: I64
    """(tokens,): sampled token ids, at least one."""
    log_probs: F32
    """(tokens,): log-probabilities at sampling, in nats, at the row's temperature."""
    advantages: F32
    """(tokens,): in reward units."""
    weight: float
    """Of each single token in the loss."""
    role: str
    temperature: float = 1.0
    """Positive."""

    @property
    def length(self) -> int:
        """Tokens of prompt and output."""
        return self.prompt.size + self.output.size


def mini_batches(rows: int, *, count: int, epochs: int, seed: Sequence[int]) -> list[list[int]]:
    """Indices of the rows of each optimiser step: every epoch has every row once, shuffled if there is a choice."""
    if count == 1:
        return [list(range(rows))] * epochs
    generator = np.random.default_rng(seed)
    parts = (part for _ in range(epochs) for part in np.array_split(generator.permutation(rows), min(count, rows)))
    return [sorted(part.tolist()) for part in parts]


def micro_batches(lengths: Sequence[int], *, most_rows: int, padding: float = PADDING) -> list[list[int]]:
    """Indices of the rows of each forward pass, shortest first: at most so many rows, and so much padding."""
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    batches: list[list[int]] = []
    held = 0
    for index in order:
        # rows come shortest first, so the newest is the width
        fits = bool(batches) and held + lengths[index] >= (1 - padding) * lengths[index] * (len(batches[-1]) + 1)
        if fits and len(batches[-1]) < most_rows:
            batches[-1].append(index)
            held += lengths[index]
        else:
            batches.append([index])
            held = lengths[index]
    return batches
