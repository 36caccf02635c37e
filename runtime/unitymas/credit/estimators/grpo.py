"""GRPO and Dr. GRPO: the group's mean is the baseline."""

from __future__ import annotations

from unitymas.credit.port import F64, Batch
from unitymas.credit.stats import centred, scaled


class Grpo:
    """Baseline: mean reward of the group, the visit included; scale is the group's std.

    Right for groups of 8 and more. In small groups the std is noise, and a group that nearly always succeeds or
    fails gets the largest steps. A lone visit gets 0 (verl 0.9.1 keeps its reward).
    Returns (visits,): multiples of the unit's std, by default the group's.
    Source: arXiv 2402.03300, eq. 3; cases `grpo_std`, `grpo_vectorized`, `drmas_grpo`.
    """

    def advantages(self, batch: Batch) -> F64:
        """(reward - group mean) over the unit's std."""
        return scaled(centred(batch), batch)


class DrGrpo(Grpo):
    """GRPO that is not divided by default: hard and easy groups step by what they earned.

    Right where all groups' rewards are on one scale. Shorter by (n - 1) / n than RLOO. The paper's other half, not
    dividing by each reply's length, is the loss weight `{role: tokens, trajectory: tokens}`.
    Returns (visits,): reward units.
    Source: arXiv 2503.20783; cases `grpo_no_std_dr`, `drmas_grpo`.
    """
