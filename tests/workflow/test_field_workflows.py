"""The workflows of the field, played on scripted models: the records, groups and rewards that their comments state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.field import FIELD_WORKFLOWS, TEXTS, field_workflow, groups_of, play_field, rewards_of
from support.playing import keys, parents, visit_of
from unitymas.api.load import read
from unitymas.api.records import Trajectory
from unitymas.api.resources import TrainingRun

QUESTION = {"question": "Who was the father of Ada Lovelace?", "answers": ["Byron"]}
PROGRAMS = '''
"""Programs are expressions of x; a test is its value and what should come out."""

def run_tests(program, tests):
    outcomes = [attempt(program, x) == wanted for x, wanted in tests]
    failed = [x for (x, _), right in zip(tests, outcomes) if not right]
    return {"passRate": rate(program, tests), "passed": all(outcomes), "error": f"wrong for {failed}" if failed else ""}

def rate(program, tests):
    return sum(attempt(program, x) == wanted for x, wanted in tests) / len(tests)

def attempt(program, x):
    try:
        return eval(program, {"x": x})
    except (SyntaxError, NameError):
        return None
'''


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "programs.py").write_text(PROGRAMS)
    return tmp_path


def passages(trajectory: Trajectory, key: str) -> list[str]:
    """Titles that a retrieval found."""
    found: Any = visit_of(trajectory, key).value["passages"]
    return [passage["title"] for passage in found]


def test_01_retrieves_again_with_the_question_when_nothing_was_selected() -> None:
    one = field_workflow("01")
    replies = {
        "rewriter": ["<query>father of Ada</query>"],
        "selector": ['["by"]'],
        "answerer": ["<answer>Byron</answer>"],
    }
    (good,) = play_field(one, replies, QUESTION)
    assert parents(good) == {"rewrite": (), "retrieve": ("rewrite",), "select": ("retrieve",), "answer": ("select",)}
    assert passages(good, "retrieve") == ["Byron", "Ada"]
    assert visit_of(good, "answer").prompt.startswith(TEXTS["Byron"])
    assert rewards_of(good) == {
        "rewrite": {"answer": 1.0, "format": 0.0},
        "select": {"answer": 1.0, "format_select": 0.0},
        "answer": {"answer": 1.0, "format": 0.0},
    }
    (bad,) = play_field(one, {**replies, "selector": ["none of them"], "answerer": ["Byron"]}, QUESTION)
    assert keys(bad) == ["rewrite", "retrieve", "select", "retry", "answer"]
    assert passages(bad, "retry")[0] == "Byron"
    assert TEXTS["Byron"] in visit_of(bad, "answer").prompt
    assert rewards_of(bad) == {
        "rewrite": {"answer": 0.0, "format": 0.0},
        "select": {"answer": 0.0, "format_select": -0.1},
        "answer": {"answer": 0.0, "format": -0.2},
    }
    three = play_field(one, replies, QUESTION, rollouts=3)
    visits = (("rewriter", "rewrite"), ("selector", "select"), ("answerer", "answer"))
    assert groups_of(one, three) == {f"task=t|role={role}|visit={key}": 3 for role, key in visits}


def test_02_retrieves_for_each_sub_question_at_once() -> None:
    one = field_workflow("02")
    replies = {"decomposer": ['["Ada", "London", "engine", "a fourth"]'], "answerer": ["<answer>Byron did</answer>"]}
    (played_once,) = play_field(one, replies, QUESTION)
    found = ("retrieve[0]", "retrieve[1]", "retrieve[2]")
    assert parents(played_once) == {"decompose": (), **dict.fromkeys(found, ("decompose",)), "answer": found}
    assert [dict(visit_of(played_once, key).items) for key in found] == [{"retrieve": at} for at in range(3)]
    assert [passages(played_once, key)[0] for key in found] == ["Ada", "London", "Babbage"]
    f1 = pytest.approx(2 / 3)
    assert rewards_of(played_once) == {key: {"answer": f1, "format": 0.0} for key in ("decompose", "answer")}
    (unparsed,) = play_field(one, {**replies, "decomposer": ["Ada?"]}, QUESTION)
    assert parents(unparsed) == {"decompose": (), "answer": ("decompose",)}
    assert rewards_of(unparsed)["decompose"] == {"answer": f1, "format": -1.0}


def test_03_builds_the_context_from_the_evidence_that_parsed() -> None:
    one = field_workflow("03")
    replies = {
        "decomposer": ['["Ada", "London"]'],
        "extractor": ["<evidence>Byron</evidence>", "nothing"],
        "answerer": ["<answer>Byron</answer>"],
    }
    trajectories = play_field(one, replies, QUESTION, rollouts=2)
    assert parents(trajectories[0]) == {
        "decompose": (),
        "branch[0].retrieve": ("decompose",),
        "branch[0].extract": ("branch[0].retrieve",),
        "branch[1].retrieve": ("decompose",),
        "branch[1].extract": ("branch[1].retrieve",),
        "answer": ("branch[0].extract", "branch[1].extract"),
    }
    assert visit_of(trajectories[0], "answer").prompt.startswith("- Byron\nQuestion")
    format_part = {key: parts["format"] for key, parts in rewards_of(trajectories[0]).items()}
    assert format_part == {"decompose": 0.0, "branch[0].extract": 0.0, "branch[1].extract": -1.0, "answer": 0.0}
    assert groups_of(one, trajectories)["task=t|role=extractor|visit=branch[1].extract"] == 2


def test_04_answers_from_the_selected_passages() -> None:
    one = field_workflow("04")
    replies = {"rewriter": ["Ada Lovelace"], "selector": ['["by"]'], "answerer": ["<answer>Byron</answer>"]}
    (played_once,) = play_field(one, replies, QUESTION)
    assert keys(played_once) == ["rewrite", "retrieve", "select", "answer"]
    assert set(passages(played_once, "retrieve")) == {"Ada", "Byron"}
    answer = visit_of(played_once, "answer")
    assert (TEXTS["Byron"] in answer.prompt, TEXTS["Ada"] in answer.prompt) == (True, False)
    assert rewards_of(played_once) == {
        "rewrite": {"answer": 1.0, "format": -1.0},
        "select": {"answer": 1.0, "format": 0.0},
        "answer": {"answer": 1.0, "format": 0.0},
    }


def test_05_stops_early_and_rewards_every_gain() -> None:
    one = field_workflow("05")
    replies = {
        "planner": ['{"steps": [{"question": "who?", "answer": "Ada"}], "final": "Byron Ada"}'],
        "searcher": ["<search>Ada Lovelace</search>", "<search>END</search>"],
        "summarizer": ["<evidence>Byron is the father</evidence>"],
        "updater": ["t0"],
        "answerer": ["<final_answer>Ada</final_answer>", "<final_answer>Byron</final_answer>"],
    }
    trajectories = play_field(one, replies, QUESTION, rollouts=2)
    turn = [f"turns[0].{node}" for node in ("search", "retrieve", "summary", "update", "answer")]
    assert keys(trajectories[0]) == ["plan", "answer0", *turn, "turns[1].search"]
    assert visit_of(trajectories[0], "turns[1].search").parents == ("turns[0].answer",)
    assert trajectories[0].state["steps"] == [{"question": "Ada Lovelace", "answer": "Byron is the father"}]
    gain = {"progress": 1.0, "format": 0.0}
    assert rewards_of(trajectories[0]) == {
        "plan": {"plan": pytest.approx(2 / 3), "format": 0.0},
        "answer0": {"answer": 0.0, "format": 0.0},
        **dict.fromkeys(("turns[0].search", "turns[0].summary", "turns[0].update"), gain),
        "turns[0].answer": {"answer": 1.0, "format": 0.0},
        "turns[1].search": {"progress": 0.0, "format": 0.0},
    }
    assert groups_of(one, trajectories)["task=t|role=searcher|visit=turns[1].search"] == 2


def with_python_in_place_of_the_sandbox(workflow: dict[str, Any], reward: dict[str, Any]) -> None:
    """The sandbox for model-written code comes later."""
    returns = {"passRate": "number", "passed": "bool", "error": "string"}
    workflow["tools"] = [{"name": "tests", "python": {"entrypoint": "programs:run_tests"}, "returns": returns}]
    arguments = {"program": "visit.output", "tests": "task.hidden_tests"}
    reward["metrics"][0] = {
        "name": "pass_rate", "at": ["code"], "python": {"entrypoint": "programs:rate", "with": arguments},
    }  # fmt: skip


def test_06_rewards_plan_code_and_reflection_with_what_came_of_them(programs: Path) -> None:
    one = field_workflow("06", change=with_python_in_place_of_the_sandbox)
    fields = {"problem": "double x", "visible_tests": [[1, 2]], "hidden_tests": [[1, 2], [2, 4], [3, 6], [0, 0]]}
    replies = {
        "planner": ["<plan>think</plan>"],
        "coder": ["<code>x</code>", "no code", "<code>x * 2</code>"],
        "reflector": ["<reflection>no</reflection>", "bare"],
    }
    (three,) = play_field(one, replies, fields, code=programs)
    assert [key for key in keys(three) if "reflect" in key] == ["turns[0].reflect", "turns[1].reflect"]
    assert three.metrics == {"pass_rate": [0.25, 0.0, 1.0], "solved": 1.0}
    progress = {key: parts["progress"] for key, parts in rewards_of(three).items()}
    assert progress == {
        "turns[0].plan": 0.25, "turns[0].code": 0.25, "turns[0].reflect": -0.25,
        "turns[1].plan": -0.25, "turns[1].code": -0.25, "turns[1].reflect": 1.0,
        "turns[2].plan": 1.0, "turns[2].code": 1.0,
    }  # fmt: skip
    assert [visit.rewards["format"] for visit in three.visits if visit.role == "coder"] == [0.0, -1.0, 0.0]
    assert "wrong for [1]" in visit_of(three, "turns[1].plan").prompt
    (early,) = play_field(one, {**replies, "coder": ["<code>2 * x</code>"]}, fields, code=programs)
    assert parents(early) == {
        "turns[0].plan": (), "turns[0].code": ("turns[0].plan",), "turns[0].verify": ("turns[0].code",),
    }  # fmt: skip
    assert early.score == 1.0


def test_07_refines_only_what_is_not_correct_and_everyone_shares_the_outcome() -> None:
    one = field_workflow("07")
    fields = {"problem": "1 + 1", "answers": ["2"]}
    replies = {
        "solver": ["It is \\boxed{3}."],
        "verifier": ['{"status": "incorrect", "error_type": "sum", "feedback": "count again"}'],
        "refiner": ["It is \\boxed{2}."],
        "finalizer": ["\\boxed{2}"],
    }
    (refined,) = play_field(one, replies, fields)
    assert keys(refined) == ["solve", "verify", "refine", "finish"]
    assert "count again" in visit_of(refined, "refine").prompt
    assert "It is \\boxed{2}." in visit_of(refined, "finish").prompt
    assert {key: parts["correct"] for key, parts in rewards_of(refined).items()} == dict.fromkeys(keys(refined), 1.0)
    right = '{"status": "correct", "error_type": "", "feedback": ""}'
    (short,) = play_field(one, {**replies, "verifier": [right], "finalizer": ["three"]}, fields)
    assert parents(short)["finish"] == ("verify",)
    assert rewards_of(short) == {
        "solve": {"correct": 0.0},
        "verify": {"correct": 0.0, "format": 0.0},
        "finish": {"correct": 0.0, "format": -1.0},
    }


def test_09_compares_tries_at_one_problem_and_proposals_for_one_seed() -> None:
    one = field_workflow("09")
    (path,) = FIELD_WORKFLOWS.glob("09-*.yaml")
    (run,) = (each for each in read([path]).resources.values() if isinstance(each, TrainingRun))
    replies = {
        "proposer": ['{"problem": "2 + 2", "answer": "4"}'],
        "solver": [f"<answer>{answer}</answer>" for answer in (4, 5, 5, 4, 5, 5, 5, 5)],
    }
    trajectories = play_field(one, replies, {"topic": "sums"}, rollouts=4)
    solve = [f"solve[{item}]" for item in range(8)]
    assert parents(trajectories[0]) == {"propose": (), **dict.fromkeys(solve, ("propose",))}
    assert {key: parts for key, parts in rewards_of(trajectories[0]).items() if key != "propose"} == {
        key: {"correct": float(item in (0, 3))} for item, key in enumerate(solve)
    }
    assert rewards_of(trajectories[0])["propose"] == {"learnable": 4 * 0.25 * 0.75}
    assert groups_of(one, trajectories, run.spec.algorithm) == {
        "task=t|role=proposer|visit=propose": 4,
        **{f"trajectory=train/0/t/{rollout}|node=solve": 8 for rollout in range(4)},
    }
    (nothing,) = play_field(one, {**replies, "proposer": ["no idea"]}, {"topic": "sums"})
    assert rewards_of(nothing) == {"propose": {"learnable": -1.0}}


def test_11_runs_what_the_planner_says_and_charges_it() -> None:
    one = field_workflow("11")
    replies = {
        "planner": ['["decompose", "retrieve", "select", "juggle", "respond"]'],
        "decomposer": ['["father of Ada", "engine"]'],
        "selector": ['["by"]'],
        "answerer": ["<answer>Byron</answer>"],
    }
    trajectories = play_field(one, replies, QUESTION, rollouts=2)
    assert parents(trajectories[0]) == {
        "plan": (),
        "execute[0].decompose": ("plan",),
        "execute[1].retrieve[0]": ("execute[0].decompose",),
        "execute[1].retrieve[1]": ("execute[0].decompose",),
        "execute[2].select": ("execute[1].retrieve[0]", "execute[1].retrieve[1]"),
        "execute[4].respond": ("execute[2].select",),
    }
    assert dict(visit_of(trajectories[0], "execute[1].retrieve[1]").items) == {"execute": 1, "retrieve": 1}
    assert visit_of(trajectories[0], "execute[4].respond").prompt.startswith(TEXTS["Byron"] + "Who")
    assert rewards_of(trajectories[0])["plan"] == {"answer": 1.0, "cost": pytest.approx(-0.02 * 6), "format": 0.0}
    assert groups_of(one, trajectories) == {"task=t|role=planner|visit=plan": 2}  # the executors are frozen


def test_12_lets_the_manager_choose_who_speaks() -> None:
    one = field_workflow("12")
    replies = {
        "manager": ["coder", "tester", "whoever", "done"],
        "coder": ["one", "Byron"],
        "tester": ["two"],
    }
    (chat,) = play_field(one, replies, QUESTION)
    assert keys(chat) == [
        "turns[0].pick", "turns[0].speak.coder", "turns[1].pick", "turns[1].speak.tester",
        "turns[2].pick", "turns[2].speak.default", "turns[3].pick",
    ]  # fmt: skip
    assert visit_of(chat, "turns[2].speak.default").parents == ("turns[2].pick",)
    assert visit_of(chat, "turns[2].pick").prompt.splitlines()[1:3] == ["coder: one", "tester: two"]
    assert [parts["correct"] for parts in rewards_of(chat).values()] == [1.0] * 7
    assert [visit.rewards["format"] for visit in chat.visits if visit.role == "manager"] == [0.0, 0.0, -1.0, 0.0]
    (silent,) = play_field(one, {"manager": ["done"]}, QUESTION)
    assert (keys(silent), silent.result) == (["turns[0].pick"], "")
