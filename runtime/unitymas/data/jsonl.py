"""JSON Lines, plain or gzipped, read as a stream; what is wrong with them, reported once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from unitymas.api.errors import BadInput, Finding
from unitymas.api.shapes import encodable

SHOWN = 20
"""Findings told one by one; the rest are counted."""


@dataclass(slots=True)
class Report:
    """What is wrong with a file: the first findings, and how many there are, however long the file is."""

    check: str
    label: str
    """The file's name in findings."""
    shown: list[Finding] = field(default_factory=list[Finding])
    total: int = 0

    def add(self, line: int, *, found: str, expected: str, path: str = "") -> None:
        """Record one finding about a line, counted from 1."""
        self.total += 1
        if self.total <= SHOWN:
            place = f"{self.label}:{line}" + (f": {path}" if path else "")
            self.shown.append(Finding(self.check, place, found, expected))

    def raise_if_any(self) -> None:
        """Raise BadInput when anything was recorded."""
        if self.total > SHOWN:
            more = f"{self.total - SHOWN} more mistakes"
            raise BadInput([*self.shown, Finding(self.check, self.label, more, "none")])
        if self.shown:
            raise BadInput(self.shown)


def objects(path: Path, report: Report) -> Iterator[tuple[int, dict[str, object]]]:
    """Line number, from 1, and object of each line; blank lines are skipped, others go to the report."""
    line = 0
    try:
        with _opened(path) as file:
            for line, text in enumerate(file, start=1):
                if value := _object(text, line, report):
                    yield line, value
    except (OSError, EOFError, UnicodeDecodeError) as error:  # a gzip file cut short is an EOFError
        report.add(line + 1, found=str(error), expected="readable JSON Lines in UTF-8, gzipped if named *.gz")


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _object(text: str, line: int, report: Report) -> dict[str, object] | None:
    if text.isspace():
        return None
    try:
        value: object = json.loads(text)
    except ValueError as error:
        report.add(line, found=f"broken JSON ({error})", expected="one JSON object per line")
        return None
    if "\\u" in text and not encodable(value):  # only an escape can say it
        report.add(line, found="half of a surrogate pair", expected="text that UTF-8 can write")
        return None
    if isinstance(value, dict) and value:
        return cast(dict[str, object], value)
    report.add(line, found=f"{type(value).__name__} {text.strip()[:60]}", expected="a JSON object with fields")
    return None
