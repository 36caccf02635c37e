"""The losses, as sums over tokens that carry their own weights; verl's own functions where it has them.

Each is a function of tensors of shape (tokens,). They are held against the values of verl, OpenRLHF and TRL in
`tests/cases/losses`.
"""

# verl is untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch
from tensordict import TensorDict
from verl.trainer.ppo.core_algos import compute_value_loss, get_policy_loss_fn, kl_penalty
from verl.workers.config import FSDPActorConfig

from unitymas.api.algorithm import Loss, RolloutCorrection
from unitymas.models.verl.batch import trained

FAR = 20.0
"""Log-ratios beyond this, in nats, are cut before they are exponentiated."""
Metrics = dict[str, float]
"""Sums over tokens by name (`<name>`), or maxima (`<name>_max`)."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the policy loss reads of some tokens; every tensor is (tokens,)."""

    log_prob: torch.Tensor
    """Of the trainer, with gradient."""
    old_log_prob: torch.Tensor
    """Of the trainer before the update."""
    advantage: torch.Tensor
    weight: torch.Tensor
    """Not negative."""
    correction: torch.Tensor | None = None
    """Importance ratio between old trainer and rollout."""
    ref_log_prob: torch.Tensor | None = None
    """Of the frozen first weights; read where the coefficient is positive."""
    entropy: torch.Tensor | None = None
    """With gradient; read where the coefficient is positive."""


def policy_loss(tokens: Tokens, rule: Loss) -> tuple[torch.Tensor, Metrics]:
    """Weighted sum of clipped surrogate, KL penalty and entropy bonus; a scalar.

    The surrogate with dual clip is positively homogeneous in the advantage, so a weight multiplies the advantage.
    """
    surrogate, found = cast(Any, get_policy_loss_fn("vanilla"))(
        old_log_prob=tokens.old_log_prob,
        log_prob=tokens.log_prob,
        advantages=tokens.advantage * tokens.weight,
        response_mask=torch.ones_like(tokens.weight),
        loss_agg_mode="token-sum",
        config=_clip(rule.clip_low, rule.clip_high, rule.dual_clip),
        rollout_is_weights=tokens.correction,
    )
    loss, count = surrogate, tokens.weight.numel()
    clipped = found["actor/pg_clipfrac"] + found["actor/pg_clipfrac_lower"]
    metrics = {"clip_fraction": clipped * count, "kl": found["actor/ppo_kl"] * count}
    if rule.kl > 0 and tokens.ref_log_prob is not None:
        penalty = cast(Any, kl_penalty)(tokens.log_prob, tokens.ref_log_prob, rule.kl_estimator)
        loss = loss + rule.kl * (penalty * tokens.weight).sum()
        metrics["ref_kl"] = float(penalty.detach().sum())
    if rule.entropy > 0 and tokens.entropy is not None:
        loss = loss - rule.entropy * (tokens.entropy * tokens.weight).sum()
    return loss, metrics


def correction_weights(old: torch.Tensor, rollout: torch.Tensor, rule: RolloutCorrection) -> torch.Tensor | None:
    """min(exp(old - rollout), cap) without gradient, or None; truncated importance sampling, per token."""
    if rule.mode == "none":
        return None
    return torch.exp((old - rollout).detach().clamp(-FAR, FAR)).clamp(max=rule.cap)


def value_loss(
    predicted: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, *, clip: float, tokens: int
) -> tuple[torch.Tensor, float]:
    """Half the larger squared error of the predicted and the clipped values, summed and divided by `tokens`.

    Also the share of these tokens that were clipped.
    """
    loss, clipped = compute_value_loss(
        vpreds=predicted,
        returns=returns,
        values=old,
        response_mask=torch.ones_like(returns),
        cliprange_value=clip,
        batch_num_tokens=tokens,
    )
    return loss, float(clipped)


@dataclass(frozen=True, slots=True)
class PolicyObjective:
    """The loss of one forward pass as verl calls it; picklable."""

    roles: Sequence[str]
    rules: Mapping[str, Loss]
    correction: RolloutCorrection
    scale: float
    """Number of optimiser steps that share the rows: each then sees a loss of the same size."""

    def __call__(
        self, model_output: Mapping[str, torch.Tensor], data: TensorDict, dp_group: object = None
    ) -> tuple[torch.Tensor, Metrics]:
        log_prob = trained(model_output["log_probs"], data)
        rollout = trained(data["rollout_log_probs"], data)
        # with one optimiser step the policy before the update is this very forward pass
        old = trained(data["old_log_probs"], data) if "old_log_probs" in data else log_prob.detach()
        correction = correction_weights(old, rollout, self.correction)
        role_of = trained(data["roles"], data)
        loss = log_prob.new_zeros(())
        metrics: Metrics = _of_tokens(log_prob.detach(), rollout, correction)
        for index, role in enumerate(self.roles):
            where = role_of == index
            if not bool(where.any()):
                continue
            tokens = Tokens(
                log_prob=log_prob[where],
                old_log_prob=old[where],
                advantage=trained(data["advantages"], data)[where],
                weight=trained(data["weights"], data)[where] * self.scale,
                correction=None if correction is None else correction[where],
                ref_log_prob=trained(data["ref_log_probs"], data)[where] if "ref_log_probs" in data else None,
                entropy=trained(model_output["entropy"], data)[where] if "entropy" in model_output else None,
            )
            part, of_role = policy_loss(tokens, self.rules[role])
            loss = loss + part
            for name, value in of_role.items():
                metrics[name] = metrics.get(name, 0.0) + value
                metrics[f"{role}/{name}"] = value
            metrics[f"{role}/tokens"] = float(where.sum())
        return loss, metrics


@dataclass(frozen=True, slots=True)
class ValueObjective:
    """The critic's loss of one forward pass as verl calls it; picklable."""

    clip: float
    tokens: int
    """Trained tokens of the whole optimiser step."""

    def __call__(
        self, model_output: Mapping[str, torch.Tensor], data: TensorDict, dp_group: object = None
    ) -> tuple[torch.Tensor, Metrics]:
        predicted = trained(model_output["values"], data)
        old, returns = trained(data["values"], data), trained(data["returns"], data)
        loss, clipped = value_loss(predicted, old, returns, clip=self.clip, tokens=self.tokens)
        return loss, {"clip_fraction": clipped * predicted.numel(), "tokens": float(predicted.numel())}


def _of_tokens(log_prob: torch.Tensor, rollout: torch.Tensor, correction: torch.Tensor | None) -> Metrics:
    gap = (log_prob - rollout).abs()
    metrics = {
        "tokens": float(gap.numel()),
        "parity": float(gap.sum()),
        "parity_max": float(gap.max()),
        # sampled from the policy itself, so this is an estimate of its entropy
        "entropy": float(-log_prob.sum()),
    }
    return metrics if correction is None else {**metrics, "tis": float(correction.sum())}


@cache
def _clip(low: float, high: float, dual: float) -> FSDPActorConfig:
    return FSDPActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        use_torch_compile=False,
        clip_ratio_low=low,
        clip_ratio_high=high,
        clip_ratio_c=dual,
    )
