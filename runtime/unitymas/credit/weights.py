"""How much each token weighs in the loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unitymas.api.algorithm import LossWeight
from unitymas.credit.port import F64, I64, Bools
from unitymas.credit.stats import numbered, total


def token_weights(tokens: I64, roles: I64, trajectories: I64, rules: Sequence[LossWeight]) -> F64:
    """Weight of each single token of a visit, shape (visits,); over all tokens of the update they sum to 1.

    Roles share the loss, within a role its trajectories, within those the tokens, evenly: `equal` gives every sharer
    the same, `tokens` gives it by its tokens (both `tokens` is the plain mean over tokens). What has none has no share.
    tokens: (visits,), trained ones. roles, trajectories: (visits,), numbers. rules: (visits,), of the visit's role.
    """
    pairs = numbered(zip(roles.tolist(), trajectories.tolist(), strict=True))
    held = total(tokens, pairs)
    within = _share(tokens, pairs, roles, np.asarray([rule.trajectory == "equal" for rule in rules], dtype=np.bool_))
    among = _share(tokens, roles, np.zeros_like(roles), np.asarray([rule.role == "equal" for rule in rules], np.bool_))
    # roles that mix `equal` and `tokens` need not add up to 1
    raw = np.divide(among * within, held, out=np.zeros(len(tokens)), where=tokens > 0)
    return raw / max(float(raw @ tokens), np.finfo(np.float64).tiny)


def _share(tokens: I64, sharers: I64, wholes: I64, equal: Bools) -> F64:
    """The part of its whole that a visit's sharer gets: (visits,)."""
    held, whole = total(tokens, sharers), total(tokens, wholes)
    spoke = np.flatnonzero(tokens)
    one_each = np.zeros(len(tokens), dtype=np.bool_)
    one_each[spoke[np.unique(sharers[spoke], return_index=True)[1]]] = True
    numerator, denominator = np.where(equal, 1.0, held), np.where(equal, total(one_each, wholes), whole)
    return np.divide(numerator, denominator, out=np.zeros(len(tokens)), where=denominator > 0)
