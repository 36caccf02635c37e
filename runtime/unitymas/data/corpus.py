"""Corpora: passages to retrieve from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unitymas.data.jsonl import Report, objects


@dataclass(frozen=True, slots=True)
class Passage:
    """One row of a corpus."""

    id: str
    title: str
    text: str


def read_corpus(path: Path) -> list[Passage]:
    """All passages of a `.jsonl` or `.jsonl.gz` file of `{id, title, text}`, in its order.

    `text` is required; without `title` it is empty, without `id` it is the line number. Raises BadInput with one
    report of every bad row and repeated id.
    """
    report = Report("corpus", path.name)
    passages = list(_passages(path, report))
    report.raise_if_any()
    return passages


def _passages(path: Path, report: Report) -> Iterator[Passage]:
    lines: dict[str, int] = {}
    for line, given in objects(path, report):
        key, title, text = str(given.get("id", line)), given.get("title", ""), given.get("text")
        if not isinstance(text, str):
            report.add(line, path="text", found="nothing" if text is None else f"{text!r}"[:60], expected="a string")
        elif not isinstance(title, str):
            report.add(line, path="title", found=f"{title!r}"[:60], expected="a string")
        elif (first := lines.setdefault(key, line)) != line:
            report.add(line, path="id", found=f"`{key}` again, as in line {first}", expected="each id once")
        else:
            yield Passage(key, title, text)
