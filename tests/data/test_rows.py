"""Task rows: what is read, and how all that is wrong is told in one report."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from unitymas.api.errors import BadInput, Finding
from unitymas.api.records import TaskRow
from unitymas.api.workflow import Input
from unitymas.data import read_rows, scan_rows

INPUT = Input.model_validate({"visible": {"question": "string"}, "hidden": {"answers": ["string"]}})


def write(folder: Path, lines: Iterable[object], name: str = "train.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file


def row(**fields: object) -> dict[str, object]:
    return {"question": "q", "answers": ["a"], **fields}


def findings(file: Path) -> list[Finding]:
    with pytest.raises(BadInput) as caught:
        read_rows(file, INPUT)
    return list(caught.value.findings)


def test_an_id_is_the_rows_own_or_file_and_line(tmp_path: Path):
    file = write(tmp_path, [row(id="x"), "", row(), row(id=7)])
    assert [read.id for read in read_rows(file, INPUT)] == ["x", "train.jsonl:3", "7"]
    assert read_rows(file, INPUT, label="hotpot/train.jsonl")[1].id == "hotpot/train.jsonl:3"


def test_only_the_input_fields_are_kept(tmp_path: Path):
    file = write(tmp_path, [row(id="x", level="hard")])
    assert read_rows(file, INPUT) == [TaskRow("x", {"question": "q", "answers": ["a"]})]


def test_a_field_without_a_shape_may_hold_anything_but_null(tmp_path: Path):
    file = write(tmp_path, [{"question": {"any": [1]}}, {"question": None}])
    fields = Input(visible=["question"])
    with pytest.raises(BadInput) as caught:
        read_rows(file, fields)
    (found,) = caught.value.findings
    assert (found.path, found.found) == ("train.jsonl:2: question", "null")


def test_gzip_reads_like_plain_text(tmp_path: Path):
    plain = write(tmp_path, [row(id=str(n)) for n in range(3)])
    packed = tmp_path / "train.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    assert read_rows(packed, INPUT) == read_rows(plain, INPUT)


def test_every_bad_row_is_told_with_its_line(tmp_path: Path):
    lines = [row(), "{", "[1]", {"question": "q"}, row(answers=["a", 2]), row(id=[]), row(id="x"), row(id="x")]
    told = findings(write(tmp_path, lines))
    assert [found.path for found in told] == [
        "train.jsonl:2",
        "train.jsonl:3",
        "train.jsonl:4: answers",
        "train.jsonl:5: answers[1]",
        "train.jsonl:6: id",
        "train.jsonl:8: id",
    ]
    assert "broken JSON" in told[0].found
    assert told[2].found == "no such field (there are question)"
    assert (told[3].found, told[3].expected) == ("int 2", "string")
    assert told[5].found == "`x` again, as in line 7"


def test_a_long_report_is_cut_to_twenty_and_a_count(tmp_path: Path):
    told = findings(write(tmp_path, [{}] * 30))
    assert len(told) == 21
    assert told[-1].found == "10 more mistakes"


@pytest.mark.parametrize(
    "content", [gzip.compress(b'{"question": "q"}\n' * 99, mtime=0)[:-20], b"no gzip", gzip.compress(b"\xff", mtime=0)]
)
def test_an_unreadable_file_is_a_finding(tmp_path: Path, content: bytes):
    file = tmp_path / "train.jsonl.gz"
    file.write_bytes(content)
    assert findings(file)[-1].expected.startswith("readable JSON Lines")


def test_rows_are_given_as_they_are_read(tmp_path: Path):
    rows = scan_rows(write(tmp_path, [row(id="x"), "{"]), INPUT)
    assert next(rows).id == "x"
    with pytest.raises(BadInput):
        next(rows)


@pytest.mark.parametrize("field", ["question", "id"])
def test_half_of_a_surrogate_pair_is_told_with_its_line(tmp_path: Path, field: str):
    (found,) = findings(write(tmp_path, [row(), row(**{field: "a\ud800"}), row(id="\U0001f600")]))
    assert (found.path, found.found) == ("train.jsonl:2", "half of a surrogate pair")
