"""Which tasks a step trains on: every row once an epoch, in shares, whatever was asked before."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.records import TaskRow
from unitymas.api.run import Evaluation, Schedule
from unitymas.controller.schedule import Pool, dev_tasks, evaluates, tasks_of

weights = st.floats(0.1, 10.0)
pools = st.lists(st.tuples(st.integers(1, 12), weights), min_size=1, max_size=4).map(
    lambda given: [
        Pool([TaskRow(f"{number}-{row}", {}) for row in range(size)], weight)
        for number, (size, weight) in enumerate(given)
    ]
)


def drawn(pools: list[Pool], *, seed: int, steps: int, per_step: int) -> list[TaskRow]:
    return [row for step in range(steps) for row in tasks_of(seed, pools, step=step, per_step=per_step)]


@given(st.integers(1, 30), st.integers(1, 7), st.integers(1, 12), st.integers(0, 99))
def test_no_row_is_repeated_or_skipped_within_an_epoch(size: int, per_step: int, steps: int, seed: int) -> None:
    rows = [TaskRow(str(row), {}) for row in range(size)]
    seen = [row.id for row in drawn([Pool(rows)], seed=seed, steps=steps, per_step=per_step)]
    assert len(seen) == steps * per_step
    for start in range(0, len(seen), size):
        epoch = seen[start : start + size]
        assert len(set(epoch)) == len(epoch)


@given(pools, st.integers(1, 40), st.integers(0, 99))
def test_each_file_has_its_share_within_one_draw_for_each_other_file(pools: list[Pool], draws: int, seed: int) -> None:
    counts = Counter(row.id.partition("-")[0] for row in drawn(pools, seed=seed, steps=draws, per_step=1))
    total = sum(pool.weight for pool in pools)
    for number, pool in enumerate(pools):
        assert abs(counts[str(number)] - draws * pool.weight / total) <= max(1, len(pools) - 1)


@given(pools, st.integers(1, 5), st.integers(0, 99), st.permutations(range(6)))
def test_the_tasks_of_a_step_do_not_depend_on_what_was_asked_before(
    pools: list[Pool], per_step: int, seed: int, order: list[int]
) -> None:
    first = {step: tasks_of(seed, pools, step=step, per_step=per_step) for step in range(6)}
    assert all(tasks_of(seed, pools, step=step, per_step=per_step) == first[step] for step in order)


@given(pools, st.integers(1, 5))
def test_steps_of_another_size_draw_the_same_sequence(pools: list[Pool], per_step: int) -> None:
    assert drawn(pools, seed=3, steps=per_step, per_step=4) == drawn(pools, seed=3, steps=4, per_step=per_step)


def test_another_seed_gives_another_order() -> None:
    pool = [Pool([TaskRow(str(row), {}) for row in range(20)])]
    assert drawn(pool, seed=0, steps=1, per_step=20) != drawn(pool, seed=1, steps=1, per_step=20)


def test_the_curve_looks_at_the_same_dev_tasks_in_file_order() -> None:
    rows = [TaskRow(str(row), {}) for row in range(50)]
    chosen = dev_tasks(0, rows, 10)
    assert chosen == dev_tasks(0, rows, 10)
    assert len(set(row.id for row in chosen)) == 10
    assert chosen == sorted(chosen, key=lambda row: int(row.id))
    assert dev_tasks(0, rows, None) == dev_tasks(0, rows, 50) == rows


def test_the_last_step_is_always_evaluated() -> None:
    schedule = Schedule(steps=7)
    due = [step for step in range(1, 8) if evaluates(step, Evaluation(every=3), schedule)]
    assert due == [3, 6, 7]
