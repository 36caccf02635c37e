"""What every estimator keeps, for all inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unitymas.api.names import ESTIMATORS, load
from unitymas.credit import Batch, Estimator, TokenEstimator
from unitymas.credit.estimators.gae import Gae, at_last_token
from unitymas.credit.port import F64

VISIT_ESTIMATORS = sorted(ESTIMATORS.keys() - {"gae"})
GROUPED = sorted({"rloo", "grpo", "dr-grpo", "reinforce++-baseline"})
every = pytest.mark.parametrize("name", VISIT_ESTIMATORS)
Row = tuple[float, int, int, int, bool, bool]


def estimate(name: str, batch: Batch) -> F64:
    estimator = load(ESTIMATORS, name)()
    assert isinstance(estimator, Estimator)
    return estimator.advantages(batch)


def batch_of(rows: list[Row], *, divided: bool = True) -> Batch:
    numbers = np.asarray([row[1:4] for row in rows], dtype=np.int64).reshape(len(rows), 3)
    flags = np.asarray([row[4:] for row in rows], dtype=np.bool_).reshape(len(rows), 2)
    return Batch(
        rewards=np.asarray([row[0] for row in rows], dtype=np.float64),
        groups=numbers[:, 0],
        tokens=numbers[:, 1],
        units=numbers[:, 2],
        counted=flags[:, 0],
        foreign=flags[:, 1],
        divided=np.full(len(rows), divided),
    )


def rewards() -> st.SearchStrategy[float]:
    return st.integers(-400, 400).map(lambda number: number / 100)


def batches(*, plain: bool = False) -> st.SearchStrategy[list[Row]]:
    flags = st.just(False) if plain else st.booleans()
    counted = st.just(True) if plain else st.sampled_from([True, True, True, False])
    unit = st.just(0) if plain else st.integers(0, 2)
    row = st.tuples(rewards(), st.integers(0, 4), st.integers(1, 30), unit, counted, flags)
    return st.lists(row, max_size=24)


@every
@given(rows=batches())
def test_order_of_visits_changes_nothing(name: str, rows: list[Row]) -> None:
    assert_allclose(estimate(name, batch_of(rows[::-1]))[::-1], estimate(name, batch_of(rows)), rtol=1e-9, atol=1e-9)


@every
@given(rows=batches(), constant=rewards())
def test_adding_a_constant_to_rewards_changes_nothing(name: str, rows: list[Row], constant: float) -> None:
    batch = batch_of(rows)
    moved = replace(batch, rewards=batch.rewards + constant)
    assert_allclose(estimate(name, moved), estimate(name, batch), rtol=1e-6, atol=1e-6)


@every
@pytest.mark.parametrize("divided", [True, False])
@given(rows=batches(), reward=rewards())
def test_equal_rewards_give_exactly_zero_advantage(name: str, divided: bool, rows: list[Row], reward: float) -> None:
    batch = batch_of(rows, divided=divided)
    equal = replace(batch, rewards=np.full(len(rows), reward + 0.1))
    assert not estimate(name, equal).any()


@pytest.mark.parametrize("name", GROUPED)
@given(rows=batches(plain=True), reward=rewards())
def test_an_equal_group_beside_others_gets_exactly_zero(name: str, rows: list[Row], reward: float) -> None:
    equal: Row = (reward + 0.1, 9, 7, 0, True, False)
    assert not estimate(name, batch_of([*rows, equal, equal, equal]))[len(rows) :].any()


@every
@given(rows=batches())
def test_foreign_and_uncounted_visits_get_no_advantage(name: str, rows: list[Row]) -> None:
    batch = batch_of(rows)
    assert not estimate(name, batch)[~batch.trained].any()


@every
@given(rows=batches(), reward=rewards())
def test_an_uncounted_visit_changes_no_other(name: str, rows: list[Row], reward: float) -> None:
    left_out: Row = (reward, 0, 5, 0, False, False)
    assert_allclose(estimate(name, batch_of([*rows, left_out]))[:-1], estimate(name, batch_of(rows)), atol=1e-12)


@pytest.mark.parametrize("name", ["rloo", "dr-grpo", "grpo"])
@given(rows=batches(plain=True))
def test_advantages_of_a_group_sum_to_zero(name: str, rows: list[Row]) -> None:
    batch = batch_of(rows, divided=False)
    sums = np.bincount(batch.groups, weights=estimate(name, batch))
    assert_allclose(sums, 0.0, atol=1e-9)


@given(rows=batches(plain=True))
def test_rloo_baseline_is_the_mean_of_the_others(rows: list[Row]) -> None:
    batch = batch_of(rows, divided=False)
    got = estimate("rloo", batch)
    for visit in range(len(rows)):
        others = np.flatnonzero((batch.groups == batch.groups[visit]) & (np.arange(len(rows)) != visit))
        expected = batch.rewards[visit] - batch.rewards[others].mean() if others.size else 0.0
        assert_allclose(got[visit], expected, atol=1e-9)


def test_foreign_rewards_move_the_baseline() -> None:
    own: list[Row] = [(1.0, 0, 4, 0, True, False), (0.0, 0, 4, 0, True, False)]
    abroad: Row = (1.0, 0, 0, 1, True, True)
    assert_allclose(estimate("rloo", batch_of([*own, abroad], divided=False)), [0.5, -1.0, 0.0])


def test_scale_divides_each_unit_by_its_own_std() -> None:
    small: list[Row] = [(0.01, 0, 4, 0, True, False), (0.0, 0, 4, 0, True, False)]
    large: list[Row] = [(100.0, 1, 4, 1, True, False), (0.0, 1, 4, 1, True, False)]
    got = estimate("dr-grpo", batch_of([*small, *large]))
    assert_allclose(np.abs(got), np.sqrt(0.5), rtol=1e-3)


def test_a_role_always_off_by_the_same_is_not_divided_by_nothing() -> None:
    rows: list[Row] = [(reward, 0, 4, unit, True, False) for reward, unit in [(1.0, 0), (1.0, 0), (0.0, 1), (0.0, 1)]]
    assert np.abs(estimate("rloo", batch_of(rows))).max() < 2.0


@every
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_reward_that_is_not_finite_is_refused_by_name(name: str, broken: float) -> None:
    batch = batch_of([(0.0, 0, 1, 0, True, False), (1.0, 0, 1, 0, True, False)])
    with pytest.raises(ValueError, match="visit b: found reward"):
        estimate(name, replace(batch, rewards=np.asarray([0.0, broken]), names=("a", "b")))


@pytest.mark.parametrize(("name", "port"), [(name, Estimator) for name in VISIT_ESTIMATORS] + [("gae", TokenEstimator)])
def test_the_registry_names_what_implements_the_port(name: str, port: type) -> None:
    assert isinstance(load(ESTIMATORS, name)(), port)


@given(
    values=st.lists(st.tuples(rewards(), rewards(), rewards(), st.booleans(), st.booleans()), min_size=1, max_size=5),
    gae=st.sampled_from([Gae(), Gae(gamma=0.9), Gae(gamma=0.9, lam=0.8)]),
)
def test_tokens_outside_the_mask_change_no_token_advantage(
    values: list[tuple[float, float, float, bool, bool]], gae: Gae
) -> None:
    mask = np.asarray([[True, second, third] for _, _, _, second, third in values])
    critic = np.asarray([row[:3] for row in values], dtype=np.float64)
    paid = at_last_token(critic[:, 0] - 1.0, mask)
    got, _ = gae.token_advantages(paid, critic, mask)
    other, _ = gae.token_advantages(paid, np.where(mask, critic, 99.0), mask)
    assert_allclose(got, other)


def test_a_perfect_critic_leaves_no_advantage() -> None:
    mask = np.ones((1, 3), dtype=np.bool_)
    got, returns = Gae().token_advantages(at_last_token(np.asarray([2.0]), mask), np.full((1, 3), 2.0), mask)
    assert not got.any()
    assert_allclose(returns, 2.0)
