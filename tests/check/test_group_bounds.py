"""The largest comparison group that a role can have, from the workflow's structure alone."""

from __future__ import annotations

from typing import Any

import pytest

from unitymas.api.run import TrainingRunSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.groups import most_in_group

WORKFLOW = WorkflowSpec.model_validate(
    {
        "input": {"visible": ["question"]},
        "roles": [{"name": "solver", "prompt": "solve"}, {"name": "judge", "prompt": "judge"}],
        "nodes": [
            {
                "name": "rounds",
                "loop": 3,
                "nodes": [
                    {"name": "tries", "role": "solver", "forEach": {"times": 4}},
                    {"name": "verdict", "role": "judge"},
                ],
            },
            {"name": "last", "role": "solver"},
        ],
        "result": "nodes.last.output",
    }
)
RUN = TrainingRunSpec.model_validate({"algorithm": {"rolloutsPerTask": 8}, "schedule": {"tasksPerStep": 5}})


@pytest.mark.parametrize(
    ("by", "most"),
    [
        (["task", "role", "visit"], 8),
        (["role", "visit"], 8 * 5),
        (["task", "role"], 8 * (3 * 4 + 1)),
        (["task", "role", "node"], 8 * 3 * 4),
        (["trajectory", "role", "visit"], 1),
        (["trajectory", "role"], 3 * 4 + 1),
        (["trajectory", "role", "node", "rounds"], 4),
        (["trajectory", "role", "node", "rounds", "tries"], 1),
        (["trajectory", "role", "rounds"], 4 + 1),
        (["trajectory", "role", "visit.prompt"], 3 * 4 + 1),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else str(value),
)
def test_a_group_is_bounded_by_rollouts_loops_and_items(by: list[str], most: int):
    assert most_in_group(WORKFLOW, RUN, roles=["solver"], by=by) == most


def test_without_the_role_all_trained_roles_share_a_group():
    assert most_in_group(WORKFLOW, RUN, roles=["solver", "judge"], by=["trajectory"]) == 3 * 4 + 3 + 1


def test_a_workflow_as_code_is_bounded_by_its_calls():
    given: dict[str, Any] = WORKFLOW.model_dump(by_alias=True, exclude_unset=True, exclude={"nodes", "result"})
    code = WorkflowSpec.model_validate({**given, "python": {"entrypoint": "team:run", "maxCalls": 9}})
    assert most_in_group(code, RUN, roles=["solver"], by=["task", "role"]) == 8 * 9
    assert most_in_group(code, RUN, roles=["solver"], by=["task", "role", "visit"]) == 8
