"""How commands end: exit codes and messages by what went wrong; logs."""

from __future__ import annotations

import json
import logging

import pytest
import structlog
import typer
from typer.testing import CliRunner

from unitymas.api.errors import (
    Author,
    BadInput,
    Deadline,
    Finding,
    Infrastructure,
    NotFinite,
    ParityBroken,
    UnityMASError,
)
from unitymas.cli.errors import Reporting
from unitymas.cli.logs import configure


def run_raising(error: BaseException) -> tuple[int, str, BaseException | None]:
    app = typer.Typer(cls=Reporting)

    @app.callback()
    def shared() -> None: ...  # pyright: ignore[reportUnusedFunction]

    @app.command()
    def fail() -> None:  # pyright: ignore[reportUnusedFunction]
        raise error

    result = CliRunner().invoke(app, ["fail"])
    return result.exit_code, result.stderr, result.exception


@pytest.mark.parametrize(
    ("error", "said", "advice"),
    [
        (Infrastructure("tool wiki", "gone"), "Infrastructure: tool wiki: gone", "unitymas resume"),
        (Deadline("trajectory 1", "late"), "Deadline: trajectory 1: late", "limits.onDeadline"),
        (Author("metric f1", "KeyError: x"), "Author: metric f1: KeyError: x", "mend it"),
        (ParityBroken("model small: 0.1 nats"), "ParityBroken: model small: 0.1 nats", "precision"),
        (NotFinite("model small: loss nan"), "NotFinite: model small: loss nan", "learningRate"),
        (UnityMASError("no"), "UnityMASError: no", ""),
    ],
)
def test_a_failure_exits_1_and_says_class_place_and_what_to_do(error: UnityMASError, said: str, advice: str) -> None:
    code, stderr, _ = run_raising(error)
    assert code == 1
    assert stderr.splitlines()[0] == said
    assert ("hint: " in stderr) == bool(advice)
    assert advice in stderr


def test_bad_input_exits_2_with_every_finding_and_hints_apart() -> None:
    findings = [Finding("a", "spec.x", "1", "2", "three"), Finding("b", "spec.y", "4", "5")]
    code, stderr, _ = run_raising(BadInput(findings))
    assert code == 2
    assert stderr == "spec.x: found 1; expected 2\n\nhint: three\n\nspec.y: found 4; expected 5\n"


def test_the_users_own_traceback_is_shown() -> None:
    error = Author("metric f1", "ZeroDivisionError: division by zero")
    error.__cause__ = ZeroDivisionError("division by zero")
    assert "\nZeroDivisionError: division by zero\n" in run_raising(error)[1]


def test_a_missing_training_package_says_how_to_install_it() -> None:
    code, stderr, _ = run_raising(ModuleNotFoundError("No module named 'torch'", name="torch"))
    assert code == 1
    assert "pip install 'unitymas[train]'" in stderr


def test_what_nobody_foresaw_passes_on_whole() -> None:
    error = RuntimeError("a mistake of ours")
    code, _, raised = run_raising(error)
    assert (code, raised) == (1, error)


def test_json_logs_are_one_object_a_line_other_libraries_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "info")
    structlog.get_logger().info("weights.published", model="searcher", version=7)
    logging.getLogger("another.library").warning("slow by %s s", 3)
    logging.getLogger("another.library").debug("chatter")
    ours, theirs = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["model"], ours["version"], ours["level"]) == (
        "weights.published",
        "searcher",
        7,
        "info",
    )
    assert (theirs["event"], theirs["level"]) == ("slow by 3 s", "warning")


def test_console_logs_name_event_and_fields_and_leave_out_lower_levels(capsys: pytest.CaptureFixture[str]) -> None:
    configure("console", "warning")
    structlog.get_logger().warning("checkpoint.passed_over", reason="half-written")
    structlog.get_logger().info("checkpoint.saved")
    (line,) = capsys.readouterr().err.splitlines()
    assert "checkpoint.passed_over" in line and "reason=half-written" in line
