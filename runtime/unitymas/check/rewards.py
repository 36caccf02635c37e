"""Rewards: every expression compiles, and every role that is trained earns something."""

from __future__ import annotations

from collections.abc import Iterator

from unitymas.api.errors import Finding
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.reward import RewardSpecSpec
from unitymas.check.mapping import trained_roles
from unitymas.rewards.compile import compile_rewards
from unitymas.workflow.compile import Seen


def expressions(reward: RewardSpecSpec, seen: Seen) -> Iterator[Finding]:
    """Metrics and rewards name what exists and are numbers; the score is a metric that is one number."""
    _, findings = compile_rewards(reward, **seen)
    yield from (finding for finding in findings.items if finding.check != "later")


def every_trained_role(reward: RewardSpecSpec, mapping: ModelMappingSpec) -> Iterator[Finding]:
    """Every role that is trained gets a reward; of rewards in Python nobody can tell."""
    if reward.python is not None:
        return
    rewarded = {role for part in reward.rewards for role in part.roles}
    for role in trained_roles(mapping):
        if role not in rewarded:
            yield Finding(
                "no-reward",
                "spec.rewards",
                f"none for role `{role}`, which trains model `{mapping.model_of(role)}`",
                f"a reward whose roles name `{role}`",
                f"or freeze the role: `{role}: {{model: {mapping.model_of(role)}, train: false}}` in the ModelMapping",
            )
