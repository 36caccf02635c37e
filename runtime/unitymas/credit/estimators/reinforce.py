"""REINFORCE++: whitened over the tokens of the batch."""

from __future__ import annotations

import numpy as np

from unitymas.credit.port import F64, Batch
from unitymas.credit.stats import centred, varied, whitened


class ReinforcePlusPlus:
    """Baseline: mean reward over the tokens of the unit of `scale` (the role's batch by default); no groups.

    Right where groups are small or irregular, even single visits. Where tasks differ in difficulty, the baseline
    leaves that in: easy tasks are reinforced whatever was done. A unit of equal rewards, or of one visit, gets 0.
    Returns (visits,): multiples of the unit's std; with scale none, reward units.
    Source: arXiv 2501.03262, discount 1, no KL in the reward; cases `reinforce_pp`.
    """

    def advantages(self, batch: Batch) -> F64:
        """(reward - mean of the unit's tokens) over their std."""
        weights = np.where(batch.trained, batch.tokens, 0).astype(np.float64)
        return np.where(batch.trained, whitened(batch.rewards, batch.units, weights, batch.divided), 0.0)


class ReinforcePlusPlusBaseline:
    """Baseline: mean reward of the group; then whitened over the tokens of the unit of `scale`.

    Right for groups of any size with one common step size. A group of equal rewards gets 0 and counts in the std; in
    verl 0.9.1 whitening shifts it off 0. Where long replies earn less than short ones, so do the other groups shift.
    Returns (visits,): multiples of the unit's std; with scale none, reward units, not shifted.
    Source: arXiv 2501.03262; cases `reinforce_pp_baseline`, `drmas_reinforce_pp_baseline`.
    """

    def advantages(self, batch: Batch) -> F64:
        """(reward - group mean), whitened within the unit."""
        values = centred(batch)
        weights = np.where(batch.trained, batch.tokens, 0).astype(np.float64)
        white = np.where(batch.divided, whitened(values, batch.units, weights, batch.divided), values)
        return np.where(batch.trained & varied(batch.rewards, batch.groups, batch.counted), white, 0.0)
