"""REINFORCE with a leave-one-out baseline."""

from __future__ import annotations

import numpy as np

from unitymas.credit.port import F64, Batch
from unitymas.credit.stats import centred, scaled, total


class Rloo:
    """Baseline: mean reward of the other visits in the group.

    Right for groups of 2 to 8: unbiased, needs no critic. A lone visit gets 0 (verl 0.9.1 keeps its reward).
    Returns (visits,): reward units where scale is none, else multiples of the unit's std.
    Source: arXiv 2402.14740; cases `rloo`, `rloo_vectorized`, `drmas_rloo`.
    """

    def advantages(self, batch: Batch) -> F64:
        """(n / (n - 1)) (reward - group mean), over the unit's std."""
        n = total(batch.counted, batch.groups)
        return scaled(centred(batch) * n / np.maximum(n - 1.0, 1.0), batch)
