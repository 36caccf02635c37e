"""Loss weights: who shares what."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unitymas.api.algorithm import LossWeight
from unitymas.credit import token_weights
from unitymas.credit.port import F64

Visits = list[tuple[int, int, int]]
visits = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.integers(0, 4)), max_size=20)
rule = st.builds(LossWeight, role=st.sampled_from(["equal", "tokens"]), trajectory=st.sampled_from(["equal", "tokens"]))


def weigh(rows: Visits, rules: dict[int, LossWeight]) -> F64:
    tokens, roles, trajectories = np.asarray(rows, dtype=np.int64).reshape(len(rows), 3).T
    return token_weights(tokens, roles, trajectories, [rules[role] for _, role, _ in rows])


def same(role: str, trajectory: str) -> dict[int, LossWeight]:
    return dict.fromkeys(range(4), LossWeight.model_validate({"role": role, "trajectory": trajectory}))


@given(rows=visits, rules=st.lists(rule, min_size=4, max_size=4))
def test_the_tokens_of_an_update_weigh_one_together(rows: Visits, rules: list[LossWeight]) -> None:
    weights = weigh(rows, dict(enumerate(rules)))
    tokens = np.asarray([tokens for tokens, _, _ in rows])
    assert (weights >= 0).all()
    assert not weights[tokens == 0].any()
    assert_allclose(float((weights * tokens).sum()), 1.0 if tokens.sum() else 0.0, atol=1e-12)


@given(rows=visits)
def test_weights_by_tokens_are_the_token_mean(rows: Visits) -> None:
    tokens = np.asarray([tokens for tokens, _, _ in rows])
    expected = np.where(tokens > 0, 1.0 / max(int(tokens.sum()), 1), 0.0)
    assert_allclose(weigh(rows, same("tokens", "tokens")), expected, atol=1e-12)


def test_equal_roles_then_equal_trajectories_whatever_their_length() -> None:
    rows = [(10, 0, 0), (30, 0, 0), (5, 0, 1), (2, 1, 0)]
    # role 0: two trajectories of a quarter each; role 1: one of a half
    assert_allclose(weigh(rows, same("equal", "equal")), [0.25 / 40, 0.25 / 40, 0.25 / 5, 0.5 / 2])


def test_within_equal_roles_trajectories_may_weigh_by_tokens() -> None:
    assert_allclose(weigh([(10, 0, 0), (30, 0, 1), (1, 1, 0)], same("equal", "tokens")), [0.5 / 40, 0.5 / 40, 0.5])


def test_a_role_without_tokens_takes_no_share() -> None:
    assert_allclose(weigh([(4, 0, 0), (0, 1, 0)], same("equal", "equal")), [0.25, 0.0])
