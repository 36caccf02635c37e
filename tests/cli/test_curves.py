"""A run's curve, in text and as a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from unitymas.cli.curve import dev_curves, draw, reward_curves, sparkline, text_curves
from unitymas.cli.outcome import before_and_after, interval
from unitymas.controller.evaluate import Estimate

RECORDS = [
    {"step": 0, "phase": "dev-greedy", "score": 0.1, "low": 0.0, "high": 0.2, "tasks": 9, "lost": 0},
    {"step": 1, "phase": "train", "score": 0.2, "reward/searcher": 0.3, "reward/searcher/hit": 0.1},
    {"step": 2, "phase": "train", "score": 0.4, "reward/searcher": 0.6, "reward/searcher/hit": 0.2},
    {"step": 2, "phase": "dev-greedy", "score": 0.5, "low": 0.4, "high": 0.6, "tasks": 9, "lost": 0},
    {"step": 2, "phase": "test-greedy", "score": 0.5, "low": 0.4, "high": 0.6, "tasks": 9, "lost": 0},
]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=100), st.integers(2, 60))
def test_a_sparkline_is_no_wider_than_asked_and_ends_as_high_as_its_values(values: list[float], width: int) -> None:
    bars = sparkline(values, width=width)
    assert len(bars) == min(len(values), width)
    if values[-1] == max(values) != min(values) and len(values) <= width:
        assert bars[-1] == "█"


def test_equal_values_are_a_flat_line() -> None:
    assert sparkline([0.5, 0.5, 0.5]) == "▁▁▁"
    assert sparkline([]) == ""


def test_curves_are_of_dev_by_sampling_and_of_training_by_role() -> None:
    assert {name: [point.value for point in points] for name, points in dev_curves(RECORDS).items()} == {
        "greedy": [0.1, 0.5]
    }
    assert {name: [point.value for point in points] for name, points in reward_curves(RECORDS).items()} == {
        "searcher": [0.3, 0.6]
    }
    assert text_curves(RECORDS) == ["dev greedy        0.100  ▁█  0.500", "reward searcher   0.300  ▁█  0.600"]


def test_the_picture_is_a_png_also_of_a_run_without_dev(tmp_path: Path) -> None:
    for name, records in (("whole", RECORDS), ("no-dev", RECORDS[1:3])):
        draw(records, tmp_path / name, title="quickstart")
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_what_was_all_lost_is_in_no_curve(tmp_path: Path) -> None:
    lost: list[dict[str, Any]] = [
        {"step": 3, "phase": "dev-greedy", "score": None, "low": None, "high": None, "tasks": 0, "lost": 9},
        {"step": 3, "phase": "train", "reward/searcher": None},
    ]
    for records in (lost, [*RECORDS, *lost]):
        draw(records, tmp_path / "curve.png", title="quickstart")
    assert text_curves([*RECORDS, *lost]) == text_curves(RECORDS)
    assert text_curves(lost) == []
    nothing = Estimate(math.nan, math.nan, math.nan, 0, 9)
    assert interval(nothing) == "none (9 lost)"
    before_and_after({"greedy": nothing}, {"greedy": nothing}, chosen_step=3)
