"""Returns: own, and to go through program order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unitymas.api.algorithm import Algorithm
from unitymas.api.records import Order, Visit
from unitymas.credit import returns, to_go

numbers = st.lists(st.integers(-100, 100).map(float), max_size=12)


def turn(position: int) -> Order:
    return ((False, 0), (False, position))


def branch(item: int, position: int) -> Order:
    return ((False, 1), (True, item), (False, position))


def visit(order: Order, reward: float) -> Visit:
    return Visit(key=str(order), node="act", order=order, parents=(), role="actor", rewards={"r": reward})


@given(rewards=numbers, gamma=st.floats(0.1, 1.0))
def test_in_a_sequence_the_return_is_reward_plus_discounted_next_return(rewards: list[float], gamma: float) -> None:
    got = to_go(np.asarray(rewards, dtype=np.float64), [turn(place) for place in range(len(rewards))], gamma=gamma)
    following = 0.0
    for reward, value in zip(reversed(rewards), reversed(got.tolist()), strict=True):
        following = reward + gamma * following
        assert_allclose(value, following, atol=1e-9)


def test_parallel_visits_do_not_earn_each_others_rewards() -> None:
    got = to_go(np.asarray([1.0, 10.0]), [branch(0, 0), branch(1, 0)], gamma=0.5)
    assert_allclose(got, [1.0, 10.0])


def test_a_visit_after_parallel_branches_is_later_than_all_of_them() -> None:
    orders: list[Order] = [turn(0), branch(0, 0), branch(1, 0), branch(1, 1), ((False, 2),)]
    got = to_go(np.asarray([0.0, 1.0, 10.0, 100.0, 1000.0]), orders, gamma=0.5)
    # stages 0, 1, 1, 2, 3
    assert_allclose(got, [0.5 * 11 + 0.25 * 100 + 0.125 * 1000, 1 + 250.0, 10 + 50 + 250.0, 100 + 500.0, 1000.0])


@given(rewards=numbers, seed=st.randoms(use_true_random=False))
def test_arrival_order_changes_no_return(rewards: list[float], seed: np.random.Generator) -> None:
    orders = [turn(place) if place < 3 else branch(place % 3, place) for place in range(len(rewards))]
    arrival = list(range(len(rewards)))
    seed.shuffle(arrival)
    got = to_go(np.asarray([rewards[i] for i in arrival], dtype=np.float64), [orders[i] for i in arrival], gamma=0.9)
    assert_allclose(got, to_go(np.asarray(rewards, dtype=np.float64), orders, gamma=0.9)[arrival])


@pytest.mark.parametrize(("rule", "expected"), [("own", [1.0, 2.0]), ("toGo", [2.0, 2.0])])
def test_the_rule_decides_what_a_visit_earns(rule: str, expected: list[float]) -> None:
    algorithm = Algorithm.model_validate({"returns": rule, "gamma": 0.5})
    assert_allclose(returns([visit(turn(0), 1.0), visit(turn(1), 2.0)], algorithm), expected)
