"""A run from its start to its export, through the commands alone: real models, real updates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
UNITYMAS = [sys.executable, "-c", "from unitymas.cli import main; main()"]
SETTINGS = ["--set", "algorithm.rolloutsPerTask=2", "--set", "schedule.tasksPerStep=2"]


def unitymas(*arguments: object, code: int = 0) -> str:
    """Run a command in a process of its own; what it printed, or where it fails as expected, its errors."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    given = [*UNITYMAS, *(str(argument) for argument in arguments)]
    done = subprocess.run(given, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart with a handful of rows."""
    folder = tmp_path_factory.mktemp("small")
    for file in QUICKSTART.glob("*.yaml"):
        text = file.read_text("utf-8").replace("path: model", f"path: {QUICKSTART / 'model'}")
        (folder / file.name).write_text(text.replace("path: corpus", f"path: {QUICKSTART / 'corpus'}"), "utf-8")
    (folder / "data").mkdir()
    for file in (QUICKSTART / "data").glob("*.jsonl"):
        lines = file.read_text("utf-8").splitlines(keepends=True)[:6]
        (folder / "data" / file.name).write_text("".join(lines), "utf-8")
    return folder


def test_a_run_is_trained_compared_looked_into_evaluated_and_exported(manifests: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    said = unitymas("run", "-f", manifests, "--to", folder, "--steps", 1, *SETTINGS)
    assert "step 1/1  score " in said
    assert "first weights" in said and "next:  unitymas traces" in said
    assert json.loads((folder / "summary.json").read_text("utf-8"))["steps"] == 1
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    again = unitymas("run", "-f", manifests, "--to", folder, *SETTINGS, code=2)
    assert "a run that was started here before" in again

    count = "SELECT count(*) AS visits FROM visits WHERE phase = 'train'"
    assert json.loads(unitymas("traces", folder, count, "--output", "json")) == [{"visits": 2 * 2 * 5}]
    asked = ("--first", "--split", "dev", "--sampling", "greedy", "--output", "json")
    found = json.loads(unitymas("eval", folder, *asked))
    assert (found["step"], list(found["scores"]), found["scores"]["greedy"]["tasks"]) == (0, ["greedy"], 6)
    unitymas("export", folder, "--to", tmp_path / "models")
    assert (tmp_path / "models" / "searcher" / "model.safetensors").exists()


def test_a_stopped_run_exits_130_after_saving_and_is_resumed_to_its_end(manifests: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    given = [*UNITYMAS, "run", "-f", str(manifests), "--to", str(folder), "--steps", "12", *SETTINGS]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("step 1/"):
                break
        run.send_signal(signal.SIGINT)
        said = run.stdout.read()
    assert run.returncode == 130
    assert f"continue with: unitymas resume {folder}" in said
    saved = int(said.split("saved after step ")[1].split(";")[0])
    first = next(line for line in unitymas("resume", folder).splitlines() if line.startswith("step "))
    assert first.startswith(f"step {saved + 1}/12")


def test_a_dry_run_shows_models_roles_and_tasks_and_writes_nothing(manifests: Path, tmp_path: Path) -> None:
    said = unitymas("run", "-f", manifests, "--to", tmp_path / "run", "--dry-run", "--steps", 3, *SETTINGS)
    assert "3 steps of 2 tasks x 2 rollouts, grpo; at most 3 calls a trajectory" in said
    assert "tasks: 6 train, 6 dev, 6 test" in said
    assert "561k" in said
    assert list(tmp_path.iterdir()) == []
