"""The tool `retriever`: passages of a corpus for a query, by BM25."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from bm25s import BM25
from numpy.typing import NDArray

from unitymas.api import shapes
from unitymas.api.ports import ToolAnswer
from unitymas.api.shapes import STRING, ListOf, Record, Shape
from unitymas.api.tool import Tool as ToolSpec
from unitymas.tools.kind import Offer

PASSAGE = shapes.record(id=STRING, title=STRING, text=STRING, score=shapes.NUMBER)
CACHED = 4096
"""Queries whose answers are kept, least recently used first out: the rollouts of one task often ask the same."""
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Lower-cased runs of word characters; no stop words, no stemming."""
    return _WORD.findall(text.lower())


class Retriever:
    """Ranks a corpus by BM25 over title and text (k1 1.5, b 0.75, the IDF of Lucene), as bm25s computes it.

    A query is a set of words: repeating one changes nothing. Passages come by score, equal scores in corpus order;
    those that share no word with the query never come, so an empty query finds nothing. Equal queries give equal
    answers. `corpus`: rows of id, title, text.
    """

    shape: Record = shapes.record(passages=ListOf(PASSAGE))
    arguments: Mapping[str, Shape] = {"query": STRING}
    keeps_limit: ClassVar[bool] = False

    def __init__(self, corpus: Sequence[Mapping[str, str]], *, top_k: int) -> None:
        self._corpus = corpus
        self._top_k = top_k
        indexed = [words(f"{row['title']} {row['text']}") for row in corpus]
        self._known = frozenset(word for row in indexed for word in row)
        self._index: Any = BM25(k1=1.5, b=0.75, method="lucene", backend="numpy", auto_compile=False)
        if self._known:
            self._index.index(indexed, show_progress=False)
        self._cached = lru_cache(CACHED)(self._passages)

    @staticmethod
    def of(spec: ToolSpec, offer: Offer) -> Retriever:
        """The retriever over its corpus, indexed now."""
        assert spec.retriever is not None
        return Retriever(offer.corpora(spec.retriever.corpus), top_k=spec.retriever.top_k)

    async def call(self, arguments: Mapping[str, object]) -> ToolAnswer:
        """The passages for `query`."""
        asked = sorted(self._known.intersection(words(str(arguments["query"]))))
        return ToolAnswer({"passages": list(self._cached(tuple(asked)))})

    async def close(self) -> None:
        """Nothing to give back."""

    def _passages(self, asked: tuple[str, ...]) -> tuple[dict[str, object], ...]:
        if not asked:
            return ()
        scores: NDArray[np.float32] = self._index.get_scores(list(asked))
        rows = best(scores, self._top_k)
        passages = ({name: self._corpus[row][name] for name in ("id", "title", "text")} for row in rows)
        return tuple({**passage, "score": float(score)} for passage, score in zip(passages, scores[rows], strict=True))


def best(scores: NDArray[np.float32], most: int) -> list[int]:
    """Rows of the highest positive scores, the highest first, equal ones in order. scores: (rows,)."""
    rows = np.flatnonzero(scores > 0)
    if rows.size > most:
        least = np.partition(scores[rows], -most)[-most]
        rows = rows[scores[rows] >= least]
    return rows[np.argsort(-scores[rows], kind="stable")][:most].tolist()
