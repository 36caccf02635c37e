"""The right ones pass: the field's fourteen workflows, the design's four examples, the quickstart; whole or in part."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from unitymas.api.load import Loaded, read, resolve
from unitymas.api.resources import MultiAgentWorkflow
from unitymas.check.run import NEEDS, check
from unitymas.workflow.bound import most_calls

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / "tests" / "workflows").glob("*.yaml"))
RIGHT = ROOT / "tests" / "cases" / "right"
KINDS = ("workflow", "reward", "mapping", "run")
LATER = ("06", "07", "08", "10", "13", "14")
"""Workflows that this release reads, checks and cannot run."""
MOST_CALLS = {
    "01-two-agent-rag": 3,
    "02-decompose-retrieve-answer": 2,
    "05-mask-iterative-search": 14,
    "12-group-chat": 20,
    "13-interactive-environment": 60,
    "14-swe-tool-loop": 41,
}


def workflow_in(loaded: Loaded) -> MultiAgentWorkflow:
    return next(each for each in loaded.resources.values() if isinstance(each, MultiAgentWorkflow))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_workflow_of_the_field_passes_the_spec_checks(file: Path):
    assert check(read([file])) == []


def test_there_are_fourteen_of_them():
    assert len(WORKFLOWS) == 14


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_what_comes_later_is_refused_before_a_run_and_only_that(file: Path):
    found = {finding.check for finding in check(read([file]), needs=["run"])} - {"no-data"}
    assert found == ({"later"} if file.name[:2] in LATER else set())


@pytest.mark.parametrize("name", MOST_CALLS)
def test_the_bound_on_calls_is_the_one_counted_by_hand(name: str):
    loaded = read([ROOT / "tests" / "workflows" / f"{name}.yaml"])
    assert most_calls(workflow_in(loaded).spec) == MOST_CALLS[name]


def test_the_four_examples_of_the_design_validate_together():
    loaded = read([ROOT / "tests" / "cases" / "design"])
    assert len(loaded.resources) == 4
    assert check(loaded) == []


def test_the_quickstart_passes_the_checks_that_need_no_tokenizer():
    loaded = read([ROOT / "examples" / "quickstart"])
    assert check(resolve(loaded), needs=[need for need in NEEDS if need != "tokenizer"]) == []


@pytest.mark.parametrize(
    "kinds", [each for size in (1, 2, 3) for each in combinations(KINDS, size)], ids=lambda kinds: "+".join(kinds)
)
def test_any_part_of_a_right_project_is_right(kinds: tuple[str, ...]):
    assert check(read([RIGHT / f"{kind}.yaml" for kind in kinds])) == []


def test_an_unknown_need_is_refused():
    with pytest.raises(ValueError, match="weights"):
        check(read([RIGHT]), needs=["weights"])
