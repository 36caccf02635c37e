"""What `--help` teaches, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

COMMANDS = ("run", "validate", "eval", "export", "resume", "traces")
HEAVY = ("torch", "ray", "verl", "transformers", "matplotlib", "duckdb", "pyarrow")


def test_help_lists_every_command_and_the_exit_codes(unitymas: Callable[..., Result]) -> None:
    result = unitymas("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f" {command} " in result.stdout
    assert "0 ok, 1 failed, 2 bad input, 130 stopped" in " ".join(result.stdout.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_of_itself(unitymas: Callable[..., Result], command: str) -> None:
    result = unitymas(command, "--help")
    assert result.exit_code == 0
    assert f"  unitymas {command} " in result.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "-f", "MANIFESTS"]])
def test_nothing_heavy_is_imported_to_help_or_validate(arguments: list[str], quickstart: Path) -> None:
    program = (
        "import sys\n"
        "from unitymas.cli.app import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        f"print('heavy:', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    given = [argument.replace("MANIFESTS", str(quickstart)) for argument in arguments]
    done = subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"
