"""The engine's messages, turned into what was found, what would be right, and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable

from unitymas.expr.errors import EvaluationError, ExpressionError, did_you_mean
from unitymas.expr.functions import DECLARED, MAX_ITERATIONS
from unitymas.expr.messages import Messages
from unitymas.expr.paths import no_field

_STANDARD = (
    *("all", "bool", "contains", "double", "endsWith", "exists", "exists_one", "filter", "has", "int", "join"),
    *("lowerAscii", "map", "matches", "replace", "size", "split", "startsWith", "string", "substring", "trim"),
    "upperAscii",
)
FUNCTIONS = sorted({*_STANDARD, *(overload.function for overload in DECLARED)})

_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_FIELD = re.compile(r"undefined field '([^']+)' not found in struct '([^']+)'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']+)' applied to '\((.*)\)'")
_FOREIGN = (
    (r"\band\b", "and", "&&"),
    (r"\bor\b", "or", "||"),
    (r"\bnot\b", "not", "!"),
    (r"(?<![=!<>])=(?!=)", "=", "=="),
)
"""Operators of Python and what CEL has for them."""
_SYNONYMS = {"len": "size", "str": "string", "float": "double", "lower": "lowerAscii", "upper": "upperAscii"}
_SPELLINGS = {"_?_:_": "? :", "_[_]": "[ ]", "@in": "in", "-_": "-", "!_": "!"}


def compile_error(text: str, message: str, variables: Iterable[str], messages: Messages) -> ExpressionError:
    """The first error that the engine reports of a text it will not compile."""
    located = _ERROR.search(message)
    if located is None:
        return ExpressionError(message.splitlines()[0], "a CEL expression")
    line, column, what = int(located[1]), int(located[2]), located[3].removesuffix(" [INVALID_ARGUMENT]")
    place = f"at column {column}" if "\n" not in text.strip() else f"at line {line}, column {column}"
    if match := _FIELD.search(what):
        return _field_error(match[1], match[2], messages)
    if match := _UNDECLARED.search(what):
        lines = text.splitlines()
        called = line <= len(lines) and lines[line - 1][column - 1 : column] == "("
        return _function_error(match[1]) if called else _variable_error(match[1], variables)
    if match := _OVERLOAD.search(what):
        return _operand_error(match[1], messages.describe(match[2]), place)
    if "Syntax error: " in what:
        return _syntax_error(text, what.partition("Syntax error: ")[2], place)
    return ExpressionError(f"{what} {place}", "a CEL expression")


def _field_error(name: str, message_name: str, messages: Messages) -> ExpressionError:
    record = messages.record(message_name)
    if record is None:
        return ExpressionError(f"`.{name}`", "a field that exists")
    return no_field(f"`.{name}`", name, record)


def _variable_error(name: str, variables: Iterable[str]) -> ExpressionError:
    known = sorted(variables)
    expected = f"one of {', '.join(known)}" if known else "no variable: none is seen here"
    return ExpressionError(f"`{name}`", expected, did_you_mean(name.partition(".")[0], known))


def _function_error(name: str) -> ExpressionError:
    if name in FUNCTIONS:
        return ExpressionError(f"`{name}(...)`", f"other arguments: {_signatures(name)}")
    known = _SYNONYMS.get(name)
    hint = f"did you mean `{known}`?" if known else did_you_mean(name, FUNCTIONS)
    return ExpressionError(f"function `{name}`", "a function of CEL or ours", hint)


def _signatures(function: str) -> str:
    ours = [overload.signature for overload in DECLARED if overload.function == function]
    return " or ".join(ours) if ours else f"those that CEL's `{function}` takes"


def _operand_error(function: str, types: str, place: str) -> ExpressionError:
    condition = types.partition(", ")[0]
    if function == "_?_:_" and condition not in ("bool", "dyn"):
        return ExpressionError(f"a condition of type {condition} {place}", "a condition that is true or false: bool")
    operator = _SPELLINGS.get(function) or function.strip("_")
    found = f"`{operator}` of ({types}) {place}"
    kinds = set(re.findall(r"\b(int|double)\b", types))
    hint = "arithmetic is strict: write `double(...)` around the int" if kinds == {"int", "double"} else ""
    if operator.isidentifier() and operator != "in":
        return ExpressionError(found, _signatures(operator), hint)
    expected = "branches of one type" if function == "_?_:_" else "operands that go together"
    return ExpressionError(found, expected, hint)


def _syntax_error(text: str, what: str, place: str) -> ExpressionError:
    if "<EOF>" in what.partition(" expecting ")[0]:
        return ExpressionError(f"the end of the text {place}", "more: the expression is not finished")
    culprit = re.search(r"'(.*?)'", what)
    found = f"syntax error {place}" + (f", near `{culprit[1]}`" if culprit else "")
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)
    foreign = [f"`{ours}` for `{theirs}`" for pattern, theirs, ours in _FOREIGN if re.search(pattern, bare)]
    return ExpressionError(found, "a CEL expression", f"CEL writes {', '.join(foreign)}" if foreign else "")


def evaluation_error(text: str, message: str) -> EvaluationError:
    """What the engine says of values that it could not work with."""
    reason = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", message)
    if "Iteration budget exceeded" in reason:
        return EvaluationError(text, f"more than the budget of {MAX_ITERATIONS} iterations")
    if match := re.search(r'No value with name "(.*)" found', reason):
        return EvaluationError(text, f"no value for `{match[1]}`")
    if match := re.search(r'Key not found in map : "?(.*?)"?$', reason):
        return EvaluationError(text, f"no field `{match[1]}`")
    if match := re.search(r"Index error: index=(-?\d+) size=(\d+)", reason):
        return EvaluationError(text, f"index {match[1]} is out of range: the list has {match[2]}")
    if "divide by zero" in reason or "modulus by zero" in reason:
        return EvaluationError(text, "division by zero")
    if match := re.search(r"No matching overloads found : (.*)", reason):
        types = match[1].replace("int64", "int")
        hint = "; write `double(...)` around the int" if "int" in types and "double" in types else ""
        return EvaluationError(text, f"no function or operator for these types: {types}{hint}")
    return EvaluationError(text, reason)
