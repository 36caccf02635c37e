"""The only door to Jinja2: prompts, rendered to segments of our text and the variables' text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from traceback import walk_tb
from typing import Any, cast

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from unitymas.api.records import Segment
from unitymas.api.shapes import Shape
from unitymas.expr import budget
from unitymas.expr.errors import EvaluationError, ExpressionError
from unitymas.expr.paths import ITEM, Path, resolve
from unitymas.expr.references import METHODS, references

MAX_REPEAT = 100_000
"""Longest text or list that `*` may make in a template, in characters or items; `range` has the same limit."""

MAX_BITS = 4096
"""Largest whole number that `*` may make."""
_STEPS = " steps"
"""The filter that every loop's items pass; no template can call it by this name."""


class Literal(str):
    """Text of the template itself. Whatever is printed and is not of this class came from a variable."""

    __slots__ = ()


class _Generator(CodeGenerator):
    """Marks the template's own text in the code that Jinja2 makes; what passes a macro or a filter loses the mark."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        """`~`, paid for."""
        self.write("environment.concatenated((")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def _output_const_repr(self, group: Any) -> str:
        return f"environment.literal({''.join(group)!r})"

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible  # `{{ 'constant' }}` is an output like any other
        return super()._output_child_to_const(node, frame, finalize)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja2 for prompts: values are data, read by field; nothing is random, everything is bounded."""

    code_generator_class = _Generator
    concatenated = staticmethod(budget.concatenated)
    intercepted_binops = frozenset({"+", "%", "*", "**"})

    def __init__(self) -> None:
        # optimized would compute constants while compiling, where no budget is
        super().__init__(undefined=StrictUndefined, optimized=False, finalize=budget.printed)
        del self.globals["lipsum"]
        kept = {name: run for name, run in self.filters.items() if name not in budget.DROPPED}
        self.filters = {name: budget.paid_filter(name, run) for name, run in kept.items()}
        self.filters[_STEPS] = budget.steps

    @staticmethod
    def literal(text: str) -> Literal:
        """The template's own text, paid for."""
        budget.charge(len(text))
        return Literal(text)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read it; not a method of texts that prompts do not have."""
        return not (isinstance(obj, str) and attr in budget.NO_METHODS) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` by the formatter that pays; None for any other attribute."""
        text = getattr(value, "__self__", None)
        if not isinstance(text, str) or getattr(value, "__name__", "") != "format":
            return None
        return lambda *arguments, **named: budget.Formatter(self).vformat(text, arguments, named)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call in the template, paid for."""
        given = [budget.listed(one) for one in args]
        budget.pay_call(obj, given, kwargs)
        return super().call(context, obj, *given, **kwargs)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A record's field first, so that a field may be called `items`; no other attribute of a record but METHODS."""
        if isinstance(obj, dict) and (attribute in obj or attribute not in METHODS):
            return self.getitem(cast(dict[str, object], obj), attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """A record's field or a list's item; never an attribute, which plain Jinja2 would fall back to."""
        try:
            return obj[argument]
        except (LookupError, TypeError, AttributeError):
            return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """What operators make, within bounds."""
        if operator == "*":
            _refuse_many(left, right)
        elif operator == "**" and isinstance(left, int) and abs(left) > 1 and right > 64:
            raise SecurityError("`**` takes exponents up to 64")
        elif operator == "%" and isinstance(left, str):
            budget.charge(budget.percent(left, right))
        made = super().call_binop(context, operator, left, right)
        budget.charge(len(made) if isinstance(made, str | list | tuple) else 1)
        return made


def _refuse_many(left: object, right: object) -> None:
    for sequence, count in ((left, right), (right, left)):
        if not isinstance(sequence, str | list | tuple) or not isinstance(count, int):
            continue
        if len(cast(Sequence[object], sequence)) * count > MAX_REPEAT:
            raise SecurityError(f"`*` would make more than {MAX_REPEAT} characters or items")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MAX_BITS:
        raise SecurityError(f"`*` would make a number of more than {MAX_BITS} bits")


_ENVIRONMENT = _Environment()
_REFUSED = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


class Template:
    """A prompt template. Raises ExpressionError, with the line, when it cannot be read."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = _ENVIRONMENT.parse(text)
            self._paths = references(tree)
            for loop in list(tree.find_all(nodes.For)):
                loop.iter = nodes.Filter(loop.iter, _STEPS, [], [], None, None, lineno=loop.iter.lineno)
            self._always = _always(tree)
            self._template = _ENVIRONMENT.from_string(tree)
            self._globals = dict(self._template.globals)  # a ChainMap, slow to merge with each call's values
        except TemplateSyntaxError as error:
            raise ExpressionError(f"line {error.lineno}: {error.message}", "a Jinja2 template") from None
        if any(path[0] == "self" for path in self._paths):
            raise ExpressionError("`self`", "another name: Jinja2 keeps this one for itself")
        for node in tree.find_all(_REFUSED):
            raise ExpressionError(f"line {node.lineno}: {type(node).__name__.lower()}", "one template by itself")

    def names(self) -> set[Path]:
        """Member paths that the template reads, such as `("state", "hits", "text")`; local names left out."""
        return {tuple(name for name in path if name != ITEM) for path in self._paths}

    def always(self) -> str:
        """The template's own text that every rendering holds: what stands outside conditions, loops and macros."""
        return self._always

    def check(self, variables: Mapping[str, Shape]) -> list[ExpressionError]:
        """Every path that does not exist in the variables."""
        return [error for path in sorted(self._paths) for error in _unresolved(path, variables)]

    def render(self, values: Mapping[str, object]) -> tuple[Segment, ...]:
        """The prompt in segments: outputs are variable, the rest is not. Raises EvaluationError.

        Neighbours of one kind are merged, empty ones dropped. What passes a macro, a filter block or a `call` counts
        as variable: the safe side, since a variable's text is never read as control tokens.
        """
        return tuple(
            Segment("".join(pieces), kind is not Literal) for kind, pieces in groupby(self._pieces(values), key=type)
        )

    def _pieces(self, values: Mapping[str, object]) -> list[str]:
        context = self._template.new_context({**self._globals, **values}, shared=True)
        root = cast(Callable[[Any], Iterator[str]], self._template.root_render_func)
        try:
            with budget.budget():
                return [piece for piece in root(context) if piece]
        except _FAILURES as error:
            raise EvaluationError(self.text, f"line {self._line(error)}: {_reason(error)}") from None

    def _line(self, error: BaseException) -> int:
        """The template's line that raised, from the frames of the code that Jinja2 generated."""
        frames = walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == "<template>"]
        return self._template.get_corresponding_lineno(lines[-1]) if lines else 1


_FAILURES = (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


def _always(tree: nodes.Template) -> str:
    printed = [node for part in tree.body if isinstance(part, nodes.Output) for node in part.nodes]
    return "".join(node.data for node in printed if isinstance(node, nodes.TemplateData))


def _reason(error: BaseException) -> str:
    if not isinstance(error, UndefinedError):
        return f"{type(error).__name__}: {error}"
    message = error.message or "undefined"
    if match := re.fullmatch(r"'dict object' has no attribute '(.*)'", message):
        return f"no field `{match[1]}`"
    if match := re.fullmatch(r"'(.*)' is undefined", message):
        return f"no value for `{match[1]}`"
    return message


def _unresolved(path: Path, variables: Mapping[str, Shape]) -> Iterator[ExpressionError]:
    try:
        resolve(path, variables)
    except ExpressionError as error:
        yield error
