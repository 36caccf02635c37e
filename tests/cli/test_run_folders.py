"""Where a run goes: never into an earlier one, nor where another process trains, nor where nothing can be written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from unitymas.api.errors import BadInput
from unitymas.cli.run import _next_folder  # pyright: ignore[reportPrivateUsage]
from unitymas.controller.lock import make, training


def test_a_run_without_a_folder_never_goes_into_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for expected in ("quickstart", "quickstart-2", "quickstart-3"):
        folder = _next_folder("quickstart")
        assert folder == Path("runs") / expected
        folder.mkdir(parents=True)


@pytest.mark.parametrize("to", ["", " "])
@pytest.mark.parametrize("command", ["run", "export"])
def test_no_folder_is_no_place_to_write_to(
    unitymas: Callable[..., Result], quickstart: Path, command: str, to: str
) -> None:
    given = ["run", "-f", quickstart] if command == "run" else ["export", quickstart]
    result = unitymas(*given, "--to", to)
    assert result.exit_code == 2
    assert "--to" in result.output and "expected a folder" in result.output


def test_what_cannot_be_written_is_bad_input_that_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nope")):
        with pytest.raises(BadInput, match=rf"{place}: found a place that cannot be written .*\n.*\n.*--to"):
            make(place)
        with pytest.raises(BadInput, match="--to"), training(place):
            pass


def test_two_processes_never_train_in_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "a"
    with training(folder):
        with pytest.raises(BadInput, match=rf"trained by another process \(pid {os.getpid()}\)"), training(folder):
            pass
        assert folder.exists()
        (folder / "kept").touch()
    with training(folder):
        pass
    (folder / "kept").unlink()
    with training(folder):
        pass
    assert not folder.exists()
