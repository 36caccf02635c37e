"""Advantages equal the references' where the definition is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unitymas.api.names import ESTIMATORS, load
from unitymas.credit import Batch, Estimator
from unitymas.credit.estimators.gae import Gae, at_last_token
from unitymas.credit.stats import numbered

CASES = Path(__file__).parents[1] / "cases" / "estimators"
Unit = Literal["none", "group", "all"]
FILES: Mapping[str, tuple[str, Unit]] = {
    "rloo": ("rloo", "none"),
    "rloo_vectorized": ("rloo", "none"),
    "grpo_std": ("grpo", "group"),
    "grpo_no_std_dr": ("dr-grpo", "none"),
    "grpo_vectorized": ("grpo", "group"),
    "reinforce_pp": ("reinforce++", "all"),
    "reinforce_pp_baseline": ("reinforce++-baseline", "all"),
    "drmas_grpo": ("grpo", "group"),
    "drmas_rloo": ("rloo", "none"),
    "drmas_reinforce_pp_baseline": ("reinforce++-baseline", "all"),
}
OPENRLHF: Mapping[str, tuple[str, Unit]] = {
    "rloo": ("rloo", "none"),
    "reinforce_baseline": ("reinforce++-baseline", "all"),
    "group_norm": ("grpo", "group"),
    "dr_grpo": ("dr-grpo", "none"),
    "reinforce": ("reinforce++", "all"),
}

DISCOUNT = "rewards of single tokens, discounted along the reply: a visit has one reward"
LONE = "whitened over lone visits that keep their reward: here they get 0"
KL = "KL inside the reward: offered as a term of the loss"
ROLES = "rewards averaged per trajectory before roles are compared: here every visit counts"
EXCEPTIONS: Mapping[str, str] = {
    "reinforce_pp-02": DISCOUNT,
    "reinforce_pp-04": DISCOUNT,
    "reinforce_pp-06": "one token refused: here a lone visit gets 0",
    "reinforce_pp_baseline-02": LONE,
    "reinforce_pp_baseline-06": LONE,
    "openrlhf_advantages-04": KL,
    "openrlhf_advantages-13": KL,
    "openrlhf_advantages-16": KL,
    "openrlhf_gae-03": "holes of the mask lead a value of 0 in: here they are passed over",
    **dict.fromkeys([f"drmas_grpo-{number:02}" for number in (3, 4, 7, 8, 12, 15, 16, 19)], ROLES),
    **dict.fromkeys([f"drmas_rloo-{number:02}" for number in (2, 6, 10)], ROLES),
    **dict.fromkeys([f"drmas_reinforce_pp_baseline-{number:02}" for number in (2, 4, 10)], ROLES),
}


@dataclass(frozen=True)
class Case:
    file: str
    id: str
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    expected: Mapping[str, Any]
    atol: float
    rtol: float

    def array(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.asarray(self.inputs[name], dtype=np.float64)

    @property
    def mask(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return self.array("action_mask" if self.file.startswith("openrlhf") else "response_mask") > 0

    @property
    def rewards(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        rewards = self.array("rewards" if self.file.startswith("openrlhf") else "token_level_rewards")
        return rewards if rewards.ndim == 1 else rewards.sum(axis=1)

    @property
    def groups(self) -> list[tuple[object, ...]]:
        if "uid" in self.inputs:
            return list(zip(self.inputs["uid"], self.inputs["agent_id"], strict=True))
        return [(group,) for group in self.inputs.get("group", range(len(self.rewards)))]

    @property
    def degrees(self) -> float:
        """OpenRLHF whitens with the std over n tokens, verl and we with the sample std, over n - 1."""
        whitened = self.params.get("estimator") in ("reinforce", "reinforce_baseline", "gae")
        tokens = self.mask.sum()
        return float(np.sqrt((tokens - 1) / tokens)) if whitened else 1.0

    @property
    def whole_group_equal(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        members: dict[tuple[object, ...], set[float]] = {}
        for group, reward in zip(self.groups, self.rewards.tolist(), strict=True):
            members.setdefault(group, set()).add(reward)
        return np.asarray([len(members[group]) == 1 for group in self.groups])


def cases(files: Sequence[str]) -> list[Case]:
    found: list[Case] = []
    for file in files:
        content: dict[str, Any] = json.loads((CASES / f"{file}.json").read_text())
        found += [
            Case(file, case["id"], case["inputs"], case["params"], case["expected"], **content["tolerance"])
            for case in content["cases"]
        ]
    return found


def is_gae(case: Case) -> bool:
    return case.file in ("gae", "openrlhf_gae") or case.params.get("estimator") == "gae"


EVERY = cases([*FILES, "openrlhf_advantages", "gae", "openrlhf_gae"])
MATCHED = [case for case in EVERY if case.id not in EXCEPTIONS]
VISITS = [case for case in MATCHED if not is_gae(case)]
TOKENS = [case for case in MATCHED if is_gae(case)]


def advantages(case: Case) -> np.ndarray[Any, np.dtype[np.float64]]:
    name, unit = FILES[case.file] if case.file in FILES else OPENRLHF[case.params["estimator"]]
    if not case.params.get("norm_adv_by_std_in_grpo", True):
        name, unit = "dr-grpo", "none"
    visits = len(case.rewards)
    groups = numbered(case.groups)
    estimator = load(ESTIMATORS, name)()
    assert isinstance(estimator, Estimator)
    return estimator.advantages(
        Batch(
            rewards=case.rewards,
            groups=groups,
            tokens=case.mask.sum(axis=1),
            units=groups if unit == "group" else np.zeros(visits, dtype=np.int64),
            divided=np.full(visits, unit != "none"),
            counted=np.full(visits, True),
            foreign=np.full(visits, False),
        )
    )


@pytest.mark.parametrize("case", VISITS, ids=lambda case: case.id)
def test_advantages_equal_the_reference(case: Case) -> None:
    got = np.where(case.mask, advantages(case)[:, None], 0.0)
    grouped = "group" in case.inputs or "uid" in case.inputs
    if grouped and case.params.get("estimator") != "reinforce":
        ours = case.whole_group_equal  # lone visits and equal rewards: exactly 0 here, whatever the reference keeps
        assert not got[ours].any()
    else:
        ours = np.zeros(len(case.rewards), dtype=np.bool_)
    expected = np.where(case.mask, np.asarray(case.expected["advantages"]), 0.0) * case.degrees
    assert_allclose(got[~ours], expected[~ours], atol=case.atol, rtol=case.rtol)


@pytest.mark.parametrize("case", TOKENS, ids=lambda case: case.id)
def test_gae_equals_the_reference(case: Case) -> None:
    gae = Gae(gamma=case.params["gamma"], lam=case.params.get("lam", case.params.get("lambd")))
    rewards = case.array("token_level_rewards" if case.file == "gae" else "rewards")
    units = None if case.file == "openrlhf_gae" else np.zeros(len(rewards), dtype=np.int64)
    token_rewards = rewards if rewards.ndim == 2 else at_last_token(rewards, case.mask)
    got, returns = gae.token_advantages(token_rewards, case.array("values"), case.mask, units)
    expected = np.asarray(case.expected["advantages_whitened" if case.file == "gae" else "advantages"]) * case.degrees
    assert_allclose(got[case.mask], expected[case.mask], atol=case.atol, rtol=case.rtol)
    assert_allclose(returns[case.mask], np.asarray(case.expected["returns"])[case.mask], atol=case.atol, rtol=case.rtol)
    assert not got[~case.mask].any()


def test_every_exception_is_a_case() -> None:
    assert EXCEPTIONS.keys() <= {case.id for case in EVERY}
