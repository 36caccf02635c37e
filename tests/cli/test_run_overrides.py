"""Fields of a run given on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.errors import BadInput
from unitymas.api.load import Loaded, read, resolve
from unitymas.cli.overrides import override, overrides_of, parse_override

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return read([QUICKSTART])


def test_overridden_fields_change_and_others_stay(loaded: Loaded) -> None:
    given = overrides_of(seed=7, steps=3, assignments=["algorithm.compare.by=[task, role]"])
    before, after = resolve(loaded).run.spec, resolve(override(loaded, None, given)).run.spec
    assert (after.seed, after.schedule.steps, after.algorithm.compare.by) == (7, 3, ["task", "role"])
    assert after.schedule.tasks_per_step == before.schedule.tasks_per_step
    assert after.model_copy(update={"seed": 0, "schedule": before.schedule, "algorithm": before.algorithm}) == before


def test_mappings_on_the_way_are_made_and_items_of_lists_reached(loaded: Loaded) -> None:
    given = overrides_of(
        seed=None, steps=None, assignments=["limits.call=5s", "spec.data.train[0].weight=2", "cleanup.selfTtlSeconds=9"]
    )
    spec = resolve(override(loaded, "quickstart", given)).run.spec
    assert (spec.limits.call_s, spec.data.train[0].weight, spec.cleanup.self_ttl_seconds) == (5.0, 2.0, 9)


def test_a_later_override_wins(loaded: Loaded) -> None:
    given = overrides_of(seed=1, steps=None, assignments=["seed=2", "seed=3"])
    assert resolve(override(loaded, None, given)).run.spec.seed == 3


@pytest.mark.parametrize(
    ("assignment", "path", "hint"),
    [
        ("schedule.stepz=3", "spec.schedule.stepz", "did you mean `steps`?"),
        ("schedule.steps=many", "spec.schedule.steps", ""),
        ("schedule.tasks_per_step=3", "spec.schedule.tasks_per_step", "fields are camelCase: `tasksPerStep`"),
    ],
)
def test_a_bad_value_is_a_finding_that_names_the_option(loaded: Loaded, assignment: str, path: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        override(loaded, None, overrides_of(seed=None, steps=None, assignments=[assignment]))
    (finding,) = caught.value.findings
    assert (finding.path, finding.file, finding.hint) == (path, f"--set {assignment}", hint)


@pytest.mark.parametrize("assignment", ["data.train[5].weight=2", "schedule.steps.more=2", "data.train.weight=1"])
def test_a_place_that_there_cannot_be_is_a_finding(loaded: Loaded, assignment: str) -> None:
    with pytest.raises(BadInput) as caught:
        override(loaded, None, overrides_of(seed=None, steps=None, assignments=[assignment]))
    assert caught.value.findings[0].file == f"--set {assignment}"


@pytest.mark.parametrize("text", ["schedule.steps", "=3", "schedule.steps=[1"])
def test_what_is_no_assignment_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        parse_override(text)


@pytest.mark.parametrize(
    "value",
    ["2024-01-01", "2024-13-45", "!!binary aGk=", "!!set {a}", "&a [*a]", ".inf", ".nan", "{[a]: 1}", "[" * 3000],
)
def test_what_json_lacks_is_a_finding(value: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_override(f"limits.call={value}")
    assert caught.value.findings[0].check == "override"


@given(st.integers(-(10**6), 10**6), st.booleans())
def test_values_are_read_as_yaml_and_spec_may_be_left_out(value: int, full: bool) -> None:
    parsed = parse_override(f"{'spec.' if full else ''}schedule.steps={value}")
    assert (parsed.parts, parsed.value) == (("spec", "schedule", "steps"), value)
