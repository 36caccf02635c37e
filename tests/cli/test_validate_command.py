"""`unitymas validate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]
KINDS = ("MultiAgentWorkflow", "RewardSpec", "ModelMapping", "TrainingRun")


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def test_a_good_folder_exits_0_with_a_line_for_each_resource(unitymas: Command, quickstart: Path) -> None:
    result = unitymas("validate", "-f", quickstart)
    assert result.exit_code == 0
    assert [line.split("/")[0] for line in sorted(result.stdout.splitlines())] == sorted(KINDS)
    assert "at most 3 calls a trajectory" in result.stdout
    assert result.stderr == ""


def test_any_subset_of_the_kinds_is_valid_alone(unitymas: Command, quickstart: Path) -> None:
    result = unitymas("validate", "-f", quickstart / "workflow.yaml", "-f", quickstart / "mapping.yaml")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2


def test_standard_input_is_read_for_a_dash(unitymas: Command, quickstart: Path) -> None:
    text = "\n---\n".join(file.read_text("utf-8") for file in sorted(quickstart.glob("*.yaml")))
    result = unitymas("validate", "-f", "-", stdin=text)
    assert result.exit_code == 0
    assert "(<stdin>)" in result.stdout


def test_all_mistakes_are_told_at_once_with_file_line_path_and_hint_apart(unitymas: Command, quickstart: Path) -> None:
    change(quickstart / "run.yaml", "tasksPerStep: 12", "taskPerStep: 12")
    change(quickstart / "workflow.yaml", "loop: 2", "loop: twice")
    result = unitymas("validate", "-f", quickstart)
    assert result.exit_code == 2
    errors = result.stderr.splitlines()
    assert any("run.yaml:" in line and "spec.schedule.taskPerStep: found an unknown field" in line for line in errors)
    assert any("spec.nodes[0].loop: found `twice`; expected a whole number" in line for line in errors)
    assert "hint: did you mean `tasksPerStep`?" in errors
    assert errors[-1] == "2 findings"


def test_what_the_checks_find_is_told_with_its_line(unitymas: Command, quickstart: Path) -> None:
    change(quickstart / "workflow.yaml", "query: nodes.search.output", "query: nodes.serch.output")
    result = unitymas("validate", "-f", quickstart)
    assert result.exit_code == 2
    assert "workflow.yaml:36: MultiAgentWorkflow/quickstart: spec.nodes[0].nodes[1].with.query" in result.stderr
    assert "RewardSpec/quickstart: ok" in result.stdout


def test_json_holds_every_finding_and_resource(unitymas: Command, quickstart: Path) -> None:
    change(quickstart / "reward.yaml", "value: f1", "value: f2")
    result = unitymas("validate", "-f", quickstart, "--output", "json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert {finding["kind"] for finding in found["findings"]} == {"RewardSpec"}
    assert {resource["kind"]: resource["ok"] for resource in found["resources"]} == {
        kind: kind != "RewardSpec" for kind in KINDS
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-f", "nowhere"], "nowhere: found no such file or folder"),
        (["-f", "-", "--needs", "luck"], "--needs: found `luck`; expected some of spec, code, data"),
    ],
)
def test_wrong_arguments_exit_2_and_say_what_is_right(unitymas: Command, arguments: list[str], said: str) -> None:
    result = unitymas("validate", *arguments, stdin="")
    assert result.exit_code == 2
    assert said in result.stderr
