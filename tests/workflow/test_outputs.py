from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api import names, shapes
from unitymas.api.errors import Author, BadInput
from unitymas.api.workflow import Output as OutputSpec
from unitymas.rewards.worker import ProcessPool
from unitymas.workflow.outputs import Output, ParsesAside, build_output, parser

STEPS = {"format": "json", "shape": {"steps": [{"question": "string", "answer": "string"}], "final": "string"}}
FENCED = """Let me plan {carefully}.
```json
{"steps": [{"question": "a?", "answer": "b", "why": "c"}], "final": "d", "sure": true}
```
{"steps": [], "final": "later"}"""
FORMATS = [
    {"format": "raw"},
    {"format": "tag", "tag": "answer"},
    {"format": "tags", "tags": ["plan", "answer"]},
    {"format": "regex", "pattern": "answer: (a|b)?"},
    {"format": "choice", "choices": ["add", "t0"]},
    STEPS,
    *({"format": "json", "shape": shape} for shape in ("string", "number", "int", "bool", "any", ["any"])),
]


def output(**spec: object) -> Output:
    built = build_output(OutputSpec.model_validate(spec))
    assert not isinstance(built, ParsesAside)
    return built


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        ({"format": "raw"}, " as it is \n", " as it is \n"),
        ({"format": "tag", "tag": "answer"}, "so <answer> Paris\n</answer>.", "Paris"),
        ({"format": "tag", "tag": "answer"}, "I use <answer>: <answer>a</answer>, no, <answer>b</answer>", "b"),
        ({"format": "tag", "tag": "answer"}, "<answer>a</answer> and <answer>unfinished", "a"),
        ({"format": "tag", "tag": "answer"}, "<answer>a</answer> stray </answer>", "a"),
        ({"format": "tag", "tag": "answer"}, "<answer></answer>", ""),
        ({"format": "tags", "tags": ["plan", "code"]}, "<code>x</code><plan>y</plan>", {"plan": "y", "code": "x"}),
        ({"format": "regex", "pattern": r"answer: (\w+)"}, "answer: a. answer: b", "a"),
        ({"format": "regex", "pattern": r"\d+"}, "about 42", "42"),
        ({"format": "choice", "choices": ["add", "t0"]}, " t0\n", "t0"),
        (STEPS, FENCED, {"steps": [{"question": "a?", "answer": "b"}], "final": "d"}),
        ({"format": "json", "shape": ["int"]}, "[not] this: [1, 2.0]", [1, 2]),
        ({"format": "json", "shape": {"a": "number"}}, '{"b": 1} {"a": 1}', {"a": 1.0}),
        ({"format": "json", "shape": "number"}, "v1 gives -2.5 points", -2.5),
        ({"format": "json", "shape": "bool"}, "Is it? true", True),
        ({"format": "json", "shape": "any"}, 'In 3 words: {"a": [null]}', {"a": [None]}),
    ],
)
def test_a_reply_parses_to_the_value_meant(spec: dict[str, object], text: str, expected: object) -> None:
    parser = output(**spec)
    assert parser.parse(text) == expected
    assert shapes.conform(parser.shape, expected) == expected


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"format": "tag", "tag": "answer"}, "</answer> a <answer>"),
        ({"format": "tag", "tag": "answer"}, "<Answer>a</Answer>"),
        ({"format": "tags", "tags": ["plan", "code"]}, "<code>x</code>"),
        ({"format": "regex", "pattern": "(a)?b"}, "b"),
        ({"format": "regex", "pattern": "a"}, "b"),
        ({"format": "choice", "choices": ["add"]}, "Add"),
        ({"format": "choice", "choices": ["add"]}, "add."),
        (STEPS, '{"steps": [], "final": 1}'),
        (STEPS, '{"inner": {"steps": [], "final": ""}}'),
        (STEPS, '{"steps": [], "final": "cut'),
        ({"format": "json", "shape": {"a": "string"}}, r'{"a": "\ud800"}'),
        ({"format": "json", "shape": "any"}, "[1e999]"),
        ({"format": "json", "shape": "any"}, "[NaN]"),
        ({"format": "json", "shape": ["int"]}, "[9223372036854775808]"),
        ({"format": "json", "shape": ["number"]}, "[" * 100_000),
    ],
)
def test_a_reply_that_does_not_parse_raises_value_error(spec: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError):
        output(**spec).parse(text)


@given(
    st.sampled_from(FORMATS),
    st.one_of(st.text(), st.text(alphabet='<>/{}[]",:\\ antswer123.e-', max_size=200)),
)
def test_parsing_any_text_gives_a_value_of_the_shape_or_a_value_error(spec: dict[str, object], text: str) -> None:
    parser = output(**spec)
    try:
        value = parser.parse(text)
    except ValueError:
        return
    assert shapes.conform(parser.shape, value) == value


def test_a_pattern_that_backtracks_without_end_is_given_up() -> None:
    with pytest.raises(ValueError, match="longer than"):
        output(format="regex", pattern=r"(a|aa|a.)+(b|c)+$").parse("a" * 60 + "!")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"format": "regex", "pattern": "("}, "spec.roles[0].output.pattern"),
        ({"format": "json", "shape": {"a": "text"}}, "spec.roles[0].output.shape.a"),
    ],
)
def test_a_pattern_or_shape_that_cannot_be_read_is_a_finding(spec: dict[str, object], path: str) -> None:
    with pytest.raises(BadInput) as caught:
        build_output(OutputSpec.model_validate(spec), path="spec.roles[0].output")
    assert [finding.path for finding in caught.value.findings] == [path]


def test_every_format_of_the_registry_has_a_case_here() -> None:
    assert set(names.OUTPUTS) == {str(spec["format"]) for spec in FORMATS} | {"python"}


CODE = """
def count(text):
    if not text: raise ValueError("empty")
    return {"words": len(text.split()), "more": 1}
def wrong(text): return {"words": text}
def broken(text): return text.absent
"""


def parsed(folder: Path, function: str, text: str) -> object:
    (folder / "readers.py").write_text(CODE)
    spec = OutputSpec.model_validate(
        {"format": "python", "entrypoint": f"readers:{function}", "shape": {"words": "int"}}
    )

    async def run() -> object:
        pool = ProcessPool(python_paths=[str(folder)])
        try:
            return await parser(build_output(spec, workers=pool))(text)
        finally:
            await pool.close()

    return asyncio.run(run())


def test_a_users_parser_gives_a_value_of_its_shape(tmp_path: Path) -> None:
    assert parsed(tmp_path, "count", "two words") == {"words": 2}


def test_a_users_parser_says_unparsed_by_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty"):
        parsed(tmp_path, "count", "")


@pytest.mark.parametrize(("function", "told"), [("wrong", r"\.words"), ("broken", "AttributeError")])
def test_what_else_a_users_parser_does_wrong_is_the_authors(tmp_path: Path, function: str, told: str) -> None:
    with pytest.raises(Author, match=told):
        parsed(tmp_path, function, "two words")


@pytest.mark.parametrize(("depth", "parsed"), [(3, True), (64, True), (65, False), (900, False), (5000, False)])
def test_a_value_is_as_deep_as_can_be_stored(depth: int, parsed: bool) -> None:
    parse = output(format="json", shape="any").parse
    text = "[" * depth + "]" * depth
    if parsed:
        assert repr(parse(text)) == text
    else:
        with pytest.raises(ValueError, match="no JSON value"):
            parse(text)
