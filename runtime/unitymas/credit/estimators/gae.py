"""Generalised advantage estimation, on tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unitymas.credit.port import F64, I64, Bools
from unitymas.credit.stats import whitened


@dataclass(frozen=True, slots=True)
class Gae:
    """Baseline: a critic's value of each token, discounted by `gamma` and `lam` per trained token.

    Right for long visits and one rollout per task. As good as its critic: an untrained one only adds noise.
    Tokens outside the mask are passed over: neither their value nor a discount enters.
    Source: arXiv 1506.02438, eq. 16; cases `gae`, and `openrlhf_gae` where the mask has no holes.
    """

    gamma: float | F64 = 1.0
    """One for all sequences, or (sequences,)."""
    lam: float = 1.0

    def token_advantages(self, rewards: F64, values: F64, mask: Bools, units: I64 | None = None) -> tuple[F64, F64]:
        """Advantages and returns, each of shape (sequences, tokens), 0 outside the mask.

        rewards, values, mask: (sequences, tokens), in reward units. units: (sequences,), the sequences whose tokens
        are whitened together; None leaves advantages in reward units. Returns are never whitened: the critic's goal.
        """
        raw = np.zeros_like(values)
        next_value, carried = np.zeros(len(values)), np.zeros(len(values))
        for token in range(values.shape[1] - 1, -1, -1):
            here = mask[:, token]
            delta = rewards[:, token] + self.gamma * next_value - values[:, token]
            carried = np.where(here, delta + self.gamma * self.lam * carried, carried)
            next_value = np.where(here, values[:, token], next_value)
            raw[:, token] = np.where(here, carried, 0.0)
        returns = np.where(mask, raw + values, 0.0)
        return raw if units is None else _whitened(raw, mask, units), returns


def at_last_token(rewards: F64, mask: Bools) -> F64:
    """A reward of each sequence, put on its last trained token: (sequences,) to (sequences, tokens)."""
    last = mask & (np.cumsum(mask[:, ::-1], axis=1)[:, ::-1] == 1)
    return np.where(last, rewards[:, None], 0.0)


def _whitened(raw: F64, mask: Bools, units: I64) -> F64:
    out = np.zeros_like(raw)
    each = np.broadcast_to(units[:, None], mask.shape)[mask]
    out[mask] = whitened(raw[mask], each, np.ones(each.size), np.ones(each.size, dtype=np.bool_))
    return out
