"""Losses and their gradients equal verl's, OpenRLHF's and TRL's where the definition is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unitymas.api.algorithm import Loss, RolloutCorrection
from unitymas.models.verl.environment import prepare

prepare()

from unitymas.models.verl.losses import Tokens, correction_weights, policy_loss, value_loss  # noqa: E402

pytestmark = pytest.mark.integration
CASES = Path(__file__).parents[1] / "cases" / "losses"
NO_DUAL_CLIP = 1e9
KL_NAMES = {"k1": "k1", "kl": "k1", "k2": "k2", "mse": "k2", "k3": "k3", "low_var_kl": "k3"}
MEANS = {
    "grpo": "seq-mean-token-mean",
    "bnpo": "token-mean",
    "dapo": "token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
}
"""Loss types of TRL by what they do to the tokens."""

KIND = "an estimator of KL that is not offered"
SEQUENCE = "a ratio of whole sequences: ours is of tokens"
LOSS = "another policy loss: ours is the clipped surrogate"
BOUND = "bounds the ratio of tokens with positive advantage too"
NORMALISED = "weights divided by their mean: ours are the ratios themselves"
BAND = "weights outside a band are 0 or lifted: ours have an upper bound only"
TEXT = "a threshold that is no number, refused: ours is one by its type"
REFUSED = "verl's refusal of a missing argument that weights do not have"
EXCEPTIONS: Mapping[str, str] = {
    **dict.fromkeys([f"kl_penalty-{number:02}" for number in (3, 8, 9, 18, 27, 30, 35, 36)], KIND),
    **dict.fromkeys(
        [f"rollout_is_weights-{number:02}" for number in (8, 11, 12, 19, 22, 28, 30, 32, 35, 36)], SEQUENCE
    ),
    **dict.fromkeys([f"rollout_is_weights-{number:02}" for number in (7, 15, 23, 39)], NORMALISED),
    **dict.fromkeys([f"rollout_is_weights-{number:02}" for number in (5, 13)], BAND),
    **dict.fromkeys([f"rollout_is_weights-{number:02}" for number in (42, 43, 45, 46)], TEXT),
    **dict.fromkeys([f"loss_aggregation-{number:02}" for number in (18, 36)], REFUSED),
    **dict.fromkeys([f"openrlhf_policy_loss-{number:02}" for number in (6, 7, 8)], BAND),
    **dict.fromkeys([f"trl_grpo_loss-{number:02}" for number in (3, 8)], SEQUENCE),
    **dict.fromkeys([f"trl_grpo_loss-{number:02}" for number in (4, 9, 14, 19)], BOUND),
    **dict.fromkeys([f"trl_grpo_loss-{number:02}" for number in (21, 22, 24, 25, 26, 27, 28, 29, 30, 32, 34)], LOSS),
    "value_loss-03": "a mean of means: the critic's loss is the mean over tokens",
    "openrlhf_value_loss-02": "no clip: ours always clips",
}


@dataclass(frozen=True)
class Case:
    id: str
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    expected: Mapping[str, Any]
    tolerance: Mapping[str, float]

    def assert_close(self, found: Any, expected: Any) -> None:
        """Equal within the file's tolerance."""
        assert_allclose(found, expected, rtol=self.tolerance["rtol"], atol=self.tolerance["atol"])

    def tensor(self, name: str, mask: torch.Tensor) -> torch.Tensor:
        """An input at the trained tokens, (tokens,)."""
        return torch.tensor(self.inputs[name])[mask]


def cases(file: str) -> Sequence[Any]:
    content = json.loads((CASES / f"{file}.json").read_text())
    return [
        pytest.param(Case(raw["id"], raw["inputs"], raw["params"], raw["expected"], content["tolerance"]), id=raw["id"])
        for raw in content["cases"]
        if raw["id"] not in EXCEPTIONS and raw.get("parity", True)
    ]


def weights(mask: torch.Tensor, mode: str, params: Mapping[str, Any]) -> torch.Tensor:
    """What a way of aggregating gives each token to weigh, (tokens,)."""
    sizes = mask.sum(1, keepdim=True).expand(mask.shape)[mask].float()
    processes = params.get("dp_size", 1)
    sequences = params.get("global_batch_size") or int((mask.sum(1) > 0).sum())
    longest = params.get("loss_scale_factor") or mask.shape[1]
    each = torch.ones_like(sizes)
    return (
        processes
        * {
            "token-mean": each / (params.get("batch_num_tokens") or mask.sum()),
            "token-sum": each,
            "seq-mean-token-sum": each / sequences,
            "seq-mean-token-sum-norm": each / sequences / longest,
            "seq-mean-token-mean": each / sizes / sequences,
        }[mode]
    )


def loss_of(tokens: Tokens, **rule: Any) -> tuple[float, Any, Mapping[str, float]]:
    """Loss, its gradient by the log-probs, and metrics."""
    tokens.log_prob.requires_grad_(True)
    loss, metrics = policy_loss(tokens, Loss.model_validate({"dualClip": NO_DUAL_CLIP, **rule}))
    loss.backward()
    assert tokens.log_prob.grad is not None
    return float(loss.detach()), tokens.log_prob.grad.numpy(), metrics


@pytest.mark.parametrize("case", cases("ppo_policy_loss"))
def test_the_policy_loss_and_its_gradient_are_verls(case: Case) -> None:
    mask = torch.tensor(case.inputs["response_mask"]).bool()
    given = "rollout_is_weights" in case.inputs
    tokens = Tokens(
        log_prob=case.tensor("log_prob", mask),
        old_log_prob=case.tensor("old_log_prob", mask),
        advantage=case.tensor("advantages", mask),
        weight=weights(mask, case.params["loss_agg_mode"], {}),
        correction=case.tensor("rollout_is_weights", mask) if given else None,
    )
    low, high, dual = (case.params[f"clip_ratio_{name}"] for name in ("low", "high", "c"))
    loss, gradient, metrics = loss_of(tokens, clipLow=low, clipHigh=high, dualClip=dual)
    case.assert_close(loss, case.expected["loss"])
    case.assert_close(gradient, np.asarray(case.expected["grad_wrt_log_prob"])[mask.numpy()])
    upstream = case.expected["metrics"]
    clipped = upstream["actor/pg_clipfrac"] + upstream["actor/pg_clipfrac_lower"]
    case.assert_close(metrics["clip_fraction"] / int(mask.sum()), clipped)
    case.assert_close(metrics["kl"] / int(mask.sum()), upstream["actor/ppo_kl"])


@pytest.mark.parametrize("case", cases("kl_penalty"))
def test_the_kl_penalty_and_its_gradient_are_verls(case: Case) -> None:
    log_prob, reference = (torch.tensor(case.inputs[name]).flatten() for name in ("logprob", "ref_logprob"))
    nothing = torch.zeros_like(log_prob)
    tokens = Tokens(log_prob, log_prob.clone(), nothing, torch.ones_like(log_prob), ref_log_prob=reference)
    loss, gradient, metrics = loss_of(tokens, kl=1.0, klEstimator=KL_NAMES[case.params["estimator"]])
    case.assert_close(loss, np.sum(case.expected["kl"]))
    case.assert_close(metrics["ref_kl"], np.sum(case.expected["kl"]))
    case.assert_close(gradient, np.ravel(case.expected["grad_wrt_logprob_of_sum"]))


@pytest.mark.parametrize("case", cases("rollout_is_weights"))
def test_rollout_correction_is_verls_truncated_importance_sampling(case: Case) -> None:
    mask = torch.tensor(case.inputs["response_mask"]).bool()
    ratio = case.tensor("log_ratio_train_minus_rollout", mask)
    rule = RolloutCorrection.model_validate({"mode": "tis", "cap": case.params["threshold"]})
    found = correction_weights(ratio, torch.zeros_like(ratio), rule)
    assert found is not None
    case.assert_close(found.numpy(), np.asarray(case.expected["weights"])[mask.numpy()])


@pytest.mark.parametrize("case", cases("loss_aggregation"))
def test_every_aggregation_of_verl_is_a_weight_of_tokens(case: Case) -> None:
    mask = torch.tensor(case.inputs["loss_mask"]).bool()
    losses = case.tensor("loss_mat", mask)
    log_prob = torch.zeros_like(losses)
    weight = weights(mask, case.params["loss_agg_mode"], case.params)
    loss, _, _ = loss_of(Tokens(log_prob, log_prob.clone(), -losses, weight))
    case.assert_close(loss, case.expected["loss"])


@pytest.mark.parametrize("case", cases("entropy_loss"))
def test_the_entropy_bonus_is_verls(case: Case) -> None:
    mask = torch.tensor(case.inputs["response_mask"]).bool()
    entropy = torch.distributions.Categorical(logits=case.tensor("logits", mask)).entropy()
    nothing = torch.zeros_like(entropy)
    tokens = Tokens(nothing.clone(), nothing, nothing, weights(mask, case.params["loss_agg_mode"], {}), entropy=entropy)
    loss, _, _ = loss_of(tokens, entropy=1.0)
    case.assert_close(-loss, case.expected["entropy"])


@pytest.mark.parametrize("case", cases("openrlhf_policy_loss"))
def test_the_policy_loss_is_openrlhfs(case: Case) -> None:
    mask = torch.tensor(case.inputs["action_mask"]).bool()
    mode = "token-mean" if case.params.get("token_level_loss", True) else "seq-mean-token-mean"
    tokens = Tokens(
        log_prob=case.tensor("log_probs", mask),
        old_log_prob=case.tensor("old_log_probs", mask),
        advantage=case.tensor("advantages", mask),
        weight=weights(mask, mode, {}),
    )
    loss, gradient, _ = loss_of(tokens, dualClip=case.params.get("dual_clip", NO_DUAL_CLIP))
    case.assert_close(loss, case.expected["loss"])
    case.assert_close(gradient, np.asarray(case.expected["grad_wrt_log_probs"])[mask.numpy()])


@pytest.mark.parametrize("case", cases("trl_grpo_loss"))
def test_the_policy_loss_with_kl_is_trls(case: Case) -> None:
    mask = torch.tensor(case.inputs["completion_mask"]).bool()
    tokens = Tokens(
        log_prob=case.tensor("per_token_logps", mask),
        old_log_prob=case.tensor("old_per_token_logps", mask),
        advantage=torch.tensor(case.inputs["advantages"])[:, None].expand(mask.shape)[mask],
        weight=weights(mask, MEANS[case.params["loss_type"]], {}),
        ref_log_prob=case.tensor("ref_per_token_logps", mask),
    )
    rule = {"clipLow": case.params["epsilon_low"], "clipHigh": case.params["epsilon_high"], "kl": case.params["beta"]}
    loss, gradient, _ = loss_of(tokens, **rule)
    case.assert_close(loss, case.expected["loss"])
    case.assert_close(gradient, np.asarray(case.expected["grad_wrt_logps"])[mask.numpy()])


@pytest.mark.parametrize("case", cases("value_loss"))
def test_the_value_loss_is_verls(case: Case) -> None:
    mask = torch.tensor(case.inputs["response_mask"]).bool()
    predicted, old, returns = (case.tensor(name, mask) for name in ("vpreds", "values", "returns"))
    count = int(mask.sum())
    loss, clipped = value_loss(predicted, old, returns, clip=case.params["cliprange_value"], tokens=count)
    case.assert_close(float(loss), case.expected["vf_loss"])
    case.assert_close(clipped, case.expected["vf_clipfrac"])


@pytest.mark.parametrize("case", cases("openrlhf_value_loss"))
def test_the_value_loss_is_openrlhfs(case: Case) -> None:
    mask = torch.tensor(case.inputs["action_mask"]).bool()
    predicted, old, returns = (case.tensor(name, mask) for name in ("values", "old_values", "returns"))
    loss, _ = value_loss(predicted, old, returns, clip=case.params["clip_eps"], tokens=int(mask.sum()))
    case.assert_close(float(loss), case.expected["loss"])


def test_every_exception_is_a_case() -> None:
    known = {raw["id"] for file in CASES.glob("*.json") for raw in json.loads(file.read_text())["cases"]}
    assert EXCEPTIONS.keys() <= known
