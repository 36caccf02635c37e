from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from unitymas.models.rows import PADDING, micro_batches, mini_batches


@given(st.lists(st.integers(1, 500), max_size=80), st.integers(1, 16))
def test_every_row_is_in_one_forward_pass_of_bounded_size_and_padding(lengths: list[int], most: int) -> None:
    batches = micro_batches(lengths, most_rows=most)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        cells = len(batch) * max(lengths[index] for index in batch)
        assert len(batch) <= most
        assert sum(lengths[index] for index in batch) >= (1 - PADDING) * cells


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 3))
def test_every_epoch_has_every_row_once(rows: int, count: int, epochs: int) -> None:
    steps = mini_batches(rows, count=count, epochs=epochs, seed=(0, 1))
    assert len(steps) == min(count, rows) * epochs
    assert Counter(index for step in steps for index in step) == dict.fromkeys(range(rows), epochs)
    assert all(steps)


def test_mini_batches_of_a_step_are_the_same_again_and_others_in_the_next() -> None:
    first = mini_batches(40, count=4, epochs=2, seed=(0, 1))
    assert first == mini_batches(40, count=4, epochs=2, seed=(0, 1))
    assert first != mini_batches(40, count=4, epochs=2, seed=(0, 2))
    assert first[:4] != first[4:]
