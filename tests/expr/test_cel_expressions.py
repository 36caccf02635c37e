"""CEL: what is accepted, what it gives, and what the errors say."""

from __future__ import annotations

import json
import math
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.shapes import (
    ANY,
    BOOL,
    INT,
    NUMBER,
    STRING,
    ListOf,
    Record,
    Shape,
    ShapeError,
    conform,
    notation,
    parse,
    record,
)
from unitymas.expr import Environment, EvaluationError, ExpressionError, names

PASSAGE = record(id=STRING, title=STRING, text=STRING, score=NUMBER)
VARIABLES: dict[str, Shape] = {
    "task": record(question=STRING, meta=ANY),
    "nodes": record(
        search=record(output=STRING, ok=BOOL),
        retrieve=record(passages=ListOf(PASSAGE), ok=BOOL),
        grid=record(output=ListOf(ListOf(record(name=STRING, size=INT)))),
        branch=ListOf(record(pairs=ListOf(ListOf(INT)))),
    ),
    "state": record(
        hits=ListOf(PASSAGE),
        chosen=ListOf(STRING),
        scores=ListOf(NUMBER),
        counts=ListOf(INT),
        votes=ListOf(ListOf(STRING)),
    ),
    "visit": record(ok=BOOL, text=STRING),
    "turn": INT,
}
HIT = {"id": "1", "title": "Ada", "text": "wrote programs", "score": 2.5}
OTHER = {"id": "2", "title": "Bob", "text": "", "score": 0.5}
VALUES: dict[str, object] = {
    "task": {"question": "who?", "meta": {"level": 3, "tags": ["a", 1]}},
    "nodes": {
        "search": {"output": "ada", "ok": True},
        "retrieve": {"passages": [HIT, OTHER], "ok": True},
        "grid": {"output": [[{"name": "x", "size": 1}], [{"name": "y", "size": 4}]]},
        "branch": [{"pairs": [[1], [2, 3]]}, {"pairs": []}],
    },
    "state": {
        "hits": [HIT],
        "chosen": ["2"],
        "scores": [],
        "counts": [],
        "votes": [["b", "a"], ["a", "b", ""]],
    },
    "visit": {"ok": False, "text": "t"},
    "turn": 3,
}
PASSAGES = notation(ListOf(PASSAGE))
ENVIRONMENT = Environment(VARIABLES)


@pytest.mark.parametrize(
    ("text", "shape", "value"),
    [
        ("nodes.search.output", "string", "ada"),
        ("nodes.search", "{output: string, ok: bool}", {"output": "ada", "ok": True}),
        ("visit.ok ? 0.0 : -1.0", "number", -1.0),
        ("-1", "int", -1),
        ("'<query>'", "string", "<query>"),
        ("[task.question]", "[string]", ["who?"]),
        ("turn % 5 == 0", "bool", False),
        ("double(turn) / 2.0", "number", 1.5),
        (
            "state.hits + nodes.retrieve.passages.filter(p, p.id in state.chosen)",
            notation(ListOf(PASSAGE)),
            [HIT, OTHER],
        ),
        ("nodes.retrieve.passages.map(p, '- ' + p.title).join('\\n')", "string", "- Ada\n- Bob"),
        ("state.hits[size(state.hits) - 1].text", "string", "wrote programs"),
        ("task.meta.level", "any", 3),
        ("task.meta['level'] + 1", "int", 4),
        ("has(nodes.grid.output)", "bool", True),
        ("has(task.meta.absent) ? task.meta.absent : 'none'", "any", "none"),
        ("nodes.grid.output[1]", "[{name: string, size: int}]", [{"name": "y", "size": 4}]),
        ("nodes.grid.output.flatten().map(g, g.size).max()", "int", 4),
        ("nodes.branch.map(b, b.pairs.flatten().size())", "[int]", [3, 0]),
        ("state.votes.flatten().majority()", "string", "b"),
        ("nodes.retrieve.passages.map(p, p.score).mean()", "number", 1.5),
        ("nodes.retrieve.passages.map(p, p.score).sum()", "number", 3.0),
        ("nodes.retrieve.passages.map(p, p.score).argmax()", "int", 0),
        ("[1.0, 2.0, 2.0].argmax()", "int", 1),
        ("[1, 2].sum() + 1", "int", 4),
        ("[1, 2].mean()", "number", 1.5),
        ("range(3).map(i, i * i)", "[int]", [0, 1, 4]),
        ("range(-1)", "[int]", []),
        ("cel.bind(x, turn, x + x)", "int", 6),
        ("math.greatest(1, turn)", "int", 3),
        ("'a-b'.split('-')", "[string]", ["a", "b"]),
        ("{'b': turn, 'a': visit.ok}", "any", {"a": False, "b": 3}),
        ("state.hits + [{'id': '9', 'extra': 1}]", "[any]", [HIT, {"extra": 1, "id": "9"}]),
        ("size([{'a': 1}]) > 0", "bool", True),
    ],
)
def test_expression_has_its_shape_and_value(text: str, shape: str, value: object) -> None:
    program = ENVIRONMENT.compile(text)
    assert notation(program.shape) == shape
    result = program.evaluate(VALUES)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("state.scores.sum()", 0.0),
        ("state.scores.max()", 0.0),
        ("state.scores.mean()", 0.0),
        ("state.scores.argmax()", 0),
        ("state.counts.sum()", 0),
        ("state.counts.max()", 0),
        ("state.counts.mean()", 0.0),
        ("state.votes.filter(v, false).flatten()", []),
        ("state.chosen.filter(c, false).majority()", ""),
    ],
)
def test_functions_of_an_empty_list_give_the_empty_value_of_their_type(text: str, empty: object) -> None:
    result = ENVIRONMENT.compile(text).evaluate(VALUES)
    assert (result, type(result)) == (empty, type(empty))


@pytest.mark.parametrize(
    ("text", "found", "expected", "hint"),
    [
        ("nodes.serch.output", "`nodes.serch`", "search, retrieve", "did you mean `nodes.search`?"),
        ("stat.hits", "`stat.hits`", "state, task", "did you mean `state`?"),
        ("state.hits.map(h, h.titel)", "`.titel`", "id, title", "did you mean `title`?"),
        ("{'a': nodes.serch}", "`nodes.serch`", "search, retrieve", "did you mean `nodes.search`?"),
        ("{'a': nobody}", "`nobody`", "state, task", ""),
        ("state.hits.text", "`state.hits.text`", "is a list", ""),
        ("turn * 2.0", "`*` of (int, double)", "operands", "`double(...)`"),
        ("turn == 1.0", "`==` of (int, double)", "operands", "`double(...)`"),
        ("visit.ok ? 1 : 2.0", "(bool, int, double)", "branches of one type", "`double(...)`"),
        ("state.hits.filter(p, p.id)", "a condition of type string", "bool", ""),
        ("visit.ok + 'x'", "`+` of (bool, string) at column 10", "operands", ""),
        ("state.hits.max()", "`max` of (list({id, title, text, score}))", "list<double>.max()", ""),
        ("state.scores.maxx()", "function `maxx`", "a function", "did you mean `max`?"),
        ("'a'.matches()", "`matches(...)`", "other arguments", ""),
        ("1 +", "the end of the text at column 4", "more", ""),
        ("'open", "syntax error at column 1", "a CEL expression", ""),
        ("a\n b", "at line 2, column 2, near `b`", "a CEL expression", ""),
        ("null", "a result of type null", "string, number", ""),
        ("b'x'", "a result of type bytes", "string, number", ""),
        ("duration('1s')", "a result of type duration", "string, number", ""),
        ("__shape.R1{}", "`__shape.R1{...}`", "a record literal", ""),
    ],
)
def test_refused_expression_says_what_would_be_right(text: str, found: str, expected: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        ENVIRONMENT.compile(text)
    error = refused.value
    assert found in error.found
    assert expected in error.expected
    assert hint in error.hint
    assert bool(hint) == bool(error.hint)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("task.meta.absent", "no field `absent`"),
        ("task.meta.absent + 1", "no field `absent`"),
        ("task.meta.level.deeper", "`task.meta.level` is no record: 3"),
        ("state.hits[7].text", "index 7 is out of range: the list has 1"),
        ("1 / (turn - 3)", "division by zero"),
        ("int(task.question)", "cannot convert string to int"),
        ("task.meta.level + 1.0", "write `double(...)`"),
        ("{'k': state.hits.map(h, h.absent)}", "no field `absent`"),
        ("{1: 2}", "the key 1"),
        ("task.meta.tags.sum()", "sum() takes numbers, found 'a'"),
        ("task.meta.tags.majority()", "majority() takes strings, found 1"),
        ("task.meta.tags.flatten()", "flatten() takes a list of lists, found 'a'"),
    ],
)
def test_evaluation_that_fails_names_the_expression_and_the_reason(text: str, reason: str) -> None:
    program = ENVIRONMENT.compile(text)
    with pytest.raises(EvaluationError) as failed:
        program.evaluate(VALUES)
    assert reason in failed.value.reason
    assert text in str(failed.value)


@pytest.mark.parametrize("text", ["turn", "turn + 1"])
def test_missing_variable_is_named(text: str) -> None:
    with pytest.raises(EvaluationError, match="no value for `turn`"):
        ENVIRONMENT.compile(text).evaluate({})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("range(1000000000)", "beyond the limit of 1000"),
        ("range(1000).map(a, range(1000).map(b, b))", "budget of 10000 iterations"),
        ("state.hits.exists(h, range(999).exists(a, range(999).exists(b, a + b < 0)))", "budget of 10000 iterations"),
    ],
)
def test_hostile_loop_ends_in_an_error(text: str, reason: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        ENVIRONMENT.compile(text).evaluate(VALUES)
    assert reason in failed.value.reason


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("turn", {("turn",)}),
        ("state.hits + nodes.retrieve.passages.filter(p, p.score > double(turn))",
         {("state", "hits"), ("nodes", "retrieve", "passages"), ("turn",)}),
        ("nodes.branch[turn].pairs", {("nodes", "branch"), ("turn",)}),
        ("task['meta'].level", {("task", "meta", "level")}),
        ("has(task.meta.a) && has(visit.ok)", {("task", "meta", "a"), ("visit", "ok")}),
        ("cel.bind(x, state.hits, x.size() + x[0].n)", {("state", "hits")}),
        ("{'a': nodes.search.output, 'b': [visit.ok]}", {("nodes", "search", "output"), ("visit", "ok")}),
        ("turn.map(turn, turn.x)", {("turn",)}),
        ("'nodes.search.output'", set[tuple[str, ...]]()),
    ],
)  # fmt: skip
def test_names_are_the_member_paths_read_without_local_variables(text: str, paths: set[tuple[str, ...]]) -> None:
    assert names(text) == paths


def test_fields_that_differ_in_case_or_cannot_be_said_hinder_nobody() -> None:
    odd = Record((("a_b", INT), ("aB", STRING), ("not-a-name", BOOL)))
    program = Environment({"odd": odd}).compile("odd")
    assert program.shape == odd
    assert Environment({"odd": odd}).compile("odd.a_b + size(odd.aB)").evaluate({"odd": {"a_b": 1, "aB": "xy"}}) == 3


def test_fields_come_in_the_order_of_their_shape() -> None:
    program = ENVIRONMENT.compile("nodes.retrieve.passages.filter(p, true)")
    result = cast(list[dict[str, object]], program.evaluate(VALUES))
    assert [list(passage) for passage in result] == [["id", "title", "text", "score"]] * 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nodes.search.output + nodes.search.output", "adaada"),
        ("[nodes.search].size() + size(nodes.search.output)", 4),
        ("has(task.meta.level) && !has(task.meta.absent) && task.meta.level == 3", True),
        ("visit.ok && task.meta.absent", False),
        ("'level' in task.meta && size(task.meta) == 2 && task.meta.level == 3", True),
        ("nodes.branch.map(nodes, nodes.pairs.size()).sum()", 2),
        ("cel.bind(n, nodes, n.search.output + nodes.search.output)", "adaada"),
    ],
)
def test_what_is_left_out_as_unread_changes_no_result(text: str, value: object) -> None:
    assert ENVIRONMENT.compile(text).evaluate(VALUES) == value


def test_equal_variables_share_an_environment() -> None:
    assert Environment.of({"a": INT}) is Environment.of({"a": INT})
    assert Environment.of({"a": INT}) is not Environment.of({"a": NUMBER})


FIELD_NAMES = st.sampled_from(["alpha", "beta_2", "gammaRay", "items"])


def records_of(shapes: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    fields = st.dictionaries(FIELD_NAMES, shapes, min_size=1, max_size=3)
    return fields.map(lambda given: Record(tuple(given.items())))


SHAPES: st.SearchStrategy[Shape] = st.recursive(
    st.sampled_from([STRING, NUMBER, INT, BOOL]),
    lambda shapes: shapes.map(ListOf) | records_of(shapes),
    max_leaves=6,
)


def values_of(shape: Shape) -> st.SearchStrategy[object]:
    """Values of a shape, as the engine can hold them: finite doubles, 64-bit ints."""
    match shape:
        case ListOf(item):
            return st.lists(values_of(item), max_size=3).map(list)
        case Record(fields):
            return st.fixed_dictionaries({name: values_of(inner) for name, inner in fields}).map(dict)
        case _:
            scalars: dict[Shape, st.SearchStrategy[object]] = {
                STRING: st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
                NUMBER: st.floats(allow_nan=False, allow_infinity=False),
                INT: st.integers(-(2**63), 2**63 - 1),
                BOOL: st.booleans(),
            }
            return scalars[shape]


def member_paths(shape: Shape, path: str) -> list[tuple[str, Shape]]:
    """Every expression that reaches a member through records alone."""
    inner = shape.fields if isinstance(shape, Record) else ()
    return [(path, shape), *(found for name, field in inner for found in member_paths(field, f"{path}.{name}"))]


def spelled(value: object) -> str:
    """The value in JSON, which tells 1 from 1.0 and True, whatever the order of fields."""
    return json.dumps(value, sort_keys=True)


@given(st.data())
def test_a_member_path_gives_what_the_engine_gives(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    values = {"root": data.draw(values_of(shape))}
    environment = Environment({"root": shape})
    for path, wanted in member_paths(shape, "root"):
        by_lookup, by_engine = environment.compile(path), environment.compile(f"[{path}][0]")
        assert by_lookup.shape == wanted
        assert spelled(by_lookup.evaluate(values)) == spelled(by_engine.evaluate(values))


@given(st.data())
def test_a_checked_result_conforms_to_its_shape(data: st.DataObject) -> None:
    shape = ListOf(data.draw(SHAPES))
    values = {"items": data.draw(values_of(shape))}
    program = Environment({"items": shape}).compile("items.filter(i, true) + [items].flatten()")
    assert program.shape == shape
    items = cast(list[object], values["items"])
    assert conform(shape, program.evaluate(values)) == [*items, *items]


@given(st.lists(st.integers(-100, 100) | st.floats(-100, 100), min_size=1))
def test_statistics_agree_with_python(items: list[float]) -> None:
    environment = Environment({"xs": ANY})
    values = {"xs": items}
    assert environment.compile("xs.sum()").evaluate(values) == sum(items)
    assert environment.compile("xs.max()").evaluate(values) == max(items)
    assert environment.compile("xs.argmax()").evaluate(values) == items.index(max(items))
    assert math.isclose(cast(float, environment.compile("xs.mean()").evaluate(values)), sum(items) / len(items))


@given(st.text(max_size=20))
def test_any_text_compiles_or_is_refused_with_an_expression_error(text: str) -> None:
    try:
        ENVIRONMENT.compile(text)
    except ExpressionError as error:
        assert error.found and error.expected


def test_the_notation_of_users_types_an_expression() -> None:
    shape = parse({"steps": [{"tool": "string", "cost": "number"}]})
    program = Environment({"plan": shape}).compile("plan.steps.map(s, s.cost).sum()")
    assert program.shape == NUMBER
    with pytest.raises(ShapeError):
        conform(STRING, program.evaluate({"plan": {"steps": []}}))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a and b", "CEL writes `&&` for `and`"),
        ("not a", "CEL writes `!` for `not`"),
        ("a = b", "CEL writes `==` for `=`"),
        ("len(words) > 1", "did you mean `size`?"),
    ],
)
def test_what_python_would_write_is_answered_with_what_cel_writes(text: str, hint: str) -> None:
    environment = Environment({"a": BOOL, "b": BOOL, "words": ListOf(STRING)})
    with pytest.raises(ExpressionError) as caught:
        environment.compile(text)
    assert caught.value.hint == hint
