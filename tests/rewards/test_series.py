from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.records import Order
from unitymas.rewards.series import Series, compare

levels = st.tuples(st.booleans(), st.integers(0, 3))
orders = st.lists(levels, max_size=4).map(tuple)
rewards = st.floats(-10, 10, width=16)


def at(*positions: int) -> Order:
    return tuple((False, position) for position in positions)


def branch(*positions: int) -> Order:
    return (*at(*positions[:-1]), (True, positions[-1]))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (at(0), at(1), -1),
        (at(1, 5), at(2, 0), -1),
        (at(2), at(2), 0),
        (at(2), at(2, 0), -1),
        (at(2, 1, 3), at(2, 1, 1), 1),
        (branch(2, 0), branch(2, 1), None),
        ((*branch(2, 0), (False, 9)), (*branch(2, 0), (False, 1)), 1),
        (branch(2, 0), at(3), -1),
    ],
)
def test_places_compare_level_by_level_unless_they_ran_at_once(a: Order, b: Order, expected: int | None) -> None:
    assert compare(a, b) == expected


@given(orders, orders)
def test_comparing_the_other_way_round_negates(a: Order, b: Order) -> None:
    forward, backward = compare(a, b), compare(b, a)
    assert (forward is None) == (backward is None)
    assert forward is None or forward == -(backward or 0)


@given(st.lists(st.tuples(st.booleans(), rewards), max_size=30))
def test_deltas_telescope_over_visits_between_readings(program: list[tuple[bool, float]]) -> None:
    """One visit of the rewarded role before each reading: the sum of its deltas is the last reading."""
    readings = [(place, value) for place, (read, value) in enumerate(program) if read]
    series = Series([at(2 * place + 1) for place, _ in readings], [value for _, value in readings])
    seen = [series.for_visit(at(2 * place)) for place, _ in readings]
    assert sum(one["after"] - one["before"] for one in seen) == pytest.approx(readings[-1][1] if readings else 0.0)


def test_a_visit_sees_the_reading_taken_at_it_as_after() -> None:
    seen = Series([at(0), at(1), at(2)], [1.0, 2.0, 3.0]).for_visit(at(1))
    assert (seen["before"], seen["after"]) == (1.0, 2.0)


def test_after_the_last_reading_nothing_changes_any_more() -> None:
    seen = Series([at(0), at(1)], [1.0, 2.0]).for_visit(at(5))
    assert (seen["before"], seen["after"]) == (2.0, 2.0)


def test_a_visit_that_ran_at_once_with_the_readings_sees_only_its_own() -> None:
    series = Series([branch(1, item) for item in range(3)], [1.0, 2.0, 3.0])
    assert series.for_visit(branch(1, 1))["after"] == 2.0
    assert series.for_visit(branch(1, 1))["before"] == 0.0


@given(st.lists(rewards, min_size=1))
def test_statistics_are_those_of_the_readings(values: list[float]) -> None:
    seen = Series([at(place) for place in range(len(values))], values).statistics
    assert (seen["first"], seen["last"]) == (values[0], values[-1])
    assert (seen["min"], seen["max"], seen["count"]) == (min(values), max(values), len(values))
    assert seen["mean"] * seen["count"] == pytest.approx(seen["sum"])


def test_an_empty_series_is_all_zero() -> None:
    assert set(Series([], []).for_visit(at(0)).values()) == {0.0}
