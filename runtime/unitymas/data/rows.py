"""Task rows: flat JSON objects with the input fields by name and an optional id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unitymas.api.records import TaskRow
from unitymas.api.shapes import Shape, ShapeError, conform
from unitymas.api.workflow import Input
from unitymas.data.jsonl import Report, objects


def read_rows(path: Path, fields: Input, *, label: str = "") -> list[TaskRow]:
    """All rows of a file, in its order. Raises BadInput as `scan_rows` does."""
    return list(scan_rows(path, fields, label=label))


def scan_rows(path: Path, fields: Input, *, label: str = "") -> Iterator[TaskRow]:
    """The good rows of a `.jsonl` or `.jsonl.gz` file, one by one; fields that the input lacks are left out.

    A row's id is its `id`, else `label:line`; `label` is the file's name where absent. Raises BadInput after the last
    line, with one report of every bad row and repeated id.
    """
    label = label or path.name
    report = Report("rows", label)
    shapes = {**fields.visible_shapes(), **fields.hidden_shapes()}
    lines: dict[str, int] = {}
    for line, given in objects(path, report):
        row = _row(given, shapes, line, report)
        if row is None:
            continue
        first = lines.setdefault(row.id, line)
        if first == line:
            yield row
        else:
            report.add(line, path="id", found=f"`{row.id}` again, as in line {first}", expected="each id once")
    report.raise_if_any()


def _row(given: dict[str, object], shapes: dict[str, Shape], line: int, report: Report) -> TaskRow | None:
    before = report.total
    fields = {name: _field(name, shape, given, line, report) for name, shape in shapes.items()}
    key = given.get("id", f"{report.label}:{line}")
    if not isinstance(key, str | int) or key == "":
        report.add(line, path="id", found=f"{type(key).__name__} {key!r}", expected="a string or a whole number")
    return TaskRow(str(key), fields) if report.total == before else None


def _field(name: str, shape: Shape, given: dict[str, object], line: int, report: Report) -> object:
    if name not in given:
        present = ", ".join(given)
        report.add(line, path=name, found=f"no such field (there are {present})", expected=f"the input field `{name}`")
        return None
    try:
        return conform(shape, given[name], name)
    except ShapeError as error:
        report.add(line, path=error.path, found=error.found, expected=error.expected)
        return None
