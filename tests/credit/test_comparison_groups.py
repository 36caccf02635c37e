"""Comparison groups, and the rows that each model group gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.algorithm import Algorithm
from unitymas.api.errors import Failure
from unitymas.api.records import Call, Row, TaskRow, Trajectory, Visit
from unitymas.credit import group_key, rows

MODELS = {"searcher": "seeker", "answerer": "reasoner", "critic": "reasoner"}


def call(name: str) -> Call:
    return Call(name, "m", "stop", 4, 3, 0, 0, 0.0, 1.0)


def visit(role: str, place: int, reward: float = 0.0, *, failure: Failure | None = None) -> Visit:
    key = f"turns[{place}].{role}"
    return Visit(
        key=key,
        node=role,
        order=((False, 0), (False, place)),
        parents=(),
        role=role,
        turns={"turns": place},
        items={"solve": 7},
        prompt=f"prompt of {role}",
        calls=(call(f"{key}/0"),),
        rewards={"r": reward},
        failure=failure,
    )


def trajectory(*visits: Visit, task: str = "q1", rollout: int = 0, failure: Failure | None = None) -> Trajectory:
    return Trajectory(TaskRow(task, {}), 3, rollout, visits=list(visits), failure=failure)


def evaluate(expression: str, of: Visit) -> object:
    return {"visit.prompt": of.prompt, "visit.output": {"b": [1], "a": "x"}, "visit.turn + 1": of.turn + 1}[expression]


def rows_of(
    *trajectories: Trajectory, algorithm: Mapping[str, object] | None = None, trained: set[str] | None = None
) -> dict[str, list[Row]]:
    return rows(
        trajectories,
        algorithm=Algorithm.model_validate(algorithm or {}),
        model_of=MODELS,
        trained=trained or set(MODELS),
        evaluate=evaluate,
    )


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (["task", "role", "visit"], "task=q1|role=searcher|visit=turns[2].searcher"),
        (["trajectory", "node"], "trajectory=train/3/q1/0|node=searcher"),
        (["task", "turns"], "task=q1|turns=2"),
        (["task", "solve"], "task=q1|solve=7"),
        (["elsewhere"], "elsewhere="),
        (["visit.prompt"], "visit.prompt=prompt of searcher"),
        (["visit.turn + 1"], "visit.turn + 1=3"),
        (["visit.output"], 'visit.output={"a": "x", "b": [1]}'),
    ],
)
def test_a_group_is_named_by_the_parts_it_compares(by: list[str], expected: str) -> None:
    assert group_key(trajectory(), visit("searcher", 2), by, evaluate) == expected


@given(st.text(max_size=200), st.text(max_size=200))
def test_groups_are_equal_only_for_equal_values(one: str, other: str) -> None:
    keys = [
        group_key(trajectory(), visit("a", 0), ["task", "visit.x"], lambda _, __, text=text: text)
        for text in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)
    assert all(len(key) < 120 and key.count("|") == 1 for key in keys)


def test_each_model_gets_the_visits_of_its_trained_roles() -> None:
    run = trajectory(visit("searcher", 0), visit("answerer", 1), visit("critic", 2))
    got = rows_of(run, trained={"searcher", "answerer"})
    assert {model: [row.role for row in mine] for model, mine in got.items()} == {
        "reasoner": ["answerer"],
        "seeker": ["searcher"],
    }
    assert got["seeker"][0] == Row(
        visit="train/3/q1/0/turns[0].searcher",
        calls=("turns[0].searcher/0",),
        role="searcher",
        trajectory="train/3/q1/0",
        reward=0.0,
        group="task=q1|role=searcher|visit=turns[0].searcher",
    )


def test_visits_of_another_model_in_the_group_travel_along_as_numbers() -> None:
    run = trajectory(visit("searcher", 0, 1.0), visit("answerer", 1, 2.0))
    got = rows_of(run, algorithm={"compare": {"by": ["task"]}})
    assert [(row.role, row.foreign, row.calls, row.reward) for row in got["seeker"]] == [
        ("searcher", False, ("turns[0].searcher/0",), 1.0),
        ("answerer", True, (), 2.0),
    ]
    assert [row.foreign for row in got["reasoner"]] == [True, False]


def test_an_estimator_without_groups_gets_no_foreign_visits() -> None:
    run = trajectory(visit("searcher", 0), visit("answerer", 1))
    got = rows_of(run, algorithm={"compare": {"by": ["task"]}, "estimator": "reinforce++"})
    assert not any(row.foreign for mine in got.values() for row in mine)


def test_infrastructure_failures_are_in_neither_loss_nor_baseline() -> None:
    broken = trajectory(visit("searcher", 0), rollout=1, failure=Failure.INFRASTRUCTURE)
    whole = trajectory(visit("searcher", 0), visit("searcher", 1, failure=Failure.INFRASTRUCTURE))
    assert [row.visit for row in rows_of(whole, broken)["seeker"]] == ["train/3/q1/0/turns[0].searcher"]


def test_policy_failures_and_scored_deadlines_are_trained_on() -> None:
    late = trajectory(visit("searcher", 0, failure=Failure.POLICY), failure=Failure.DEADLINE)
    assert len(rows_of(late)["seeker"]) == 1
    dropped = rows(
        [late],
        algorithm=Algorithm.model_validate({}),
        model_of=MODELS,
        trained=set(MODELS),
        evaluate=evaluate,
        left_out={Failure.INFRASTRUCTURE, Failure.DEADLINE},
    )
    assert dropped == {}


def test_a_visit_without_a_call_is_no_act_of_the_policy() -> None:
    silent = visit("searcher", 0)
    silent.calls = ()
    assert rows_of(trajectory(silent)) == {}


def test_roles_may_compare_and_discount_their_own_way() -> None:
    run = trajectory(visit("searcher", 0, 1.0), visit("answerer", 1, 5.0), visit("searcher", 2, 2.0))
    algorithm = {"roles": {"searcher": {"compare": {"by": ["task", "visit.prompt"]}, "returns": "toGo", "gamma": 0.5}}}
    got = rows_of(run, algorithm=algorithm)
    assert [row.reward for row in got["seeker"]] == [2.0, 2.0]  # the answerer's 5 is another role's
    assert {row.group for row in got["seeker"]} == {"task=q1|visit.prompt=prompt of searcher"}


def test_arrival_order_changes_no_row() -> None:
    runs = [trajectory(visit("searcher", 0), visit("answerer", 1), rollout=number) for number in range(4)]
    algorithm = {"compare": {"by": ["task"]}}
    assert rows_of(*runs, algorithm=algorithm) == rows_of(*runs[::-1], algorithm=algorithm)
    assert replace(rows_of(*runs)["seeker"][0], group="") == replace(rows_of(*runs[::-1])["seeker"][0], group="")
