"""Rules that every workflow keeps, whatever its shape, its replies and the order in which they come."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from support.playing import ECHO, Streaming, by_hash, echo, one_model, played, record_of
from unitymas.api import shapes
from unitymas.api.records import TaskRow, Trajectory, Visit
from unitymas.api.workflow import WorkflowSpec
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.rewards.series import compare
from unitymas.workflow import Workflow, prepare

ROLES = [
    {"name": "word", "prompt": "{{ turn }}/{{ index }}", "output": {"format": "choice", "choices": ["a", "b", "stop"]}},
    {"name": "many", "prompt": "list", "output": {"format": "json", "shape": ["string"]}},
]
REPLIES = {"word": ["a", "b", "stop", "nonsense"], "many": ["[]", '["a"]', '["a", "b", "x"]', "nonsense"]}
CONDITIONS = ("nodes.first.output == 'a'", "size(state.log) < 3", "turn < 1", "index == 0", "nodes.list.ok")
REPEATS: tuple[Mapping[str, Any], ...] = (
    {},
    {"loop": 2},
    {"loop": 3},
    {"forEach": {"times": 2}},
    {"forEach": {"times": 2, "parallel": True}},
    {"forEach": {"items": "nodes.list.output", "max": 2}},
    {"forEach": {"items": "nodes.list.output", "as": "it", "parallel": True}},
)


@dataclass
class _Names:
    """Fresh node names."""

    used: int = 0

    def __call__(self) -> str:
        self.used += 1
        return f"n{self.used}"


@dataclass(frozen=True)
class _Around:
    """Where a node is made: how deep, whether `until` has a loop to leave, whether `set` would race."""

    depth: int = 1
    loops: bool = False
    parallel: bool = False
    names: _Names = field(default_factory=_Names)


def _node(draw: st.DrawFn, around: _Around, name: str = "") -> dict[str, Any]:
    repeat = draw(st.sampled_from(REPEATS)) if not name else {}  # one `default` may stand in another
    name = name or around.names()
    apart = bool(repeat.get("forEach", {}).get("parallel"))
    node: dict[str, Any] = {"name": name, **repeat}
    if draw(st.booleans()):
        node["when"] = draw(st.sampled_from(CONDITIONS))
    kinds = ["word", "word", "echo"] if around.depth == 3 else ["word", "echo", "block", "switch", "parallel"]
    kind = draw(st.sampled_from(kinds))
    loops = around.loops or "loop" in repeat
    inside = replace(around, depth=around.depth + 1, loops=loops and not apart, parallel=around.parallel or apart)
    match kind:
        case "word":
            node["role"] = "word"
        case "echo":
            node |= {"tool": "echo", "with": {"query": "string(index)"}}
        case "parallel":
            inside = replace(inside, loops=False, parallel=True)
            node |= {"parallel": True, "nodes": _nodes(draw, inside)}
        case "switch":
            named = _node(draw, inside)
            switch = f"nodes.first.output == 'a' ? '{named['name']}' : 'other'"
            node |= {"switch": switch, "nodes": [named, _node(draw, inside, "default")]}
        case _:
            node["nodes"] = _nodes(draw, inside)
    if loops and draw(st.booleans()):
        node["until"] = f"nodes.{name}.output == 'stop'" if kind == "word" and not apart else "turn == 1"
        if "forEach" in repeat:
            node["until"] = f"size(nodes.{name}) == 1"
    if not around.parallel and draw(st.booleans()):
        node["set"] = {"log": f"state.log + ['{name}']"}
    return node


def _nodes(draw: st.DrawFn, around: _Around) -> list[dict[str, Any]]:
    return [_node(draw, around) for _ in range(draw(st.integers(1, 3)))]


@st.composite
def node_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The nodes of a workflow, up to three levels deep."""
    return [{"name": "first", "role": "word"}, {"name": "list", "role": "many"}, *_nodes(draw, _Around())]


def workflow_of(nodes: Sequence[Mapping[str, Any]]) -> Workflow:
    """The workflow of these nodes, whose state is a log."""
    spec = {
        "input": {},
        "state": {"log": ["string"]},
        "roles": ROLES,
        "tools": [ECHO],
        "nodes": nodes,
        "result": "string(size(state.log))",
    }
    parsed = WorkflowSpec.model_validate(spec)
    return prepare(parsed, one_model(parsed))


def play_once(workflow: Workflow, seed: int, *, disorder: int | None = None) -> Trajectory:
    """One trajectory; with `disorder` answers and tools come back in an order of its own."""
    script = by_hash(REPLIES, seed)
    random = None if disorder is None else Random(disorder)
    group = ScriptedGroup("m", script) if random is None else Streaming("m", script, random)
    return played(workflow, group, [TaskRow("t", {})], tools={"echo": echo(random)})[0]


def before(a: Visit, b: Visit) -> bool:
    return compare(a.order, b.order) == -1


@given(node_lists(), st.integers(0, 1000))
@settings(max_examples=100)
def test_a_workflow_keeps_its_word(nodes: list[dict[str, Any]], seed: int) -> None:
    workflow = workflow_of(nodes)
    one = play_once(workflow, seed)
    visits = one.visits
    event(f"visits: {min(len(visits) // 10, 5)}0s")
    assert one.calls <= workflow.most_calls
    assert len({visit.key for visit in visits}) == len({visit.order for visit in visits}) == len(visits)
    for visit in visits:
        earlier = [other for other in visits if before(other, visit)]
        direct = {other.key for other in earlier if not any(before(other, between) for between in earlier)}
        assert set(visit.parents) == direct
        assert sorted(map(int, re.findall(r"\[(\d+)\]", visit.key))) == sorted(
            [*visit.turns.values(), *visit.items.values()]
        )
        assert visit.role != "word" or visit.prompt == f"{visit.turn}/{visit.index}"
    for name, shape in workflow.compiled.nodes.items():
        assert shapes.conform(shape, one.nodes[name]) == one.nodes[name]


@given(node_lists(), st.integers(0, 1000), st.lists(st.integers(0, 1000), min_size=2, max_size=2))
def test_arrival_order_changes_no_record(nodes: list[dict[str, Any]], seed: int, disorders: list[int]) -> None:
    workflow = workflow_of(nodes)
    expected = record_of(play_once(workflow, seed))
    for disorder in disorders:
        assert record_of(play_once(workflow, seed, disorder=disorder)) == expected
