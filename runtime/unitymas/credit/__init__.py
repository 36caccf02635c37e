"""Credit assignment in NumPy: comparison groups, returns, advantages, loss weights. No torch, no effects."""

from unitymas.credit.advantage import Advantages, advantages, loss_weights
from unitymas.credit.groups import Evaluate, group_key, rows
from unitymas.credit.port import Batch, Estimator, TokenEstimator
from unitymas.credit.returns import returns, to_go
from unitymas.credit.weights import token_weights

__all__ = [
    "Advantages",
    "Batch",
    "Estimator",
    "Evaluate",
    "TokenEstimator",
    "advantages",
    "group_key",
    "loss_weights",
    "returns",
    "rows",
    "to_go",
    "token_weights",
]
