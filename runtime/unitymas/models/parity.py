"""Whether rollout engine and trainer are the same policy: their log-probabilities of the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unitymas.api.errors import ParityBroken
from unitymas.models.rows import F32


@dataclass(frozen=True, slots=True)
class Gap:
    """Distance between rollout and trainer over the trained tokens, in nats."""

    largest: float
    mean: float


def gap(rollout: Sequence[F32], trainer: Sequence[F32]) -> Gap:
    """The gap between two arrays of (tokens,) for each row; not a number where either is."""
    found = np.abs(np.concatenate(rollout) - np.concatenate(trainer))
    return Gap(float(found.max(initial=0.0)), float(found.mean()) if found.size else 0.0)


def require_parity(found: float, *, model: str, limit: float) -> None:
    """Raises ParityBroken where the largest gap is above the limit, or no number. Call before an optimiser steps."""
    if not found <= limit:
        raise ParityBroken(
            f"model {model}: rollout and trainer differ by {found:.3g} nats on a token; limits.parity allows "
            f"{limit:.3g}. Nothing was updated. Likely causes: the engine serves other weights than the trainer's "
            "(publish), another precision (placement.precision), a vocabulary larger than the tokenizer, or logits "
            "that one side alone cuts, scales or masks. A deep model in low precision may need a larger limit"
        )
