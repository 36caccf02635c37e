"""How rewards become updates: estimator, comparison groups, scale, loss, corrections; all of it per role if wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import Field

from unitymas.api.base import Name, Spec

EstimatorName = Literal["rloo", "grpo", "dr-grpo", "reinforce++", "reinforce++-baseline", "remax", "gae", "ema"]
Scale = Literal["none", "group", "role", "model"]
DEFAULT_SCALE: Mapping[str, Scale] = {
    "rloo": "role",
    "reinforce++": "role",
    "reinforce++-baseline": "role",
    "gae": "role",
    "ema": "role",
    "grpo": "group",
    "dr-grpo": "none",
    "remax": "none",
}
UNGROUPED = frozenset({"reinforce++", "gae", "ema", "remax"})
"""Estimators whose baseline is not the comparison group."""


class Compare(Spec):
    """Which visits form each other's baseline."""

    by: list[str] = Field(default_factory=lambda: ["task", "role", "visit"], min_length=1, max_length=16)
    """task, role, visit, trajectory, node, the name of a loop or forEach, or CEL over `visit`."""
    min_group: int = Field(default=2, ge=1)
    """A smaller group gets zero advantage and is counted."""


class LossWeight(Spec):
    """Who weighs what in the loss."""

    role: Literal["equal", "tokens"] = "equal"
    """Roles weigh the same, or by their tokens."""
    trajectory: Literal["equal", "tokens"] = "equal"
    """Within a role, trajectories weigh the same, or by their tokens."""


class Loss(Spec):
    """The policy loss."""

    policy: Literal["clip"] = "clip"
    """Clipped surrogate of PPO (arXiv 1707.06347, eq. 7), with dual clip (arXiv 1912.09729)."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.2, gt=0)
    """Larger than clipLow is clip-higher (arXiv 2503.14476)."""
    dual_clip: float = Field(default=3.0, gt=1)
    """Bounds the loss of tokens with negative advantage."""
    weight: LossWeight = Field(default_factory=LossWeight)
    kl: float = Field(default=0.0, ge=0)
    """Coefficient of the KL to the frozen first weights; 0 keeps no reference model."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    entropy: float = Field(default=0.0, ge=0)
    """Coefficient of the entropy bonus."""


class RolloutCorrection(Spec):
    """Corrects for rollout and trainer not being the same policy."""

    mode: Literal["none", "tis"] = "tis"
    """Truncated importance sampling per token."""
    cap: float = Field(default=2.0, gt=0)
    """Upper bound of a token's importance ratio; dimensionless."""


class RoleAlgorithm(Spec):
    """What one role does differently; absent fields are the run's."""

    compare: Compare | None = None
    returns: Literal["own", "toGo"] | None = None
    gamma: float | None = Field(default=None, gt=0, le=1)
    scale: Scale | None = None
    loss: Loss | None = None


class Algorithm(Spec):
    """From rewards to an update."""

    estimator: EstimatorName = "rloo"
    rollouts_per_task: int = Field(default=8, ge=1)
    compare: Compare = Field(default_factory=Compare)
    returns: Literal["own", "toGo"] = "own"
    """A visit's own reward, or also the later ones of its role."""
    gamma: float = Field(default=1.0, gt=0, le=1)
    """Discount per visit of toGo; per token of gae."""
    lam: float = Field(default=1.0, ge=0, le=1)
    """Lambda of gae."""
    scale: Scale | None = None
    """The std that divides; each estimator has its default."""
    loss: Loss = Field(default_factory=Loss)
    rollout_correction: RolloutCorrection = Field(default_factory=RolloutCorrection)
    epochs: int = Field(default=1, ge=1)
    """Passes over a step's rows."""
    mini_batches: int = Field(default=1, ge=1)
    """Optimiser steps per pass."""
    roles: dict[Name, RoleAlgorithm] = Field(default_factory=dict[Name, RoleAlgorithm])

    def for_role(self, role: str) -> Algorithm:
        """The run's algorithm with this role's own fields laid over it, field by field."""
        own = self.roles.get(role)
        if own is None:
            return self
        base = self.model_dump(by_alias=True, exclude_unset=True, exclude={"roles"})
        over = own.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
        return Algorithm.model_validate(_merge(base, over))

    @property
    def divisor(self) -> Scale:
        """The scale in force."""
        return self.scale or DEFAULT_SCALE[self.estimator]


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        merged[key] = _merge(cast(dict[str, Any], below), cast(dict[str, Any], value)) if both else value
    return merged
