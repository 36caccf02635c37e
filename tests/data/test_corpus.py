"""Corpora: defaults, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unitymas.api.errors import BadInput
from unitymas.data import Passage, read_corpus


def write(folder: Path, *rows: object) -> Path:
    file = folder / "wiki.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_only_the_text_of_a_passage_is_required(tmp_path: Path):
    file = write(tmp_path, {"id": 5, "title": "Alps", "text": "mountains"}, {"text": "sea", "url": "x"})
    assert read_corpus(file) == [Passage("5", "Alps", "mountains"), Passage("2", "", "sea")]


def test_every_bad_passage_is_told_with_its_line(tmp_path: Path):
    file = write(
        tmp_path, {"title": "a"}, {"text": 3}, {"title": 3, "text": "a"}, {"id": 9, "text": ""}, {"id": "9", "text": ""}
    )
    with pytest.raises(BadInput) as caught:
        read_corpus(file)
    assert [(found.path, found.found) for found in caught.value.findings] == [
        ("wiki.jsonl:1: text", "nothing"),
        ("wiki.jsonl:2: text", "3"),
        ("wiki.jsonl:3: title", "3"),
        ("wiki.jsonl:5: id", "`9` again, as in line 4"),
    ]


def test_a_passage_with_half_of_a_surrogate_pair_is_told_with_its_line(tmp_path: Path):
    file = write(tmp_path, {"text": "right"}, {"text": "\ud800"})
    with pytest.raises(BadInput) as caught:
        read_corpus(file)
    assert [finding.path for finding in caught.value.findings] == ["wiki.jsonl:2"]
