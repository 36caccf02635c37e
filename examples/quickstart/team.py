"""The quickstart's team without the runtime: prompts as the manifest writes them, the index, two demonstrators."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bm25s  # pyright: ignore[reportMissingTypeStubs]
from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment
from ruamel.yaml import YAML
from world import SENTENCES, Document, Question

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Role:
    """A role of the manifest: its system message and its prompt template."""

    name: str
    system: str
    prompt: Template


@dataclass(frozen=True, slots=True)
class Team:
    """What `workflow.yaml` says that the warm start must agree with."""

    searcher: Role
    answerer: Role
    hops: int
    top_k: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Call:
    """One reply to be made: who is asked, at which turn, and what it may see."""

    role: Role
    turn: int
    question: Question
    passages: tuple[Document, ...]

    def messages(self) -> list[dict[str, str]]:
        """The chat, rendered from the manifest's template."""
        task = {"question": self.question.text}
        prompt = self.role.prompt.render(turn=self.turn, task=task, state={"passages": self.passages})
        return [{"role": "system", "content": self.role.system}, {"role": "user", "content": prompt}]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Everything said about one question; `hits` tells for each hop whether its gold document came back."""

    question: Question
    calls: tuple[tuple[Call, str], ...]
    hits: tuple[bool, ...]

    @property
    def f1(self) -> float:
        """Token F1 of the last reply, between 0 and 1."""
        return token_f1(self.calls[-1][1], self.question.answer)


Reply = Callable[[Sequence[Call]], Sequence[str]]
"""Answers a batch of calls of one role, in order."""


def load_team(manifest: Path = HERE / "workflow.yaml") -> Team:
    """Read roles, loop and retriever of the quickstart's workflow."""
    spec: Any = YAML(typ="safe").load(manifest)["spec"]  # pyright: ignore[reportUnknownMemberType]
    environment = SandboxedEnvironment(undefined=StrictUndefined)
    searcher, answerer = (Role(r["name"], r["system"], environment.from_string(r["prompt"])) for r in spec["roles"])
    return Team(
        searcher=searcher,
        answerer=answerer,
        hops=spec["nodes"][0]["loop"],
        top_k=spec["tools"][0]["retriever"]["topK"],
        max_tokens=max(r["sampling"]["maxTokens"] for r in spec["roles"]),
    )


class Library:
    """BM25 as the runtime's retriever ranks: over title and text, by score, then by place in the corpus."""

    def __init__(self, documents: Sequence[Document], top_k: int) -> None:
        self._documents, self._top_k = documents, top_k
        self._vocabulary: dict[str, int] = {}
        tokens = [
            [self._vocabulary.setdefault(w, len(self._vocabulary)) for w in words(f"{d.title} {d.text}")]
            for d in documents
        ]
        self._index = bm25s.BM25()
        self._index.index((tokens, self._vocabulary), show_progress=False)  # pyright: ignore[reportUnknownMemberType]

    def search(self, query: str) -> list[Document]:
        """At most `top_k` documents that share a word with the query."""
        known = sorted(self._vocabulary.keys() & words(query))
        if not known:
            return []
        scores = self._index.get_scores(known)  # pyright: ignore[reportUnknownMemberType]
        best = (-scores).argsort(kind="stable")[: self._top_k]
        return [self._documents[i] for i in best if scores[i] > 0]


def words(text: str) -> list[str]:
    """Lower-case runs of word characters."""
    return re.findall(r"\w+", text.lower())


def token_f1(prediction: str, reference: str) -> float:
    """Harmonic mean of precision and recall over the words of two texts."""
    found, wanted = prediction.split(), reference.split()
    common = (Counter(found) & Counter(wanted)).total()
    return 2 * common / (len(found) + len(wanted)) if common else 0.0


def play(questions: Sequence[Question], team: Team, library: Library, reply: Reply) -> list[Trajectory]:
    """Run the workflow on a batch of questions, one node at a time."""
    passages: list[tuple[Document, ...]] = [()] * len(questions)
    calls: list[list[tuple[Call, str]]] = [[] for _ in questions]
    hits: list[list[bool]] = [[] for _ in questions]
    for turn in range(team.hops):
        for i, query in enumerate(_ask(team.searcher, turn, questions, passages, calls, reply)):
            found = library.search(query)
            hits[i].append(questions[i].documents[turn] in {d.id for d in found})
            passages[i] += tuple(d for d in found if d not in passages[i])
    _ask(team.answerer, 0, questions, passages, calls, reply)
    return [Trajectory(q, tuple(c), tuple(h)) for q, c, h in zip(questions, calls, hits, strict=True)]


def _ask(
    role: Role,
    turn: int,
    questions: Sequence[Question],
    passages: Sequence[tuple[Document, ...]],
    calls: list[list[tuple[Call, str]]],
    reply: Reply,
) -> Sequence[str]:
    asked = [Call(role, turn, q, p) for q, p in zip(questions, passages, strict=True)]
    texts = reply(asked)
    for kept, call, text in zip(calls, asked, texts, strict=True):
        kept.append((call, text))
    return texts


def careful(calls: Sequence[Call]) -> list[str]:
    """The perfect team: name what the question names, then the country found; copy the answer."""
    return [_careful(call) for call in calls]


def _careful(call: Call) -> str:
    question = call.question
    if call.role.name == "answerer":
        return question.answer
    return f"{question.source} {question.first}" if call.turn == 0 else f"{question.country} {question.second}"


@dataclass(frozen=True, slots=True)
class Careless:
    """A team with bad habits: right with probability `skill` at each call, if its passages allow it."""

    skill: float
    rng: random.Random
    names: frozenset[str]
    """Words of names: what a careless reply picks from its passages."""

    def __call__(self, calls: Sequence[Call]) -> list[str]:
        return [self._reply(call) for call in calls]

    def _reply(self, call: Call) -> str:
        if self.rng.random() < self.skill and self._can(call):
            return _careful(call)
        jumps = self.rng.random() < 0.6
        if call.role.name == "answerer":
            return self._last_word(call) if jumps else self._any_name(call)
        if call.turn == 0:
            asked = [word for word in call.question.text.split() if word != "?"]
            return f"country {call.question.second}" if jumps else " ".join(self.rng.sample(asked, 2))
        if jumps:
            return f"{call.question.source} {call.question.second}"
        return f"{self._any_name(call)} {self.rng.choice(sorted(SENTENCES))}"

    def _can(self, call: Call) -> bool:
        """Whether the passages hold what a careful reply needs; the first query needs nothing."""
        if call.role.name != "answerer" and call.turn == 0:
            return True
        needed = call.question.documents[call.turn - 1]  # the first hop's for the second query, the last for the answer
        return needed in {passage.id for passage in call.passages}

    def _any_name(self, call: Call) -> str:
        seen = [w for passage in call.passages for w in passage.text.split() if w in self.names]
        return self.rng.choice(seen or call.question.source.split())

    def _last_word(self, call: Call) -> str:
        return call.passages[0].text.split()[-2] if call.passages else "none"
