from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api import shapes
from unitymas.tools.retriever import Retriever, best

CORPUS = [
    {"id": "0", "title": "Moon", "text": "The Moon orbits the Earth."},
    {"id": "1", "title": "Earth", "text": "The Earth orbits the Sun."},
    {"id": "2", "title": "Bread", "text": "Flour, water and yeast."},
    {"id": "3", "title": "Bread", "text": "Flour, water and yeast."},
]


def found(query: str, *, corpus: list[dict[str, str]] = CORPUS, top_k: int = 3) -> list[Mapping[str, object]]:
    retriever = Retriever(corpus, top_k=top_k)
    answer = asyncio.run(retriever.call({"query": query}))
    assert answer.ok
    assert shapes.conform(retriever.shape, answer.value) == answer.value
    return cast(list[Mapping[str, object]], answer.value["passages"])


def ids(query: str, *, top_k: int = 3) -> list[object]:
    return [passage["id"] for passage in found(query, top_k=top_k)]


def test_the_best_passage_comes_first_and_titles_count() -> None:
    assert ids("moon") == ["0"]
    assert ids("which sun does the EARTH orbit?")[0] == "1"
    assert ids("bread", top_k=1) == ["2"]


def test_equal_scores_come_in_corpus_order() -> None:
    assert ids("yeast") == ["2", "3"]


@pytest.mark.parametrize("query", ["", " ?! ", "nothing known"])
def test_a_query_that_shares_no_word_finds_nothing(query: str) -> None:
    assert found(query) == []
    assert found(query, corpus=[]) == []
    assert found(query, corpus=[{"id": "0", "title": "", "text": "..."}]) == []


def test_scores_are_those_of_lucenes_bm25() -> None:
    tokens = [f"{row['title']} {row['text']}".lower().replace(".", "").replace(",", "").split() for row in CORPUS]
    mean = sum(map(len, tokens)) / len(tokens)
    frequency, length, documents = tokens[0].count("moon"), len(tokens[0]), 1
    idf = np.log(1 + (len(CORPUS) - documents + 0.5) / (documents + 0.5))
    expected = idf * frequency / (frequency + 1.5 * (1 - 0.75 + 0.75 * length / mean))
    assert found("moon")[0]["score"] == pytest.approx(expected, rel=1e-6)


@given(st.permutations(["earth", "moon", "the", "the", "yeast", "unknown"]))
def test_order_and_repetition_of_words_change_nothing(words: list[str]) -> None:
    assert found(" ".join(words)) == found("earth moon the yeast")


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30), st.integers(1, 10))
def test_best_is_the_head_of_a_stable_sort(scores: list[float], most: int) -> None:
    expected = [row for row in sorted(range(len(scores)), key=lambda row: -scores[row]) if scores[row] > 0][:most]
    assert best(np.array(scores, dtype=np.float32), most) == expected
