"""What each construct of the language does, and how its visits are keyed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from support.playing import Script, keys, on_desk, one_model, parents, play_nodes, value_of
from unitymas.api.errors import Author, BadInput, Failure, Infrastructure
from unitymas.api.records import Request, TaskRow, Trajectory
from unitymas.api.workflow import WorkflowSpec
from unitymas.models.engines.scripted import ScriptedGroup
from unitymas.workflow import play, prepare

WORD = {"format": "choice", "choices": ["a", "b", "stop"]}
ROLES = [
    {"name": "word", "prompt": "{{ given | default('') }} {{ turn }}/{{ index }}", "output": WORD},
    {"name": "many", "prompt": "list", "output": {"format": "json", "shape": ["string"]}},
]
LOG = {"log": ["string"]}
EMPTY = {"output": "", "text": "", "ok": False, "ran": False, "calls": 0}


def run(
    nodes: Sequence[Mapping[str, Any]],
    words: Sequence[str] = ("a",),
    *,
    many: str = '["x", "y", "z"]',
    script: Script | None = None,
    **spec: Any,
) -> Trajectory:
    return play_nodes(nodes, script or {"word": words, "many": [many]}, roles=ROLES, **spec)


def word(name: str, given: str | None = None, **more: Any) -> dict[str, Any]:
    bound = {} if given is None else {"with": {"given": given}}
    return {"name": name, "role": "word", **bound, **more}


def block(name: str, *nodes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "nodes": list(nodes), **more}


def prompts(one: Trajectory, node: str) -> list[str]:
    return [visit.prompt for visit in one.visits if visit.node == node]


def record(one: Trajectory, node: str) -> dict[str, Any]:
    return cast("dict[str, Any]", one.nodes[node])


def stops(request: Request) -> str:
    """Replies `stop` where it is asked to."""
    return "stop" if "stop" in request.messages[-1].text else "a"


def test_nodes_run_in_order_each_after_the_one_before() -> None:
    one = run([word("first"), {"name": "find", "tool": "echo"}, word("last")])
    assert parents(one) == {"first": (), "find": ("first",), "last": ("find",)}
    assert [visit.order for visit in one.visits] == [((False, 0),), ((False, 1),), ((False, 2),)]


def test_a_skipped_node_is_empty_and_leaves_no_record() -> None:
    skipped = word("skipped", when="nodes.first.output == 'b'")
    inside = block("outer", word("inner"), word("each", forEach={"times": 2}), when="false")
    one = run([word("first"), skipped, inside, word("last")])
    assert parents(one) == {"first": (), "last": ("first",)}
    assert one.nodes["skipped"] == one.nodes["inner"] == EMPTY
    assert one.nodes["outer"] == {"inner": EMPTY, "each": [], "ran": False}


def test_a_node_skipped_in_a_later_turn_is_empty_again() -> None:
    nodes = [word("maybe", when="turn == 0"), word("probe", "string(nodes.maybe.ran)")]
    assert prompts(run([block("turns", *nodes, loop=2)]), "probe") == ["true 0/0", "false 1/0"]


def test_an_unparsed_output_is_empty_and_not_ok() -> None:
    one = run([word("x"), {"name": "list", "role": "many"}], ["nonsense"], many="nonsense")
    assert one.nodes["x"] == {**EMPTY, "text": "nonsense", "ran": True, "calls": 1}
    assert record(one, "list")["output"] == []


def test_the_turns_of_a_loop_follow_each_other() -> None:
    one = run([word("before"), block("turns", word("x"), word("y"), loop=2), word("after")])
    assert parents(one) == {
        "before": (),
        "turns[0].x": ("before",),
        "turns[0].y": ("turns[0].x",),
        "turns[1].x": ("turns[0].y",),
        "turns[1].y": ("turns[1].x",),
        "after": ("turns[1].y",),
    }
    assert [dict(visit.turns) for visit in one.visits] == [{}, *[{"turns": 0}] * 2, *[{"turns": 1}] * 2, {}]
    assert [visit.prompt for visit in one.visits] == [" 0/0", " 0/0", " 0/0", " 1/0", " 1/0", " 0/0"]
    assert one.nodes["turns"] == {"x": one.nodes["x"], "y": one.nodes["y"], "ran": True, "turns": 2}


def test_a_repeated_leaf_is_keyed_by_its_own_name() -> None:
    one = run([word("retry", loop=2), word("solve", forEach={"times": 2}), word("last")])
    assert keys(one) == ["retry[0]", "retry[1]", "solve[0]", "solve[1]", "last"]
    assert one.nodes["retry"] == {**value_of(one, "retry[1]"), "turns": 2}
    assert one.nodes["solve"] == [value_of(one, f"solve[{item}]") for item in range(2)]


def test_in_a_loop_the_last_turn_is_seen_and_is_empty_at_first() -> None:
    nodes = [word("early", "nodes.late.output"), word("late")]
    assert prompts(run([block("turns", *nodes, loop=3)], ["a", "b"]), "early") == [" 0/0", "b 1/0", "b 2/0"]
    one = run([word("draft", "nodes.draft.output", loop=2)], ["b"])
    assert prompts(one, "draft") == [" 0/0", "b 1/0"]


def test_outside_a_loop_and_across_items_a_later_node_is_not_seen() -> None:
    nodes = [word("early", "nodes.late.output"), word("late")]
    for around in ({}, {"forEach": {"times": 2}}):
        with pytest.raises(BadInput, match="late"):
            run([block("around", *nodes, **around)])
        with pytest.raises(BadInput, match="late"):
            run([word("first"), block("turns", block("around", *nodes, forEach={"times": 2}), loop=2)])


def test_until_leaves_the_loop_at_once() -> None:
    turns = block("turns", word("pick", until="nodes.pick.output == 'stop'"), word("speak"), loop=5)
    one = run([turns, word("last")], ["a", "b", "stop", "b"])
    assert keys(one) == ["turns[0].pick", "turns[0].speak", "turns[1].pick", "last"]
    assert one.nodes["turns"] == {"pick": one.nodes["pick"], "speak": one.nodes["speak"], "ran": True, "turns": 2}
    assert record(one, "speak")["output"] == "b"


def test_until_on_the_loop_itself_is_asked_after_each_turn_and_its_set() -> None:
    loop = word("draft", loop=5, set={"log": "state.log + [nodes.draft.output]"}, until="size(state.log) == 2")
    one = run([loop], state=LOG)
    assert keys(one) == ["draft[0]", "draft[1]"]
    assert one.state == {"log": ["a", "a"]}


def test_until_deep_inside_leaves_the_innermost_loop_and_all_that_lies_between() -> None:
    asked = word("x", "item == 1 && turn == 1 ? 'stop' : ''", until="nodes.x.output == 'stop'")
    items = block("items", asked, word("y"), forEach={"times": 3})
    outer = block("outer", items, word("never"), loop=3, set={"log": "state.log + ['turn']"})
    one = run([outer, word("after")], script=stops, state=LOG)
    second = [key for key in keys(one) if key.startswith("outer[1]")]
    assert second == ["outer[1].items[0].x", "outer[1].items[0].y", "outer[1].items[1].x"]
    assert parents(one)["after"] == ("outer[1].items[1].x",)
    assert one.state == {"log": ["turn"]}
    begun = cast("list[dict[str, Any]]", one.nodes["items"])
    assert [(item["x"]["output"], item["y"]["ran"]) for item in begun] == [("a", True), ("stop", False)]
    assert record(one, "outer")["turns"] == 2


def test_a_block_that_is_left_tells_what_it_found() -> None:
    inner = block("inner", word("x", until="nodes.x.output == 'stop'"), word("y"))
    one = run([block("turns", inner, loop=3)], ["a", "b", "stop"])
    assert record(one, "inner")["x"]["output"] == record(one, "turns")["inner"]["x"]["output"] == "stop"


@pytest.mark.parametrize("parallel", [False, True])
def test_items_are_keyed_by_number_whatever_they_hold(parallel: bool) -> None:
    each = {"items": "nodes.list.output", "as": "it", "max": 2, "parallel": parallel}
    items = block("items", word("x", "it"), {"name": "find", "tool": "echo", "with": {"query": "it"}}, forEach=each)
    one = run([{"name": "list", "role": "many"}, items, word("last")])
    assert keys(one) == ["list", "items[0].x", "items[0].find", "items[1].x", "items[1].find", "last"]
    assert prompts(one, "x") == ["x 0/0", "y 0/1"]
    assert [record["find"]["found"] for record in cast("list[dict[str, Any]]", one.nodes["items"])] == ["x", "y"]
    second, last = parents(one)["items[1].x"], parents(one)["last"]
    assert second == (("list",) if parallel else ("items[0].find",))
    assert last == (("items[0].find", "items[1].find") if parallel else ("items[1].find",))


def test_no_items_are_no_visits() -> None:
    solve = word("solve", forEach={"items": "nodes.list.output", "parallel": True})
    one = run([{"name": "list", "role": "many"}, solve, word("last")], many="nonsense")
    assert parents(one) == {"list": (), "last": ("list",)}
    assert one.nodes["solve"] == []


def test_when_of_a_for_each_is_asked_once_before() -> None:
    solve = word("solve", when="nodes.list.ok", forEach={"items": "nodes.list.output"})
    nodes = [{"name": "list", "role": "many"}, solve]
    assert [len(run(nodes, many=many).visits) for many in ("nonsense", '["x", "y", "z"]')] == [1, 4]


def test_parallel_branches_do_not_see_each_other_and_join() -> None:
    fork = block("fork", word("left"), block("right", word("x"), word("y")), parallel=True)
    one = run([word("first"), fork, word("last", "nodes.left.output + nodes.y.output")], ["a"])
    assert parents(one) == {
        "first": (),
        "fork.left": ("first",),
        "fork.right.x": ("first",),
        "fork.right.y": ("fork.right.x",),
        "last": ("fork.left", "fork.right.y"),
    }
    assert prompts(one, "last") == ["aa 0/0"]
    for wrong in (
        block("fork", word("left"), word("right", "nodes.left.output"), parallel=True),
        block("fork", word("left", set={"log": "['x']"}), parallel=True),
        block("turns", block("fork", word("x", until="true"), parallel=True), loop=2),
        word("solve", forEach={"times": 2, "parallel": True}, until="true"),
    ):
        with pytest.raises(BadInput):
            run([wrong], state=LOG)


def test_an_empty_branch_is_nobodys_parent() -> None:
    fork = block("fork", word("left"), word("right", when="false"), parallel=True)
    assert parents(run([word("first"), fork, word("last")]))["last"] == ("fork.left",)


def test_switch_runs_the_child_of_that_name_else_the_default() -> None:
    speak = block("speak", word("a"), word("b"), word("default"), switch="nodes.pick.output")
    turns = block("turns", word("pick"), speak, word("hear", "nodes.speak.choice"), loop=3)
    one = run([turns], ["a", "b", "a", "b", "a", "a", "nonsense", "a", "b"])
    spoken = [visit.key for visit in one.visits if "speak" in visit.key]
    assert spoken == ["turns[0].speak.a", "turns[1].speak.b", "turns[2].speak.default"]
    assert prompts(one, "hear") == ["a 0/0", "b 1/0", "default 2/0"]
    assert one.nodes["a"] == one.nodes["b"] == EMPTY
    assert {name: record(one, "speak")[name] for name in ("choice", "text", "output")} == {
        "choice": "default", "text": "a", "output": "a",
    }  # fmt: skip


def test_every_switch_may_have_a_default_of_its_own_kind() -> None:
    inner = block("default", word("b"), {"name": "default", "role": "many"}, switch="'none'")
    one = run([block("outer", word("a"), inner, switch="'none'"), word("last", "nodes.outer.default.choice")])
    assert keys(one) == ["outer.default.default", "last"]
    assert prompts(one, "last") == ["default 0/0"]
    with pytest.raises(BadInput, match=r"`nodes\.default`"):
        run([block("outer", word("a"), word("default"), switch="'a'"), word("last", "nodes.default.output")])
    with pytest.raises(BadInput, match="`default` outside a switch"):
        run([word("default")])
    for twice in ("default", "a"):
        with pytest.raises(BadInput, match=f"`{twice}` a second time"):
            run([block("outer", word("a"), word("default"), word(twice), switch="'a'")])


def test_three_levels_keep_their_turns_and_items_apart() -> None:
    inner = block("items", word("x"), forEach={"times": 2, "parallel": True})
    one = run([block("turns", word("first"), inner, loop=2), word("last")])
    assert keys(one) == [
        "turns[0].first", "turns[0].items[0].x", "turns[0].items[1].x",
        "turns[1].first", "turns[1].items[0].x", "turns[1].items[1].x", "last",
    ]  # fmt: skip
    assert parents(one)["turns[1].first"] == ("turns[0].items[0].x", "turns[0].items[1].x")
    deepest = one.visits[5]
    assert (dict(deepest.turns), dict(deepest.items), deepest.turn, deepest.index) == ({"turns": 1}, {"items": 1}, 1, 1)
    with pytest.raises(BadInput, match="levels of nodes"):
        run([block("one", block("two", block("three", word("x"))))])


def test_set_stores_what_its_shape_says_and_sees_the_state_as_it_was() -> None:
    state = {"count": "number", "was": "number", "kept": [{"found": "string"}]}
    find = {"name": "find", "tool": "echo", "with": {"query": "'q'"}, "set": {"kept": "[nodes.find]"}}
    both = {"name": "both", "set": {"count": "state.count + 1.0", "was": "state.count"}}
    one = run([find, both, {**both, "name": "again"}], state=state)
    assert one.state == {"count": 2.0, "was": 1.0, "kept": [{"found": "q"}]}


def test_what_set_cannot_store_is_the_authors() -> None:
    broken = {"name": "broken", "set": {"log": "[nodes.list.output[5]]"}}
    with pytest.raises(Author, match="node broken"):
        run([{"name": "list", "role": "many"}, broken], state=LOG)


def test_a_privileged_node_reads_hidden_fields_and_only_rewards_see_it() -> None:
    grade = {"name": "grade", "tool": "echo", "privileged": True, "with": {"query": "task.answer"}}
    given: dict[str, Any] = {
        "input": {"visible": ["question"], "hidden": ["answer"]},
        "fields": {"question": "q", "answer": "42"},
    }
    one = run([block("outer", word("x"), grade)], **given)
    assert record(one, "grade")["found"] == "42"
    assert "grade" not in record(one, "outer")
    for leak in (word("y", "nodes.grade.found"), word("y", "string(task.answer)")):
        with pytest.raises(BadInput, match="hidden"):
            run([block("outer", word("x"), grade), leak], **given)


def test_any_name_may_be_bound() -> None:
    roles = [{"name": "items", "prompt": "{{ player }} {{ values }}", "output": WORD}]
    node = {"name": "keys", "role": "items", "with": {"player": "'me'", "values": "'you'", "self": "''"}}
    assert play_nodes([node], {"items": ["a"]}, roles=roles).visits[0].prompt == "me you"


def test_a_trajectory_cut_short_keeps_its_records_and_a_result_that_has_a_value() -> None:
    nodes = [word("x"), {"name": "list", "role": "many"}]
    # it fails on what is there so far, which must not hide what went wrong first
    result = "nodes.list.output[size(nodes.list.output) - 1]"
    spec = WorkflowSpec.model_validate({"input": {}, "roles": ROLES, "nodes": nodes, "result": result})
    trajectory = Trajectory(TaskRow("t", {}), 0, 0)

    def fails(request: Request) -> Exception | None:
        return Infrastructure("model m", "gone") if request.role == "many" else None

    group = ScriptedGroup("m", {"word": ["a"], "many": ['["x"]']}, failure=fails)
    with pytest.raises(Infrastructure, match="gone"):
        on_desk(lambda desk: play(prepare(spec, one_model(spec)), trajectory, desk, run_seed=0), {"m": group})
    assert trajectory.result == ""
    assert [(visit.key, visit.failure) for visit in trajectory.visits] == [
        ("x", None),
        ("list", Failure.INFRASTRUCTURE),
    ]
    assert run(nodes, many='["x"]', result=result).result == "x"


@pytest.mark.parametrize("name", ["seen", "nodes", "local", "self", "cls", "values", "node", "step", "branch", "index"])
def test_an_item_may_have_any_name(name: str) -> None:
    each = {"items": "['x', 'y']", "as": name, "parallel": True}
    one = run([{"name": "many", "role": "word", "forEach": each, "with": {"given": "'b'"}}])
    assert keys(one) == ["many[0]", "many[1]"]
