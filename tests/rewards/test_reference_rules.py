"""Rewards of iterative search (M-ASK) and of reflective code, against the reference system's rules written out here.

Random trajectories: the rules know nothing of the workflow's language, only what each role replied.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.field import FieldWorkflow, field_workflow
from support.playing import Answering, by_hash, played
from unitymas.api import shapes
from unitymas.api.records import TaskRow, Trajectory
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.tools.retriever import Retriever

TRAJECTORIES = 1000
GOLD = ["Ada Lovelace", "the Countess of Lovelace"]


@dataclass
class Expected:
    """What the rules give, call by call, and what happened on the way."""

    rewards: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """Role and reward of every call, in order."""
    seen: Counter[str] = field(default_factory=Counter[str])

    def add(self, role: str, value: float, *, parsed: bool) -> None:
        """One call's reward: its own, and -1 where its format is broken."""
        self.rewards.append((role, value if parsed else value - 1.0))
        self.seen["unparsed"] += not parsed
        self.seen["non-zero"] += value != 0.0


def replies(trajectory: Trajectory) -> Iterator[tuple[str, str]]:
    """Role and reply of every call, in order."""
    return ((visit.role, visit.text) for visit in trajectory.visits if visit.role)


def earned(trajectory: Trajectory) -> list[tuple[str, float]]:
    """Role and reward of every call, in order, as the RewardSpec gives them."""
    return [(visit.role, visit.reward) for visit in trajectory.visits if visit.role]


def f1(answer: str) -> float:
    """Overlap of words, the best over the references: lower case, no punctuation, no articles."""

    def words(text: str) -> Counter[str]:
        bare = "".join(letter for letter in text.lower() if letter not in string.punctuation)
        return Counter(word for word in bare.split() if word not in ("a", "an", "the"))

    def one(gold: str) -> float:
        mine, theirs = words(answer), words(gold)
        common = (mine & theirs).total()
        return 2.0 * common / (mine.total() + theirs.total()) if common else 0.0

    return max(one(gold) for gold in GOLD)


def tagged(text: str, tag: str) -> tuple[str, bool]:
    """What stands in the tag; else the whole text, unparsed."""
    opened, closed = f"<{tag}>", f"</{tag}>"
    if opened in text and closed in text:
        return text.split(opened)[1].split(closed)[0].strip(), True
    return text.strip(), False


MASK = {
    "planner": [
        '{"steps": [{"question": "who?", "answer": "Ada"}], "final": "Ada Lovelace"}',
        '{"steps": [{"question": "who?", "answer": "x"}, {"question": "when?", "answer": "y"}], "final": "Ada Byron"}',
        '{"steps": [], "final": "nobody"}',
        "I have no plan",
    ],
    "searcher": ["<search>who</search>"] * 4 + ["a bare query", "<search>END</search>", "END"],
    "summarizer": ["<evidence>Ada did</evidence>", "<evidence>" + "word " * 76 + "</evidence>", "bare evidence"],
    "updater": ["add", "t0", "t1", "t4", "t8", "replace it"],
    "answerer": [
        "<final_answer>Ada Lovelace</final_answer>",
        "<final_answer>Ada Byron</final_answer>",
        "<final_answer>nobody</final_answer>",
        "The Countess",
    ],
}


def mask_rules(trajectory: Trajectory) -> Expected:
    """Plan: F1 of its own answer. Answer t: F_t. Search, summary, update t: F_t - F_(t-1). Stop: 0. Format: -1."""
    expected = Expected()
    calls = replies(trajectory)
    role, text = next(calls)
    plan: dict[str, Any] = json.loads(text) if text.startswith("{") else {"steps": [], "final": ""}
    steps = len(plan["steps"])
    expected.add(role, f1(plan["final"]), parsed=text.startswith("{"))
    role, text = next(calls)
    answer, parsed = tagged(text, "final_answer")
    before = f1(answer)
    expected.add(role, before, parsed=parsed)
    while (call := next(calls, None)) is not None:
        query, query_parsed = tagged(call[1], "search")
        if query == "END":
            expected.add("searcher", 0.0, parsed=query_parsed)
            expected.seen["early"] += 1
            break
        evidence, evidence_parsed = tagged(next(calls)[1], "evidence")
        target = next(calls)[1]
        answer, answer_parsed = tagged(next(calls)[1], "final_answer")
        after = f1(answer)
        expected.add("searcher", after - before, parsed=query_parsed)
        expected.add("summarizer", after - before, parsed=evidence_parsed and len(evidence.split(" ")) <= 75)
        known = target == "add" or target in [f"t{number}" for number in range(min(steps, 8))]
        expected.add("updater", after - before, parsed=known)
        steps += target not in [f"t{number}" for number in range(min(steps, 8))]
        expected.add("answerer", after, parsed=answer_parsed)
        before = after
    assert next(calls, None) is None
    return expected


def rate_of(program: str, tests: Sequence[object]) -> float:
    """The share of hidden tests that a program passes: what it says; an empty one passes none."""
    return float(program or 0.0)


def verified(arguments: Mapping[str, object]) -> dict[str, object]:
    """The verifier's answer: a program of these tests is its share of passed tests, spelt out."""
    rate = rate_of(str(arguments["program"]), [])
    return {"passRate": rate, "passed": rate == 1.0, "error": str(rate)}


VERIFIER = Answering(shapes.record(passRate=shapes.NUMBER, passed=shapes.BOOL, error=shapes.STRING), verified)


def with_the_verifier(workflow: dict[str, Any], reward: dict[str, Any]) -> None:
    """Python in place of the sandbox, which comes later."""
    returns = {"passRate": "number", "passed": "bool", "error": "string"}
    workflow["tools"] = [{"name": "tests", "python": {"entrypoint": "test:run"}, "returns": returns}]
    arguments = {"program": "visit.output", "tests": "task.hidden_tests"}
    python = {"entrypoint": f"{__name__}:rate_of", "with": arguments}
    reward["metrics"][0] = {"name": "pass_rate", "at": ["code"], "python": python}


CODE = {
    "planner": ["<plan>a plan</plan>", "<plan>b</plan>", "bare plan"],
    "coder": [f"<code>{rate}</code>" for rate in (0.0, 0.25, 0.5, 0.75, 1.0)] + ["no code"],
    "reflector": ["<reflection>better</reflection>", "bare"],
}


def code_rules(trajectory: Trajectory) -> Expected:
    """Plan and code t: P_0 or P_t - P_(t-1). Reflection t: P_(t+1) - P_t, 0 where no turn follows. Format: -1."""
    expected = Expected()
    calls = list(replies(trajectory))
    coded = [tagged(text, "code") for role, text in calls if role == "coder"]
    rates = [float(code) if parsed else 0.0 for code, parsed in coded]
    expected.seen["early"] += rates[-1] == 1.0 and len(rates) < 3
    turn = -1
    for role, text in calls:
        turn += role == "planner"
        gain = rates[turn] - (rates[turn - 1] if turn else 0.0)
        match role:
            case "planner":
                expected.add(role, gain, parsed=tagged(text, "plan")[1])
            case "coder":
                expected.add(role, gain, parsed=coded[turn][1])
            case _:
                following = rates[turn + 1] - rates[turn] if turn + 1 < len(rates) else 0.0
                expected.add(role, following, parsed=tagged(text, "reflection")[1])
    return expected


def check(one: FieldWorkflow, script: Mapping[str, Sequence[str]], rules: Any, fields: Any, tools: Any) -> Counter[str]:
    """Rewards of random trajectories equal the rules'. Returns what happened in them."""
    group = ScriptedGroup("m", by_hash(script, seed=11))
    tasks = [TaskRow(f"t{number}", fields) for number in range(TRAJECTORIES)]
    seen: Counter[str] = Counter()
    for trajectory in played(one.workflow, group, tasks, tools=tools, rewards=one.rewards):
        expected: Expected = rules(trajectory)
        assert [role for role, _ in expected.rewards] == [role for role, _ in earned(trajectory)]
        values = [value for _, value in earned(trajectory)]
        assert [value for _, value in expected.rewards] == pytest.approx(values, abs=1e-12), trajectory.id
        seen += expected.seen
        seen["lengths"] |= 1 << len(trajectory.visits)
    return seen


def test_iterative_search_is_rewarded_by_the_reference_rules() -> None:
    fields = {"question": "who?", "answers": GOLD}
    seen = check(field_workflow("05"), MASK, mask_rules, fields, {"wiki": Retriever(PASSAGES, top_k=5)})
    assert min(seen["early"], seen["unparsed"], seen["non-zero"]) > TRAJECTORIES // 10
    assert seen["lengths"].bit_count() == 4  # stopped in the first, second or third turn, or never


PASSAGES = [{"id": str(number), "title": "who", "text": f"who {number}"} for number in range(3)]


def test_reflective_code_is_rewarded_by_the_reference_rules() -> None:
    fields = {"problem": "p", "visible_tests": [], "hidden_tests": []}
    one = field_workflow("06", change=with_the_verifier)
    seen = check(one, CODE, code_rules, fields, {"tests": VERIFIER})
    assert min(seen["early"], seen["unparsed"], seen["non-zero"]) > TRAJECTORIES // 10
    assert seen["lengths"].bit_count() == 3  # solved in the first or second turn, or not before the third
