"""From rows to what one update trains on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unitymas.api.algorithm import Algorithm
from unitymas.api.records import Row
from unitymas.credit import Advantages, advantages, loss_weights

ESTIMATORS = ["rloo", "grpo", "dr-grpo", "reinforce++", "reinforce++-baseline"]


def row(reward: float, group: str, *, role: str = "solver", trajectory: str = "t", foreign: bool = False) -> Row:
    return Row(f"{trajectory}/{role}", () if foreign else ("c",), role, trajectory, reward, group, foreign)


def run(rows: list[Row], tokens: list[int] | None = None, **algorithm: object) -> Advantages:
    return advantages(rows, tokens or [3] * len(rows), Algorithm.model_validate(algorithm))


drawn = st.builds(
    row,
    st.integers(-9, 9).map(float),
    st.sampled_from("abc"),
    role=st.sampled_from(["solver", "critic"]),
    trajectory=st.sampled_from("xyz"),
    foreign=st.booleans(),
)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(rows=st.lists(drawn, max_size=16))
def test_foreign_rows_get_neither_advantage_nor_weight(estimator: str, rows: list[Row]) -> None:
    got = run(rows, estimator=estimator)
    abroad = np.asarray([item.foreign for item in rows], dtype=np.bool_)
    assert not got.values[abroad].any()
    assert not got.token_weights[abroad].any()
    assert np.isfinite(got.values).all()


def test_a_group_below_min_group_gets_zero_and_is_counted() -> None:
    got = run([row(1.0, "a"), row(0.0, "a"), row(1.0, "b"), row(0.0, "b"), row(0.0, "b")], compare={"minGroup": 3})
    assert not got.values[:2].any()
    assert got.values[2:].all()
    assert (got.groups, got.small_groups, got.equal_groups) == (2, 1, 0)


def test_a_small_group_does_not_change_what_divides_the_others() -> None:
    big = [row(1.0, "b"), row(0.0, "b"), row(0.0, "b")]
    rule = {"minGroup": 3}
    assert_allclose(run([*big, row(9.0, "a"), row(0.0, "a")], compare=rule).values[:3], run(big, compare=rule).values)


def test_equal_groups_are_counted() -> None:
    got = run([row(0.1, "a"), row(0.1, "a"), row(0.1, "a"), row(1.0, "b"), row(0.0, "b")])
    assert got.values[:3].tolist() == [0.0, 0.0, 0.0]
    assert (got.groups, got.small_groups, got.equal_groups) == (2, 0, 1)


def test_foreign_rows_make_a_group_big_enough() -> None:
    got = run([row(1.0, "a"), row(0.0, "a", role="critic", foreign=True)], scale="none")
    assert got.values.tolist() == [1.0, 0.0]
    assert got.small_groups == 0


def test_a_group_of_only_foreign_rows_is_not_counted() -> None:
    assert run([row(1.0, "a", foreign=True)]).groups == 0


@pytest.mark.parametrize("scale", ["none", "group", "role", "model"])
def test_scale_decides_which_std_divides(scale: str) -> None:
    rows = [
        row(reward, f"{role}{group}", role=role)
        for role, size in (("solver", 1.0), ("critic", 8.0))
        for group in range(2)
        for reward in (0.0, size * (group + 1))
    ]
    got = run(rows, estimator="dr-grpo", scale=scale).values
    centred = np.asarray([-0.5, 0.5, -1.0, 1.0, -4.0, 4.0, -8.0, 8.0])
    parts = {"none": [], "group": [2, 4, 6], "role": [4], "model": [0]}[scale]
    stds = [np.full(len(part), np.std(part, ddof=1)) for part in np.split(centred, parts) if part.size]
    assert_allclose(got, centred if scale == "none" else centred / np.concatenate(stds), rtol=1e-4)


def test_a_role_may_scale_its_own_way() -> None:
    rows = [row(4.0, "a"), row(0.0, "a"), row(4.0, "b", role="critic"), row(0.0, "b", role="critic")]
    got = run(rows, estimator="dr-grpo", roles={"critic": {"scale": "role"}}).values
    assert_allclose(got, [2.0, -2.0, np.sqrt(0.5), -np.sqrt(0.5)], rtol=1e-5)


def test_a_group_spanning_models_has_the_same_advantages_whoever_plays() -> None:
    mine, other = [row(1.0, "a"), row(0.0, "a")], [row(5.0, "a", role="critic"), row(2.0, "a", role="critic")]
    together = run([*mine, *other], estimator="grpo").values
    apart = [row(item.reward, "a", role="critic", foreign=True) for item in other]
    assert_allclose(run([*mine, *apart], estimator="grpo").values[:2], together[:2])


def test_reinforce_needs_no_groups() -> None:
    got = run([row(1.0, "a"), row(0.0, "b")], estimator="reinforce++")
    assert got.values[0] == -got.values[1] > 0
    assert (got.groups, got.small_groups, got.equal_groups) == (0, 0, 0)


def test_a_reward_that_is_not_finite_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="visit t2/solver: found reward nan"):
        run([row(1.0, "a"), row(float("nan"), "a", trajectory="t2")])


def test_gae_has_weights_here_and_advantages_on_tokens() -> None:
    rows = [row(1.0, "a"), row(0.0, "b", trajectory="u")]
    gae = Algorithm.model_validate({"estimator": "gae"})
    assert_allclose(loss_weights(rows, [1, 4], gae), [0.5, 0.125])
    with pytest.raises(ValueError, match="works on tokens"):
        advantages(rows, [1, 4], gae)


def test_no_rows_make_no_update() -> None:
    got = run([])
    assert (got.values.size, got.token_weights.size, got.groups) == (0, 0, 0)
