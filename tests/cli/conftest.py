"""What the tests of the command line share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from unitymas.cli.app import app

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def _logging_as_before() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Commands configure logging for their process; here they share one with the tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def unitymas() -> Command:
    """Run a command: its arguments, and `stdin`."""

    def run(*arguments: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    return run


@pytest.fixture
def quickstart(tmp_path: Path) -> Path:
    """The quickstart's four manifests in a folder of their own."""
    for file in QUICKSTART.glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text("utf-8"), "utf-8")
    return tmp_path
