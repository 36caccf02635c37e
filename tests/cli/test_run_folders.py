"""Where a run goes when nothing is said: never into an earlier one."""

from pathlib import Path

import pytest

from unitymas.cli.run import _next_folder  # pyright: ignore[reportPrivateUsage]


def test_a_run_without_a_folder_never_goes_into_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for expected in ("quickstart", "quickstart-2", "quickstart-3"):
        folder = _next_folder("quickstart")
        assert folder == Path("runs") / expected
        folder.mkdir(parents=True)
