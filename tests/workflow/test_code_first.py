"""Workflows as plain Python: keys, parents, and whose fault an error is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import pytest

from support.playing import keys, parents, play_code, record_of
from unitymas.api.errors import Author
from unitymas.api.records import Trajectory
from unitymas.rewards.series import compare
from unitymas.workflow import Agents, Tools, each, together, turns, within

ROLES = [{"name": name, "prompt": "{{ given | default('') }}"} for name in ("a", "b", "c")]
Task = Mapping[str, object]


def run(
    code: Callable[[Any, Agents, Tools], Awaitable[object]], *, seed: int | None = None, max_calls: int = 100
) -> Trajectory:
    random = None if seed is None else Random(seed)
    return play_code(code, {name: [name] for name in "abc"}, roles=ROLES, max_calls=max_calls, random=random)


async def gathers(task: Task, agents: Agents, tools: Tools) -> object:
    """Calls and helpers at once, in plain Python."""

    async def helper(given: str) -> str:
        found = await tools.echo(query=given)
        return (await agents.b(given=found.found)).text

    await agents.a()
    first = await asyncio.gather(agents.a(), agents.b(), helper("x"), tools.echo(query="q"))
    second = await asyncio.gather(helper("y"), helper("z"))
    await asyncio.gather(helper("v"), helper("w"))
    await agents.c()
    return [first[2], *second]


def test_gathered_calls_have_the_same_keys_and_parents_whatever_answers_first() -> None:
    records = [record_of(run(gathers, seed=seed)) for seed in range(8)]
    assert all(record == records[0] for record in records)
    assert records[0] == record_of(run(gathers))


def test_gathered_calls_follow_what_was_before_all_of_them_and_run_at_once() -> None:
    one = run(gathers)
    at_once = ("a#1", "b", "echo", "branch.b")
    assert parents(one) == {
        "a": (),
        **dict.fromkeys(("a#1", "b", "branch.echo", "echo"), ("a",)),
        "branch.b": ("branch.echo",),
        **dict.fromkeys(("branch#1.echo", "branch#2.echo"), at_once),
        "branch#1.b": ("branch#1.echo",),
        "branch#2.b": ("branch#2.echo",),
        **dict.fromkeys(("branch#3.echo", "branch#4.echo"), ("branch#1.b", "branch#2.b")),
        "branch#3.b": ("branch#3.echo",),
        "branch#4.b": ("branch#4.echo",),
        "c": ("branch#3.b", "branch#4.b"),
    }
    order = {visit.key: visit.order for visit in one.visits}
    assert compare(order["a#1"], order["b"]) is compare(order["b"], order["branch.echo"]) is None
    assert compare(order["branch.b"], order["branch#1.echo"]) == compare(order["a#1"], order["c"]) == -1


def test_structure_in_python_keys_as_nodes_do() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        for turn in turns("rounds", 3):
            if turn == 2:
                break
            await agents.a.at("rounds")()
            await each("items", ["x", "y"], lambda item: agents.b(given=item), parallel=True)
        with within("block"):
            await together([agents.a, agents.b.at("other")])
        await each("solve", [0, 1], lambda _: agents.c.at("solve")())
        return ""

    one = run(code)
    assert keys(one) == [
        "rounds[0]", "rounds[0].items[0].b", "rounds[0].items[1].b",
        "rounds[1]", "rounds[1].items[0].b", "rounds[1].items[1].b",
        "block.a", "block.other", "solve[0]", "solve[1]",
    ]  # fmt: skip
    assert parents(one)["rounds[0].items[1].b"] == ("rounds[0]",)
    assert parents(one)["rounds[1]"] == ("rounds[0].items[0].b", "rounds[0].items[1].b")
    assert parents(one)["solve[0]"] == ("block.a", "block.other")
    assert one.nodes["solve"] == [one.visits[-2].value, one.visits[-1].value]


def test_a_loop_in_one_of_its_own_name_counts_its_own_turns() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        for _ in turns("x", 2):
            for _ in turns("y", 1):
                for _ in turns("x", 2):
                    await agents.a()
        return ""

    one = run(code)
    assert keys(one) == ["x[0].y[0].x[0].a", "x[0].y[0].x[1].a", "x[1].y[0].x[0].a", "x[1].y[0].x[1].a"]
    assert [visit.turn for visit in one.visits] == [0, 1, 0, 1]


def test_what_calls_give_may_be_bound_checked_and_returned() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        tries = await each("tries", range(2), lambda _: agents.a.at("tries")())
        return [await agents.checked(tries=tries, first=tries[0])]

    check = "first.ok && tries.all(one, one.output == output)"
    checked = {"name": "checked", "prompt": "{{ tries[1].text }}{{ first.text }}", "output": {"check": check}}
    one = play_code(code, {"a": ["yes"], "checked": ["yes"]}, roles=[ROLES[0], checked])
    assert (one.visits[-1].prompt, one.visits[-1].ok) == ("yesyes", True)
    assert one.result == [one.visits[-1].value]
    assert type(one.result[0]) is dict  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def test_two_branches_may_not_use_one_key() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        return await together([agents.a, agents.a])

    with pytest.raises(Author, match="`a` in two branches"):
        run(code)


@pytest.mark.parametrize("name", ["x.y", "x[0]", "", "a b"])
def test_a_node_needs_a_name_that_fits_in_a_key(name: str) -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        return await agents.a.at(name)()

    with pytest.raises(Author, match="expected a name"):
        run(code)


def test_the_users_own_error_names_their_file_and_line() -> None:
    def helper(text: str) -> int:
        return int(text)

    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        return helper((await agents.a()).output)

    line = helper.__code__.co_firstlineno + 1
    with pytest.raises(Author, match=rf"ValueError: invalid literal .*\(at .*test_code_first\.py:{line}\)"):
        run(code)


def test_an_error_in_a_branch_names_its_line_too() -> None:
    async def broken(given: int) -> int:
        return 1 // given

    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        return await each("items", [1, 0], broken, parallel=True)

    line = broken.__code__.co_firstlineno + 1
    with pytest.raises(Author, match=rf"ZeroDivisionError: .*test_code_first\.py:{line}\)"):
        run(code)


def test_what_a_prompt_misses_is_told_with_the_line_of_the_call() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        return await agents.needs()

    python = [{"name": "needs", "prompt": "{{ absent }}"}]
    line = code.__code__.co_firstlineno + 1
    with pytest.raises(Author, match=rf"prompt of role needs: .*`absent`.*test_code_first\.py:{line}\)"):
        play_code(code, {"needs": [""]}, roles=python)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_forgotten_await_is_told() -> None:
    async def forgotten(task: Task, agents: Agents, tools: Tools) -> object:
        agents.a()  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
        return (await agents.b()).text

    with pytest.raises(Author, match=r"ended before a: every call must be awaited"):
        run(forgotten)

    async def used(task: Task, agents: Agents, tools: Tools) -> object:
        answer: Any = agents.a()
        return answer.output

    with pytest.raises(Author, match=r"no attribute 'output' \(at "):
        run(used)


def test_a_call_left_running_is_told_and_stopped() -> None:
    ended: list[str] = []

    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        async def helper() -> None:
            try:
                for _ in range(50):
                    await agents.a()
            finally:
                ended.append("helper")

        kept.append(asyncio.create_task(helper()))
        return (await agents.b()).text

    kept: list[asyncio.Task[None]] = []
    with pytest.raises(Author, match=r"ended before branch\.a"):
        run(code, seed=0)
    assert ended == ["helper"]


def test_one_call_more_than_declared_is_the_authors() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        for _ in turns("rounds", 9):
            await agents.a()
        return ""

    assert len(run(code, max_calls=9).visits) == 9
    with pytest.raises(Author, match=r"rounds\[4\]\.a: call 5 of a workflow that may make 4"):
        run(code, max_calls=4)


def test_an_unknown_role_or_field_names_those_that_there_are() -> None:
    async def role(task: Task, agents: Agents, tools: Tools) -> object:
        return await agents.absent()

    async def field(task: Task, agents: Agents, tools: Tools) -> object:
        return (await agents.a()).outputs

    for code, told in ((role, "no role `absent`; there are a, b, c"), (field, "no field `outputs`; there are output")):
        with pytest.raises(Author, match=told):
            run(code)


def test_what_code_changes_is_its_own() -> None:
    fields: dict[str, object] = {"answers": ["one", {"deep": ["two"]}]}

    async def code(task: Any, agents: Agents, tools: Tools) -> object:
        seen.append(str(task["answers"]))
        task["answers"][1]["deep"].clear()
        task["answers"].append("three")
        listed = await agents.lists()
        listed.output.append("more")
        return (await agents.shows()).text

    seen: list[str] = []
    roles = [
        {"name": "lists", "prompt": "", "output": {"format": "json", "shape": ["string"]}},
        {"name": "shows", "prompt": "{{ task.answers }}"},
    ]
    for _ in range(2):
        one = play_code(code, {"lists": ['["a"]'], "shows": [""]}, roles=roles, fields=fields)
        assert one.visits[0].value["output"] == ["a"]
        assert one.visits[1].prompt == seen[0]
    assert seen[0] == seen[1] == "['one', {'deep': ['two']}]"


def test_no_attribute_of_what_code_is_given_leads_to_the_hidden_fields() -> None:
    async def code(task: Any, agents: Agents, tools: Tools) -> object:
        reached.extend(_reached([task, agents, tools, agents.a, agents.a.at("b"), tools.echo, await agents.a()]))
        return ""

    reached: list[object] = []
    play_code(code, {"a": ["x"]}, roles=ROLES[:1], fields={"question": "q"}, hidden={"gold": "secret"})
    assert "q" in reached
    assert not [one for one in reached if isinstance(one, Trajectory) or one == "secret"]


def _reached(roots: list[object]) -> list[object]:
    """Everything that attributes, fields and items lead to, but what Python keeps between double underscores."""
    found: dict[int, object] = {}
    while roots:
        one = roots.pop()
        if id(one) in found or isinstance(one, type):
            continue
        found[id(one)] = one
        if isinstance(one, dict):
            roots += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            roots += one
        elif not isinstance(one, str | int | float | None):
            roots += [getattr(one, name, None) for name in dir(one) if not name.startswith("__")]
    return list(found.values())


def test_a_call_too_many_is_told_even_when_the_code_catches_it() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        for _ in turns("rounds", 5):
            try:
                await agents.a()
            except Author:
                continue
        return ""

    with pytest.raises(Author, match=r"5 calls of a workflow that may make 4"):
        run(code, max_calls=4)
    assert len(run(code, max_calls=5).visits) == 5


def test_code_that_leaves_is_the_authors() -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        raise SystemExit(3)

    with pytest.raises(Author, match="SystemExit: 3"):
        run(code)


@pytest.mark.parametrize("name", ["self", "node", "values", "task", "context", "player", "arguments", "tool"])
def test_any_name_may_be_given(name: str) -> None:
    async def code(task: Task, agents: Agents, tools: Tools) -> object:
        await tools.echo(**{name: "x"})
        return (await agents.named(**{name: "x"})).text

    roles = (
        [{"name": "named", "prompt": "{{ " + name + " }}"}] if name != "self" else [{"name": "named", "prompt": "x"}]
    )
    assert play_code(code, {"named": [""]}, roles=roles).visits[-1].prompt == "x"
