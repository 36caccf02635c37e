"""What `run` knows of weights before it loads them, and what it refuses."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import Result

from unitymas.cli.plan import parameters_of, short

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
Command = Callable[..., Result]


def test_parameters_are_counted_from_the_headers_of_all_files(tmp_path: Path) -> None:
    for number, shape in enumerate(([2, 3], [5])):
        header = {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}
        content = json.dumps(header).encode()
        (tmp_path / f"model-{number}.safetensors").write_bytes(struct.pack("<Q", len(content)) + content)
    assert parameters_of(tmp_path) == 11


def test_weights_without_safetensors_have_no_known_size(tmp_path: Path) -> None:
    assert parameters_of(tmp_path) is None
    assert parameters_of(tmp_path / "absent") is None


@given(st.integers(0, 10**13))
def test_a_short_count_is_within_half_a_percent(count: int) -> None:
    text = short(count)
    factor = {"k": 10**3, "M": 10**6, "B": 10**9}.get(text[-1], 1)
    assert abs(float(text.rstrip("kMB")) * factor - count) <= 0.005 * count


def test_a_bad_override_exits_2_and_names_the_option(unitymas: Command) -> None:
    result = unitymas("run", "-f", QUICKSTART, "--dry-run", "--steps", 0)
    assert result.exit_code == 2
    assert "--steps 0: TrainingRun/quickstart: spec.schedule.steps: found `0`" in result.stderr


def test_an_unknown_run_exits_2_and_names_the_runs_there_are(unitymas: Command) -> None:
    result = unitymas("run", "-f", QUICKSTART, "--dry-run", "--name", "other")
    assert result.exit_code == 2
    assert "expected the name of a TrainingRun: quickstart" in result.stderr


def test_a_folder_that_is_no_run_cannot_be_resumed(unitymas: Command, tmp_path: Path) -> None:
    result = unitymas("resume", tmp_path)
    assert result.exit_code == 2
    assert "expected the folder of a run" in result.stderr
