from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from unitymas.api import shapes
from unitymas.api.errors import Author, BadInput, Infrastructure
from unitymas.api.ports import Tool, ToolAnswer
from unitymas.api.run import Limits
from unitymas.api.shapes import Record, Shape
from unitymas.api.workflow import WorkflowSpec
from unitymas.rewards.worker import ProcessPool
from unitymas.tools import Guarded, build_tools, check_tools

Result = TypeVar("Result")
CODE = """
import time

def look(word): return {"text": word.upper(), "length": len(word), "extra": 1}
def refuse(word): return {"ok": False, "error": "no such word"}
def short(word): return {"text": word}
def bare(word): return word
def hangs(word): time.sleep(600)
def raises(word): raise KeyError(word)
def broken(word): return {"text": "\\ud800", "length": 1}
def said_no(word): return {"text": "", "length": 0, "ok": "false"}
def broken_error(word): return {"ok": False, "error": "\\ud800"}
"""
ROW = {"id": "0", "title": "Moon", "text": "It orbits."}


def workflow(*tools: Mapping[str, object]) -> WorkflowSpec:
    node = {"name": "ask", "role": "asker"}
    roles = [{"name": "asker", "prompt": ""}]
    return WorkflowSpec.model_validate({"input": {}, "roles": roles, "nodes": [node], "tools": tools})


def python(function: str, **more: object) -> dict[str, object]:
    entrypoint = {"entrypoint": f"looks:{function}"}
    return {"name": "look", "python": entrypoint, "returns": {"text": "string", "length": "int"}, **more}


def with_tools(
    folder: Path, body: Callable[[dict[str, Tool]], Awaitable[Result]], *tools: Mapping[str, object], retries: int = 0
) -> Result:
    (folder / "looks.py").write_text(CODE)

    async def run() -> Result:
        pool = ProcessPool(python_paths=[str(folder)])
        built = build_tools(
            workflow(*tools),
            corpora=lambda name: [ROW],
            limits=Limits.model_validate({"retries": retries}),
            workers=pool,
        )
        try:
            return await body(built)
        finally:
            for tool in built.values():
                await tool.close()
            await pool.close()

    return asyncio.run(run())


def call(folder: Path, function: str, **more: object) -> ToolAnswer:
    return with_tools(folder, lambda tools: tools["look"].call({"word": "moon"}), python(function, **more))


def test_a_retriever_is_built_over_the_rows_of_its_source(tmp_path: Path) -> None:
    wiki = {"name": "wiki", "retriever": {"corpus": "wiki", "topK": 3}}
    answer = with_tools(tmp_path, lambda tools: tools["wiki"].call({"query": "moon"}), wiki)
    assert [passage["id"] for passage in answer.value["passages"]] == ["0"]  # type: ignore[index,attr-defined]


def test_a_functions_record_is_cut_to_the_declared_shape(tmp_path: Path) -> None:
    assert call(tmp_path, "look") == ToolAnswer({"text": "MOON", "length": 4})


def test_a_function_may_say_that_the_policy_was_wrong_and_leave_the_rest_empty(tmp_path: Path) -> None:
    assert call(tmp_path, "refuse") == ToolAnswer({"text": "", "length": 0}, ok=False, error="no such word")


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("short", "no field `length`"),
        ("bare", "expected a record"),
        ("said_no", r"its answer\.ok: found 'false'; expected true or false"),
        ("raises", r"looks\.py:\d+ in raises"),
        ("broken", r"its answer\.text: .*UTF-8"),
        ("broken_error", "its error: .*UTF-8"),
    ],
)
def test_a_wrong_result_or_an_exception_is_the_authors(tmp_path: Path, function: str, told: str) -> None:
    with pytest.raises(Author, match=told):
        call(tmp_path, function)


def test_a_function_that_hangs_is_infrastructure(tmp_path: Path) -> None:
    with pytest.raises(Infrastructure, match="longer than 1 s"):
        call(tmp_path, "hangs", timeout="1s")


def test_what_this_release_cannot_run_is_refused_by_name() -> None:
    tools = [
        {"name": "tests", "code": {}},
        {"name": "wiki", "retriever": {"corpus": "wiki", "index": "dense"}},
        {"name": "game", "python": {"entrypoint": "a:B"}, "session": "trajectory", "methods": {"step": {"x": "int"}}},
        {"name": "page", "http": {"url": "https://pages.example"}, "returns": {"text": "string"}},
    ]
    assert [(finding.check, finding.path) for finding in check_tools(workflow(*tools)).items] == [
        ("later", "spec.tools[0].code"),
        ("later", "spec.tools[1].retriever.index"),
        ("later", "spec.tools[2].session"),
        ("later", "spec.tools[2].methods"),
        ("later", "spec.tools[3].http"),
    ]


@pytest.mark.parametrize(
    ("returns", "path"),
    [(None, "spec.tools[0].returns"), ("string", "spec.tools[0].returns"), ({"a": "text"}, "spec.tools[0].returns.a")],
)
def test_a_python_tool_declares_a_record(tmp_path: Path, returns: object, path: str) -> None:
    with pytest.raises(BadInput) as caught:
        with_tools(tmp_path, lambda tools: tools["look"].call({}), python("look", returns=returns))
    assert [finding.path for finding in caught.value.findings] == [path]


class Flaky:
    """A tool that breaks as told, try after try, before it answers."""

    shape: Record = shapes.record(text=shapes.STRING)
    arguments: Mapping[str, Shape] | None = {"query": shapes.STRING}

    def __init__(self, breaks: Sequence[Exception]) -> None:
        self.breaks = list(breaks)
        self.tries = 0

    async def call(self, arguments: Mapping[str, object]) -> ToolAnswer:
        self.tries += 1
        if self.breaks:
            raise self.breaks.pop(0)
        return ToolAnswer({"text": "found", "more": 1})

    async def close(self) -> None: ...


def asked(tool: Flaky, retries: int = 1, **arguments: object) -> ToolAnswer:
    guarded = Guarded(tool, name="wiki", timeout_s=30.0, retries=retries)
    return asyncio.run(guarded.call(arguments or {"query": "moon"}))


def test_a_tool_that_breaks_is_tried_again() -> None:
    tool = Flaky([Infrastructure("tool wiki", "down")])
    assert asked(tool) == ToolAnswer({"text": "found"})
    assert tool.tries == 2


@pytest.mark.parametrize("broken", [Infrastructure("tool wiki", "down"), TimeoutError()])
def test_when_the_tries_are_used_up_it_is_infrastructure(broken: Exception) -> None:
    tool = Flaky([broken] * 3)
    with pytest.raises(Infrastructure):
        asked(tool)
    assert tool.tries == 2


@pytest.mark.parametrize("broken", [Author("tool wiki", "typo"), ZeroDivisionError()])
def test_an_authors_or_unknown_error_is_never_tried_again(broken: Exception) -> None:
    tool = Flaky([broken])
    with pytest.raises(Author):
        asked(tool)
    assert tool.tries == 1


def test_an_argument_of_a_wrong_shape_is_the_policys_mistake_and_an_unknown_one_the_authors() -> None:
    tool = Flaky([])
    answer = asked(tool, query=3)
    assert (answer.ok, answer.value) == (False, {"text": ""})
    assert "query" in answer.error
    with pytest.raises(Author, match="expected query"):
        asked(tool, query="moon", most=3)
    assert tool.tries == 0
