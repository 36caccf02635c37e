from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api import shapes
from unitymas.api.errors import Author, Deadline, Findings
from unitymas.api.records import Call, Order, TaskRow, Trajectory, Visit
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.shapes import INT, NUMBER, STRING, ListOf, Shape, record
from unitymas.rewards.compile import RewardProgram, compile_rewards
from unitymas.rewards.score import score
from unitymas.rewards.worker import ProcessPool

PASSAGES = ListOf(record(id=STRING, title=STRING, text=STRING, score=NUMBER))
ROLE = record(output=STRING, text=STRING, ok=shapes.BOOL, ran=shapes.BOOL, calls=INT)
TOOL = record(passages=PASSAGES, ok=shapes.BOOL, ran=shapes.BOOL)
PLAN = record(steps=ListOf(STRING))
F1 = {"name": "f1", "tokenF1": {"prediction": "result", "references": "task.answers"}}
FOUND = "visit.passages.exists(p, p.id == task.documents[visit.turn]) ? 1.0 : 0.0"
HIT = {"name": "hit", "at": ["retrieve"], "cel": FOUND}


def compiled(spec: Mapping[str, object]) -> tuple[RewardProgram, Findings]:
    nodes: dict[str, Shape] = {"search": ROLE, "retrieve": TOOL, "answer": ROLE}
    return compile_rewards(
        RewardSpecSpec.model_validate(spec),
        task={"question": STRING, "answers": ListOf(STRING), "documents": ListOf(STRING)},
        nodes=nodes,
        state={"hits": PASSAGES},
        result=STRING,
        role_outputs={"searcher": STRING, "answerer": STRING, "planner": PLAN},
        node_values={"search": ROLE, "retrieve": TOOL, "answer": ROLE},
    )


def program_of(
    *metrics: Mapping[str, object], rewards: Sequence[Mapping[str, object]] = (), **more: object
) -> RewardProgram:
    if "python" not in more:
        more["rewards"] = rewards or [{"name": "any", "roles": ["answerer"], "value": "0.0"}]
    program, findings = compiled({"metrics": metrics, **more})
    findings.raise_if_any()
    return program


def findings_of(*metrics: Mapping[str, object], value: str = "0.0", **more: object) -> list[tuple[str, str, str]]:
    rewards = [{"name": "any", "roles": ["answerer"], "value": value}]
    _, findings = compiled({"metrics": metrics, "rewards": rewards, **more})
    return [(finding.check, finding.path, finding.hint) for finding in findings.items]


def at(*positions: int) -> Order:
    return tuple((False, position) for position in positions)


def role_visit(key: str, role: str, order: Order, output: str, *, ok: bool = True, turn: int | None = None) -> Visit:
    call = Call(key, "model", "stop", 10, 3, 0, 0, 0.0, 1.0)
    value = {"output": output, "text": output, "ok": ok, "ran": True, "calls": 1}
    turns = {} if turn is None else {"hops": turn}
    node = key.split(".")[-1]
    return Visit(key, node, order, (), role=role, turns=turns, prompt="asked", text=output, value=value, calls=(call,))


def tool_visit(turn: int, found: str) -> Visit:
    passages = [{"id": found, "title": found, "text": found, "score": 1.0}]
    value = {"passages": passages, "ok": True, "ran": True}
    return Visit(
        f"hops[{turn}].retrieve", "retrieve", at(0, turn, 1), (), tool="wiki", turns={"hops": turn}, value=value
    )


def trajectory(result: str = "the moon", found: tuple[str, str] = ("d0", "d9")) -> Trajectory:
    visits: list[Visit] = []
    for turn in range(2):
        visits.append(role_visit(f"hops[{turn}].search", "searcher", at(0, turn, 0), "query", ok=turn == 0, turn=turn))
        visits.append(tool_visit(turn, found[turn]))
    visits.append(role_visit("answer", "answerer", at(1), result))
    fields = {"question": "where?", "answers": ["moon"], "documents": ["d0", "d1"]}
    nodes = {name: visits[at].value for name, at in (("search", 2), ("retrieve", 3), ("answer", 4))}
    return Trajectory(TaskRow("t", fields), 0, 0, visits=visits, state={"hits": []}, nodes=nodes, result=result)


def scored(program: RewardProgram, given: Trajectory | None = None, *, folder: Path | None = None) -> Trajectory:
    one = given or trajectory()

    async def run() -> None:
        pool = ProcessPool(python_paths=[str(folder)] if folder else [])
        try:
            await score(one, program, workers=pool, timeout_s=30.0)
        finally:
            await pool.close()

    asyncio.run(run())
    return one


def rewards_of(one: Trajectory) -> dict[str, Mapping[str, float]]:
    return {visit.key: visit.rewards for visit in one.visits}


def test_each_visit_of_the_roles_gets_every_part_by_name_and_tools_get_none() -> None:
    rewards = [
        {"name": "answer", "roles": ["searcher", "answerer"], "value": "f1"},
        {"name": "hit", "roles": ["searcher"], "value": "hit.after", "weight": 0.5},
    ]
    one = scored(program_of(F1, HIT, rewards=rewards, score="f1"))
    assert rewards_of(one) == {
        "hops[0].search": {"answer": 1.0, "hit": 0.5},
        "hops[0].retrieve": {},
        "hops[1].search": {"answer": 1.0, "hit": 0.0},
        "hops[1].retrieve": {},
        "answer": {"answer": 1.0},
    }
    assert one.metrics == {"f1": 1.0, "hit": [1.0, 0.0]}
    assert one.score == 1.0


def test_a_split_reward_is_divided_among_the_visits_that_receive_it() -> None:
    rewards = [{"name": "r", "roles": ["searcher", "answerer"], "value": "f1", "share": "split", "weight": 6.0}]
    one = scored(program_of(F1, rewards=rewards))
    assert [visit.rewards["r"] for visit in one.visits if visit.role] == [2.0, 2.0, 2.0]


def test_a_reply_that_does_not_parse_is_rewarded_all_the_same() -> None:
    rewards = [{"name": "format", "roles": ["searcher"], "value": "visit.ok ? 0.0 : -1.0"}]
    one = scored(program_of(rewards=rewards))
    assert [visit.rewards["format"] for visit in one.visits if visit.role == "searcher"] == [0.0, -1.0]


def test_a_visit_that_never_ran_gets_nothing_and_is_no_reading() -> None:
    one = trajectory()
    one.visits[-1].value = {}
    one.visits[3].value = {}
    rewards = [{"name": "r", "roles": ["searcher", "answerer"], "value": "1.0", "share": "split"}]
    scored(program_of(HIT, rewards=rewards), one)
    assert one.visits[-1].rewards == {}
    assert one.visits[0].rewards == {"r": 0.5}
    assert one.metrics == {"hit": [1.0]}


def test_metrics_see_those_before_them_and_usage() -> None:
    metrics = [HIT, {"name": "share", "cel": "hit.mean * hit.count"}, {"name": "cost", "cel": "share + usage.calls"}]
    usage = {"name": "usage_all", "cel": "usage.visits * 100.0 + usage.toolCalls * 10.0 + usage.outputTokens"}
    one = scored(program_of(*metrics, usage))
    assert one.metrics == {"hit": [1.0, 0.0], "share": 1.0, "cost": 4.0, "usage_all": 329.0}


def test_whole_numbers_become_doubles() -> None:
    one = scored(
        program_of({"name": "whole", "cel": "2 + 1"}, {"name": "turns", "at": ["search"], "cel": "visit.turn"})
    )
    assert one.metrics == {"whole": 3.0, "turns": [0.0, 1.0]}
    assert isinstance(one.metrics["whole"], float)


@given(st.lists(st.sampled_from(["d0", "d1", "d2"]), min_size=2, max_size=2))
def test_deltas_of_sequential_visits_sum_to_the_last_reading(found: list[str]) -> None:
    rewards = [{"name": "progress", "roles": ["searcher"], "value": "hit.after - hit.before"}]
    one = scored(program_of(HIT, rewards=rewards), trajectory(found=(found[0], found[1])))
    assert sum(visit.reward for visit in one.visits) == float(found[1] == "d1")


def test_a_trajectory_that_ended_early_is_scored_with_empty_values() -> None:
    one = trajectory()
    one.nodes, one.state, one.result = {}, {}, ""
    scored(program_of(F1, {"name": "none", "cel": "nodes.answer.output == '' && state.hits == [] ? 1.0 : 0.0"}), one)
    assert one.metrics == {"f1": 0.0, "none": 1.0}


@pytest.mark.parametrize("text", ["0.0 / 0.0", "1.0 / 0.0"])
def test_a_value_that_is_no_finite_number_is_the_authors_and_names_metric_and_visit(text: str) -> None:
    with pytest.raises(Author, match=r"metric gain .*spec\.metrics\[0\]\.cel.*visit hops\[0\]\.search"):
        scored(program_of({"name": "gain", "at": ["search"], "cel": text}))
    with pytest.raises(Author, match=r"spec\.rewards\[0\]\.value, visit answer"):
        scored(program_of(rewards=[{"name": "r", "roles": ["answerer"], "value": f"double(visit.calls) * ({text})"}]))


def test_an_expression_that_fails_is_the_authors_and_names_metric_and_visit() -> None:
    one = trajectory()
    one.task = TaskRow("t", {**one.task.fields, "documents": ["d0"]})
    with pytest.raises(Author, match=r"metric hit .*visit hops\[1\]\.retrieve"):
        scored(program_of(HIT), one)


def test_a_task_field_of_the_wrong_shape_is_the_authors() -> None:
    one = trajectory()
    one.task = TaskRow("t", {**one.task.fields, "answers": "moon"})
    with pytest.raises(Author, match=r"`task.answers`: found str 'moon'; expected a list, \[string\]"):
        scored(program_of(F1), one)


def test_findings_name_the_field_and_what_would_be_right() -> None:
    assert findings_of({"name": "m", "cel": "visit.ok"}) == [("expression", "spec.metrics[0].cel", "")]
    assert findings_of({"name": "m", "cel": "result == ''"}) == [
        ("expression", "spec.metrics[0].cel", "write `(result == '') ? 1.0 : 0.0`")
    ]
    assert findings_of(F1, {"name": "m", "at": ["answr"], "cel": "0.0"}) == [
        ("unknown-node", "spec.metrics[1].at[0]", "did you mean `answer`?")
    ]
    assert findings_of({"name": "m", "tokenF1": {"prediction": "result", "references": "task.question"}}) == [
        ("expression", "spec.metrics[0].tokenF1.references", "write `[task.question]`")
    ]
    python = {"entrypoint": "mine:m", "with": {"text": "absent"}}
    assert [path for _, path, _ in findings_of({"name": "m", "python": python})] == ["spec.metrics[0].python.with.text"]
    assert [check for check, _, _ in findings_of(F1, F1, {"name": "task", "cel": "0.0"})] == ["metric-name"] * 2
    assert findings_of(HIT, score="hit") == [("score", "spec.score", "add a metric such as `cel: hit.last`")]
    assert findings_of(value="'text'") == [("expression", "spec.rewards[0].value", "")]


def test_what_a_role_does_not_output_is_found_per_role_and_told_once() -> None:
    rewards = [{"name": "r", "roles": ["planner", "searcher", "answerer"], "value": "double(size(visit.output.steps))"}]
    _, findings = compiled({"rewards": rewards})
    assert [finding.path for finding in findings.items] == ["spec.rewards[0].value"]


def test_what_this_release_cannot_run_is_found_as_later() -> None:
    rate = {"name": "m", "passRate": {"program": "result", "tests": "task.answers"}}
    symbolic = {"name": "n", "mathEqual": {"prediction": "result", "references": "task.answers", "rule": "symbolic"}}
    assert [(check, path) for check, path, _ in findings_of(rate, symbolic)] == [
        ("later", "spec.metrics[0].passRate"),
        ("later", "spec.metrics[1].mathEqual.rule"),
    ]


USERS = '''
import time

def longer(text, than): return len(text) > than
def hangs(): time.sleep(600)
def nothing(): return None
def shares(trajectory):
    """The trajectory's own records, and the metrics before."""
    for visit in trajectory.visits:
        if visit.role:
            yield visit.key, "length", len(visit.text) + trajectory.metrics["f1"]
def stranger(trajectory): return [("absent", "r", 1.0)]
def endless(trajectory): return [("answer", "r", float("inf"))]
def twice(trajectory): return [("answer", "r", 1.0)] * 2
def summed(trajectory): return [("answer", "r", 1e308), ("answer", "s", 1e308)]
def single(trajectory):
    import numpy
    return [("answer", "r", numpy.float32(0.5))]
def odd(trajectory): return [("answer", 1.0)]
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(USERS)
    return tmp_path


def test_a_python_metric_gets_its_arguments_by_keyword(folder: Path) -> None:
    python = {"entrypoint": "mine:longer", "with": {"text": "visit.output", "than": "5"}}
    one = scored(program_of({"name": "m", "at": ["search", "answer"], "python": python}), folder=folder)
    assert one.metrics == {"m": [0.0, 0.0, 1.0]}


def test_a_python_metric_that_gives_no_number_or_hangs_is_classified(folder: Path) -> None:
    with pytest.raises(Author, match="found None; expected a finite number"):
        scored(program_of({"name": "m", "python": {"entrypoint": "mine:nothing"}}), folder=folder)
    with pytest.raises(Deadline):
        scored(program_of({"name": "m", "python": {"entrypoint": "mine:hangs"}}, timeout="1s"), folder=folder)


def test_one_function_may_stand_for_all_rewards(folder: Path) -> None:
    one = scored(program_of(F1, python={"entrypoint": "mine:shares"}), folder=folder)
    assert one.visits[-1].rewards == {"length": 9.0}
    assert one.visits[1].rewards == {}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stranger", "visit `absent`"),
        ("endless", "inf"),
        ("twice", "second time"),
        ("summed", "visit answer: r, s sum to inf"),
        ("odd", r"\('answer', 1.0\)"),
    ],
)
def test_what_such_a_function_gets_wrong_is_the_authors(folder: Path, name: str, told: str) -> None:
    with pytest.raises(Author, match=told):
        scored(program_of(python={"entrypoint": f"mine:{name}"}), folder=folder)


def test_computer_algebra_runs_in_the_workers() -> None:
    equal = {"prediction": "'1/2'", "references": "['0.50']", "rule": "prm800k"}
    assert scored(program_of({"name": "m", "mathEqual": equal})).metrics == {"m": 1.0}


def test_a_reward_may_be_any_type_of_number_as_a_metric_may(folder: Path) -> None:
    one = scored(program_of(python={"entrypoint": "mine:single"}), folder=folder)
    assert one.visits[-1].rewards == {"r": 0.5}
    assert type(one.visits[-1].rewards["r"]) is float


def test_rewards_that_overflow_are_the_authors() -> None:
    large = {"roles": ["answerer"], "value": "1e308"}
    with pytest.raises(Author, match=r"rewards\[0\].*visit answer, reward large: found 1e\+308, inf with its weight"):
        scored(program_of(rewards=[{"name": "large", "weight": 10.0, **large}]))
    with pytest.raises(Author, match="visit answer: large, larger sum to inf"):
        scored(program_of(rewards=[{"name": "large", **large}, {"name": "larger", **large}]))
