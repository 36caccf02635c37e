"""Rows become one row of tokens per call, each token with its visit's advantage and weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from unitymas.api.algorithm import Algorithm
from unitymas.api.records import Row
from unitymas.models.buffer import Sample
from unitymas.models.lessons import lesson
from unitymas.models.rows import F32, TokenRow


def held(**sizes: int) -> dict[str, tuple[Sample, float]]:
    return {
        call: (Sample(np.arange(3), np.arange(size), np.full(size, -1.0, np.float32), 0, "stop"), 1.0)
        for call, size in sizes.items()
    }


def row(visit: str, calls: Sequence[str], reward: float, *, role: str = "solver", foreign: bool = False) -> Row:
    return Row(visit, tuple(calls), role, visit, reward, "g", foreign)


def algorithm(**fields: Any) -> Algorithm:
    return Algorithm.model_validate(fields)


def silent(rows: Sequence[TokenRow]) -> list[F32]:
    """A critic that expects nothing."""
    return [np.zeros(each.output.size, dtype=np.float32) for each in rows]


def test_every_token_of_every_call_carries_its_visits_advantage() -> None:
    rows = [row("a", ["a0", "a1"], 1.0), row("b", ["b0"], 0.0), row("c", [], 0.5, foreign=True)]
    found = lesson(rows, held(a0=2, a1=3, b0=4), algorithm(estimator="dr-grpo"), values=None)
    assert [each.output.size for each in found.rows] == [2, 3, 4]
    for each, advantage in zip(found.rows, (0.5, 0.5, -0.5), strict=True):
        assert_allclose(each.advantages, advantage)


def test_weights_of_all_tokens_sum_to_one() -> None:
    rows = [row("a", ["a0", "a1"], 1.0), row("b", ["b0"], 0.0, role="judge")]
    found = lesson(rows, held(a0=2, a1=3, b0=4), algorithm(), values=None)
    assert_allclose(sum(each.weight * each.output.size for each in found.rows), 1.0)


def test_with_a_silent_critic_every_token_returns_its_calls_reward() -> None:
    rows = [row("a", ["a0", "a1"], 1.0), row("b", ["b0"], -2.0)]
    found = lesson(rows, held(a0=2, a1=3, b0=4), algorithm(estimator="gae", scale="none"), values=silent)
    for each, returns, reward in zip(found.rows, found.returns, (1.0, 1.0, -2.0), strict=True):
        assert_allclose(returns, reward)
        assert_allclose(each.advantages, reward)


def test_tokens_are_whitened_per_role_where_the_role_says_so() -> None:
    rows = [row("a", ["a0"], 1.0), row("b", ["b0"], 3.0), row("c", ["c0"], 5.0, role="judge")]
    rule = algorithm(estimator="gae", scale="role", roles={"judge": {"scale": "none"}})
    found = lesson(rows, held(a0=2, b0=2, c0=2), rule, values=silent)
    solver = np.concatenate([each.advantages for each in found.rows[:2]])
    assert_allclose([solver.mean(), solver.std(ddof=1)], [0.0, 1.0], atol=1e-5)
    assert_allclose(found.rows[2].advantages, 5.0)


def test_nothing_of_this_model_gives_an_empty_lesson() -> None:
    for estimator, critic in (("rloo", None), ("gae", silent)):
        assert lesson([row("c", [], 0.5, foreign=True)], {}, algorithm(estimator=estimator), values=critic).rows == []


def test_each_role_discounts_by_its_own_gamma_under_gae() -> None:
    rows = [row("a", ["a0"], 1.0), row("b", ["b0"], 1.0, role="judge")]
    rule = algorithm(estimator="gae", scale="none", gamma=1.0, roles={"judge": {"gamma": 0.5}})
    solver, judge = lesson(rows, held(a0=3, b0=3), rule, values=silent).rows
    assert_allclose(solver.advantages, [1.0, 1.0, 1.0])
    assert_allclose(judge.advantages, [0.25, 0.5, 1.0])
