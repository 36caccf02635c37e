"""The only door to Google's CEL engine: expressions, checked against shapes, evaluated on plain Python values.

Two engine environments share the work. One knows the shapes as message types and only checks; the other knows no type
and runs the same syntax tree on dicts and lists. Only what an expression reads is given to the engine, which converts
all that it is given: so an evaluation costs the same however much else there is.

An evaluation ends: the engine allows 10,000 loop iterations, over all comprehensions together, and `range` lists of
1,000. Regular expressions are RE2, so linear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, cast

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_math, ext_strings

from unitymas.api.shapes import Record, Shape
from unitymas.expr import hints
from unitymas.expr.errors import EvaluationError, ExpressionError
from unitymas.expr.functions import IMPLEMENTATION, declarations, implementations
from unitymas.expr.messages import Messages
from unitymas.expr.order import Arrange, arranger
from unitymas.expr.paths import Path, Tree, prune, resolve, spell, tree
from unitymas.expr.syntax import Syntax, overloads

Values = Mapping[str, object]

_EXTENSIONS = (ext_strings.ExtStrings(), ext_bindings.ExtBindings(), ext_math.ExtMath())
_JSON = "string, number, int, bool, a list or a record"
_NOT_JSON = {"BYTES", "DURATION", "TIMESTAMP", "TYPE"}


@cache
def _declared() -> cel.EnvConfig:
    return cel.NewEnvConfigFromYaml(declarations())


@cache
def _runner() -> cel.Env:
    """The environment that runs: no types, every function implemented."""
    return cel.NewEnv(extensions=_EXTENSIONS, functions=implementations())


@dataclass(frozen=True, slots=True)
class Program:
    """A checked expression. `shape` is the shape of its result: exact, ANY where only evaluation can tell."""

    text: str
    shape: Shape
    paths: frozenset[Path]
    """Member paths that it reads."""
    _run: Callable[[Values], object] = field(repr=False, compare=False)

    def evaluate(self, values: Values) -> object:
        """The result as plain Python: str, float, int, bool, list, dict. Raises EvaluationError.

        `values` holds the variables by name, JSON-like (dicts and lists, no other containers). A plain member path
        gives the very object that it leads to: treat results as immutable. The engine cuts text at a NUL character.
        """
        return self._run(values)


class Environment:
    """The variables that an expression may use, by shape."""

    def __init__(self, variables: Mapping[str, Shape]) -> None:
        self._variables = dict(variables)
        self._messages = Messages(self._variables)
        self._programs: dict[str, Program] = {}

    @staticmethod
    def of(variables: Mapping[str, Shape]) -> Environment:
        """The environment of these variables, shared between equal ones."""
        return _shared(Record(tuple(variables.items())))

    def compile(self, text: str) -> Program:
        """The expression, parsed and checked. Raises ExpressionError."""
        if text not in self._programs:
            self._programs[text] = self._compile(text)
        return self._programs[text]

    def _compile(self, text: str) -> Program:
        syntax = _parse(text)
        if syntax.message_name:
            raise ExpressionError(f"`{syntax.message_name}{{...}}`", "a record literal, such as {'a': 1}")
        checked = self._check(syntax, self._loose(syntax) if syntax.has_records else self._typed(syntax))
        type_name = checked.return_type().name()
        shape = self._messages.shape(type_name)
        if shape is None:
            raise ExpressionError(f"a result of type {type_name.lower()}", _JSON)
        return Program(text, shape, syntax.paths, _runnable(syntax, checked, shape))

    def _typed(self, syntax: Syntax) -> cel.Env:
        # the checker takes `has(a.b)` for `a.b` when there is a variable of that name, as there is for nested lists
        return self._without_nested if syntax.asks else self._with_nested

    @cached_property
    def _with_nested(self) -> cel.Env:
        return self._checker({**self._messages.variables, **self._messages.nested})

    @cached_property
    def _without_nested(self) -> cel.Env:
        return self._checker(self._messages.variables)

    def _checker(self, variables: Mapping[str, cel.Type]) -> cel.Env:
        pool = self._messages.pool()
        return cel.NewEnv(config=_declared(), descriptor_pool=pool, variables=variables, extensions=_EXTENSIONS)

    def _loose(self, syntax: Syntax) -> cel.Env:
        """Where a record literal meets records of other types: paths are checked here, the rest when evaluated."""
        self._check_paths(syntax)
        variables = {name: cel.Type.DYN for name in self._variables}
        return cel.NewEnv(config=_declared(), variables=variables, extensions=_EXTENSIONS)

    def _check(self, syntax: Syntax, environment: cel.Env) -> cel.Expression:
        try:
            return environment.compile(syntax.text)
        except RuntimeError as refused:
            self._check_paths(syntax)  # says more about a wrong field than the engine does
            raise hints.compile_error(syntax.text, str(refused), self._variables, self._messages) from None

    def _check_paths(self, syntax: Syntax) -> None:
        for path in sorted(syntax.paths):
            if path[0] in self._variables:  # else the name of a type, such as `int`, or an error of the engine's
                resolve(path, self._variables)


@lru_cache(maxsize=1024)
def _shared(variables: Record) -> Environment:
    return Environment(dict(variables.fields))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Syntax:
    try:
        return Syntax(text, _runner().compile(text, disable_check=True).serialize())
    except RuntimeError as refused:
        raise hints.compile_error(text, str(refused), (), Messages({})) from None


def names(text: str) -> set[Path]:
    """Member paths that an expression reads, such as `("nodes", "search", "output")`. Raises ExpressionError.

    The variables of comprehensions are left out; a path ends at the first index or call.
    """
    return set(_parse(text).paths)


def _runnable(syntax: Syntax, checked: cel.Expression, shape: Shape) -> Callable[[Values], object]:
    literal, path = syntax.literal, syntax.path
    if literal is not None:
        return lambda values: literal
    if path is not None:
        return _reader(syntax.text, path)
    chosen = overloads(checked.serialize())
    functions = {node: IMPLEMENTATION[name] for node, name in chosen.items() if name in IMPLEMENTATION}
    expression = _runner().deserialize(syntax.renamed(functions))
    run = _evaluator(syntax.text, expression, tree(syntax.paths))
    arrange = arranger(shape)
    return run if arrange is None else _arranged(syntax.text, run, arrange)


def _reader(text: str, path: Path) -> Callable[[Values], object]:
    """A member path needs no engine: most expressions of a workflow are one."""

    def read(values: Values) -> object:
        found: Any = values
        try:
            for name in path:
                found = found[name]
        except (KeyError, TypeError):
            raise _broken(text, path, values) from None
        return found

    return read


def _broken(text: str, path: Path, values: Values) -> EvaluationError:
    """Where a path that cannot be followed breaks off."""
    found: Any = values
    for depth, name in enumerate(path):
        if not isinstance(found, Mapping):
            return EvaluationError(text, f"`{spell(path[:depth])}` is no record: {found!r:.60}")
        if name not in found:
            return EvaluationError(text, f"no field `{name}`" if depth else f"no value for `{name}`")
        found = cast(Mapping[str, object], found)[name]
    return EvaluationError(text, "not evaluated")


def _evaluator(text: str, expression: cel.Expression, read: Tree) -> Callable[[Values], object]:
    def run(values: Values) -> object:
        try:
            outcome = expression.eval(data=prune(read, values))
        except RuntimeError as failed:
            raise hints.evaluation_error(text, str(failed)) from None
        kind = outcome.type().name()
        if kind == "ERROR":
            raise hints.evaluation_error(text, str(outcome.plain_value()))
        if kind in _NOT_JSON:
            raise EvaluationError(text, f"a result of type {kind.lower()}; expected {_JSON}")
        return outcome.plain_value()

    return run


def _arranged(text: str, run: Callable[[Values], object], arrange: Arrange) -> Callable[[Values], object]:
    def run_and_arrange(values: Values) -> object:
        result = run(values)
        try:
            return arrange(result)
        except (ValueError, TypeError, AttributeError) as wrong:  # values that are not of their declared shape
            raise EvaluationError(text, str(wrong)) from None

    return run_and_arrange
