"""What pydantic found wrong with a document, as findings that a user can act on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from unitymas.api.base import DNS_LABEL, IDENTIFIER
from unitymas.api.documents import Document, Parts, spell
from unitymas.api.errors import Finding
from unitymas.api.fields import fields_at

EXPECTED: Mapping[str, str] = {
    "missing": "this field: it is required",
    "extra_forbidden": "one of {names}",
    "literal_error": "one of {choices}",
    "string_type": "a string",
    "string_pattern_mismatch": "{pattern}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} character",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entry",
}
"""What would be right, by pydantic's type of the error; the fields of its context are filled in."""
_PATTERNS = {
    DNS_LABEL: "a DNS label: lower-case letters, digits and `-`",
    IDENTIFIER: "a CEL identifier: letters, digits and `_`, no digit first",
}
_NOT_TEXT = re.compile(r"[-+.\d]+(e[-+]?\d+)?|true|false|null|")
"""Strings that need their quotes, or YAML reads something else."""
_OTHER_TYPE = frozenset(
    [
        "string_type",
        "int_type",
        "float_type",
        "bool_type",
        "list_type",
        "tuple_type",
        "dict_type",
        "mapping_type",
        "model_type",
    ]
)
"""Errors that say: this is no value of my type at all. A union's other members fit better."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """One of pydantic's errors: where in the document, and through which member of which union."""

    type: str
    path: Parts
    value: object
    message: str
    context: Mapping[str, Any]
    union: Parts | None
    member: str


def findings_of(error: ValidationError, document: Document, *, kind: str, name: str) -> list[Finding]:
    """One finding per mistake, in the order of the document. Of a union, what its best-fitting member says."""
    problems = [_problem(details, document.data) for details in error.errors(include_url=False)]
    plain = [_finding([problem], kind) for problem in problems if problem.union is None]
    unions = [_finding_of_union(group, kind) for group in _by_union(problems)]
    found = [*plain, *(finding for group in unions for finding in group)]
    placed = [
        finding.at(kind=kind, name=name, file=document.file, line=document.line_of(parts)) for parts, finding in found
    ]
    return sorted(placed, key=lambda finding: finding.line)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the nearest known word, or nothing when none is near."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""


def describe(value: object) -> str:
    """A value in a finding's words: short, as YAML has it."""
    match value:
        case None:
            return "null"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "a mapping of " + (", ".join(str(key) for key in cast(dict[str, object], value)) or "nothing")
        case list():
            return f"a list of {len(cast(list[object], value))}"
        case _:
            text = f'"{value}"' if isinstance(value, str) and _NOT_TEXT.fullmatch(value) else str(value)
            return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


def _problem(details: Any, data: object) -> _Problem:
    """Follow the error's location through the data; what leads nowhere is a union's member, not a field."""
    path: list[str | int] = []
    union: Parts | None = None
    member, location = "", details["loc"]
    here: Any = data
    for depth, part in enumerate(location):
        if _has(here, part):
            here = here[part]
            path.append(part)
        elif part == "[key]":
            here = path[-1]
        elif details["type"] == "missing" and depth == len(location) - 1:
            path.append(part)
        elif union is None:
            union, member = tuple(path), str(part)
    return _Problem(details["type"], tuple(path), here, details["msg"], details.get("ctx", {}), union, member)


def _has(value: Any, part: str | int) -> bool:
    return part in value if isinstance(value, dict) else isinstance(part, int) and part in range(len(value))


def _by_union(problems: Sequence[_Problem]) -> list[list[_Problem]]:
    groups: dict[Parts, list[_Problem]] = {}
    for problem in problems:
        if problem.union is not None:
            groups.setdefault(problem.union, []).append(problem)
    return list(groups.values())


def _finding_of_union(group: Sequence[_Problem], kind: str) -> list[tuple[Parts, Finding]]:
    """What the member says that accepts the value's type, with the fewest mistakes; else what all would accept."""
    members: dict[str, list[_Problem]] = {}
    for problem in group:
        members.setdefault(problem.member, []).append(problem)
    fitting = [
        problems
        for problems in members.values()
        if not any(problem.type in _OTHER_TYPE and problem.path == problem.union for problem in problems)
    ]
    if fitting:
        return [_finding([problem], kind) for problem in min(fitting, key=len)]
    return [_finding(group, kind)]


def _finding(problems: Sequence[_Problem], kind: str) -> tuple[Parts, Finding]:
    """The finding of one problem, or of several about one value that each want another type."""
    first = problems[0]
    found, hint = describe(first.value), ""
    if first.type == "missing":
        found = "nothing"
    elif first.type == "extra_forbidden":
        found, hint = "an unknown field", _field_hint(str(first.path[-1]), fields_at(kind, first.path[:-1]))
    elif first.type == "literal_error":
        hint = did_you_mean(str(first.value), _choices(first))
    elif first.type == "string_type" and isinstance(first.value, int | float):
        hint = "write it in quotes"
    elif first.type == "value_error":
        found = _found_in(first.message) or found
    expected = " or ".join(dict.fromkeys(_expected(problem, kind) for problem in problems))
    return first.path, Finding(_check(first.type), spell(first.path), found, expected, hint)


def _check(kind_of_error: str) -> str:
    return {"missing": "missing-field", "extra_forbidden": "unknown-field"}.get(kind_of_error, "wrong-value")


def _expected(problem: _Problem, kind: str) -> str:
    if problem.type == "value_error":
        return _wanted(problem)
    template = EXPECTED.get(problem.type)
    if template is None:
        return f"otherwise: {problem.message}"
    filled = dict(problem.context)
    if "pattern" in filled:
        filled["pattern"] = _PATTERNS.get(filled["pattern"], f"text that matches {filled['pattern']}")
    if problem.type == "extra_forbidden":
        filled["names"] = ", ".join(fields_at(kind, problem.path[:-1])) or "no field"
    if problem.type == "literal_error":
        filled["choices"] = ", ".join(_choices(problem))
    return template.format(**filled)


def _wanted(problem: _Problem) -> str:
    """Our validators say what is right, and may end `; found X`; a bare statement is introduced."""
    text = problem.message.removeprefix("Value error, ")
    if _found_in(problem.message):
        return text.rpartition("; found ")[0]
    return f"fields that agree: {text}" if isinstance(problem.value, dict) else f"another value: {text}"


def _found_in(message: str) -> str:
    return message.rpartition("; found ")[2] if "; found " in message else ""


def _choices(problem: _Problem) -> list[str]:
    return re.findall(r"'([^']*)'", str(problem.context["expected"]))


def _field_hint(name: str, known: Sequence[str]) -> str:
    camel = to_camel(name)
    return f"fields are camelCase: `{camel}`" if camel != name and camel in known else did_you_mean(name, known)
