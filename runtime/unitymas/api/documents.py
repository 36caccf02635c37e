"""YAML text as documents: JSON data, with the line of every key and item kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from unitymas.api.errors import Finding, Findings

Parts = tuple[str | int, ...]
"""A field path in parts: keys and indexes."""

UNQUOTED = "put quotes around a value that holds `: `, `? ... :` or begins with `{{`"
_PLAIN = re.compile(r"[A-Za-z_][\w-]*")
_STEP = re.compile(r"\.?(?P<key>[^.\[\]]+)|\[(?P<index>\d+)\]|\[\"(?P<quoted>[^\"]*)\"\]")


def spell(parts: Parts) -> str:
    """The path as findings say it: `spec.nodes[2].with.passages`, and `perNode["nvidia.com/gpu"]`."""
    text = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" if _PLAIN.fullmatch(part) else f'["{part}"]'
        for part in parts
    )
    return text.removeprefix(".")


def parts_of(path: str) -> Parts:
    """The parts of a path that `spell` wrote."""
    return tuple(
        int(step["index"]) if step["index"] is not None else step["quoted"] if step["key"] is None else step["key"]
        for step in _STEP.finditer(path)
    )


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document. `data` is JSON: dicts with string keys, lists, strings, numbers, booleans, None."""

    file: str
    data: object
    lines: Mapping[Parts, int]
    """Line of each key and item, from 1; `()` is the document's own."""
    start: Parts = ()
    """Where this document begins within `lines`: not at the top for an item of a `List`."""

    def line_of(self, parts: Parts) -> int:
        """Line of a field, or of the nearest one around it that is written."""
        whole = (*self.start, *parts)
        return next(line for n in range(len(whole), -1, -1) if (line := self.lines.get(whole[:n])))

    def within(self, *parts: str | int) -> Document:
        """The document that begins at a field of this one."""
        data: Any = self.data
        for part in parts:
            data = data[part]
        return replace(self, data=data, start=(*self.start, *parts))


def documents(text: str, *, file: str) -> Iterator[Document]:
    """Read YAML 1.2 (so JSON too); empty documents are left out. Raises BadInput naming line and column."""
    yaml: Any = YAML(typ="safe", pure=True)  # the C parser reads YAML 1.1
    findings = Findings()
    try:
        constructor, _ = yaml.get_constructor_parser(text)
        while constructor.check_data():
            node: Any = constructor.composer.get_node()
            lines: dict[Parts, int] = {}
            _collect(node, (), node, lines, set())
            data = json.loads(json.dumps(constructor.construct_document(node), default=str))
            if data is not None:
                yield Document(file, data, lines)
    except DuplicateKeyError as error:
        key = re.search(r'key "(.*?)"', _say(error)[0])
        _broken(findings, error, file, found=f"a second key `{key[1] if key else ''}`", expected="each key once")
    except MarkedYAMLError as error:
        _broken(findings, error, file, found=" ".join(_say(error)).removeprefix("found ").strip(), expected="YAML")
    except (YAMLError, ValueError) as error:  # ValueError: an alias within itself, a date that is none
        findings.items.append(Finding("yaml-syntax", "document", f"{error}".strip(), "YAML", file=file))
    findings.raise_if_any()


def _say(error: Any) -> tuple[str, str]:
    """What ruamel found, and while doing what."""
    return str(error.problem), error.context or ""


def _broken(findings: Findings, error: Any, file: str, *, found: str, expected: str) -> None:
    mark: Any = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    hint = UNQUOTED if any(sign in found for sign in ("mapping values", "unhashable", "expected ',' or '}'")) else ""
    findings.items.append(Finding("yaml-syntax", f"column {column}", found, expected, hint, file=file, line=line))


def _collect(node: Any, parts: Parts, written: Any, lines: dict[Parts, int], seen: set[int]) -> None:
    """Line of a node, which is where `written` (its key, or itself) begins; and of all below it.

    Aliased nodes are entered once: elsewhere the line of the alias is the nearest.
    """
    lines[parts] = written.start_mark.line + 1
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "mapping":
        for key, value in node.value:
            _collect(value, (*parts, str(key.value)), key, lines, seen)
    elif node.id == "sequence":
        for index, item in enumerate(node.value):
            _collect(item, (*parts, index), item, lines, seen)
