"""What rendering one prompt may cost: every step, and everything that grows, is paid for before it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, MappingView, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext
from jinja2.sandbox import SandboxedFormatter
from jinja2.utils import Namespace

BUDGET = 10_000_000
"""Most characters and items that the parts of one render may take and make, all together."""
STEP = 100
"""Cost of one item of a loop, and of one call, in characters."""
ITEM = 10
"""Weight of a value that is no text."""
DIGITS = 300
"""Most digits after the point, and widest field, that formats may ask for."""


class _Left:
    __slots__ = ("units",)

    def __init__(self) -> None:
        self.units = BUDGET


_LEFT: ContextVar[_Left] = ContextVar("unitymas_render_budget")


@contextmanager
def budget() -> Generator[None]:
    """What is rendered inside shares one budget."""
    token = _LEFT.set(_Left())
    try:
        yield
    finally:
        _LEFT.reset(token)


def charge(units: int) -> None:
    """Pay. Raises SecurityError when the render's budget is used up."""
    left = _LEFT.get()
    left.units -= units
    if left.units < 0:
        raise SecurityError(f"the prompt takes more than {BUDGET} characters, items and steps to make")


def weight(value: object) -> int:
    """About how many characters the value is as text; counting stops beyond BUDGET, so that it ends for any value."""
    if isinstance(value, str):
        return len(value)
    total, stack = 0, [value]
    while stack and total <= BUDGET:
        one = stack.pop()
        total += len(one) if isinstance(one, str | range) else ITEM
        if isinstance(one, Namespace):
            one = cast(object, object.__getattribute__(one, "_Namespace__attrs"))  # printed with all that it holds
        if isinstance(one, Mapping):
            record = cast(Mapping[object, object], one)
            stack += [*record.keys(), *record.values()]
        elif isinstance(one, list | tuple | set | frozenset | MappingView):
            stack += cast(Iterable[object], one)
    return total


def listed(value: Any) -> Any:
    """What a filter gives item by item, as a list, whose weight is known; any other value as it is."""
    lazy = isinstance(value, Iterator) and not isinstance(value, LoopContext)
    return list(cast(Iterator[object], value)) if lazy else value


def printed(value: object) -> object:
    """An output, paid for."""
    charge(weight(value))
    return value


def steps(items: Iterable[object]) -> Iterator[object]:
    """The items of a loop, each paid for."""
    for item in items:
        charge(STEP)
        yield item


def concatenated(values: Sequence[object]) -> str:
    """What `~` makes."""
    charge(sum(map(weight, values)))
    return "".join(map(str, values))


_KEY = r"%(?:\([^()]*\))?[#0 +-]*"
_WIDE = re.compile(rf"{_KEY}(?:\*|\d{{4,}})|{_KEY}\d*\.(?:\*|\d{{4,}})|%\([^)]*\(")
"""A `%` field of a width that is not known, or of thousands of characters."""


def percent(text: object, given: object) -> int:
    """Cost of `text % given`. Raises SecurityError for a field that is too wide."""
    if _WIDE.search(str(text)):
        raise SecurityError(f"fields may be up to {DIGITS} wide")
    return str(text).count("%") * (weight(given) + DIGITS)


class Formatter(SandboxedFormatter):
    """`str.format`, within the budget."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """As text where `!r` or `!s` says so."""
        charge(weight(value))
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        """As the field's specification says."""
        if any(int(digits) > DIGITS for digits in re.findall(r"\d{1,9}", format_spec)):
            raise SecurityError(f"fields may be up to {DIGITS} wide")
        charge(weight(value) + DIGITS)
        return super().format_field(value, format_spec)


def _width(value: object, width: int = 80, *_: object) -> int:
    return width


def _tabs(text: str, tabsize: int = 8) -> int:
    return text.count("\t") * tabsize


def _replaced(text: object, old: object, new: object, count: object = None) -> int:
    return str(text).count(str(old)) * len(str(new))


def _joined(items: object, between: object = "", attribute: object = None) -> int:
    return weight(items) * (1 + len(str(between))) if isinstance(items, list | tuple) else weight(items)


def _indented(text: object, width: int | str = 4, first: bool = False, blank: bool = False) -> int:
    return (str(text).count("\n") + 1) * (len(width) if isinstance(width, str) else width)


def _wrapped(
    text: object, width: int = 79, break_long_words: bool = True, wrapstring: str | None = None, hyphens: bool = True
) -> int:
    return len(str(text)) * len(wrapstring or "")


def _json(value: object, indent: int | None = None) -> int:
    return weight(value) * (indent or 0)


def _rounded(value: object, precision: int = 0, method: str = "common") -> int:
    return 0 if abs(precision) <= DIGITS else BUDGET + 1  # `ceil` and `floor` make a power of ten


def _summed(items: object, attribute: object = None, start: object = 0) -> int:
    return 0 if isinstance(start, int | float) else weight(items) ** 2  # lists, copied for every item


def _formatted(text: object, *given: object, **named: object) -> int:
    return percent(text, named or given)


GROWTH: Mapping[str, Callable[..., int]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "batch", "slice"), _width),
    "expandtabs": _tabs,
    "replace": _replaced,
    "indent": _indented,
    "wordwrap": _wrapped,
    "tojson": _json,
    "round": _rounded,
    "sum": _summed,
}
"""Filters and methods that make more than they are given: how much more, from their arguments."""
FILTERS = {**GROWTH, "join": _joined, "format": _formatted}
DROPPED = frozenset({"random", "urlize", "xmlattr"})
"""Filters that prompts do not have: chance, and HTML."""
NO_METHODS = frozenset({"encode", "translate", "maketrans", "format_map"})
"""Methods that texts do not have in a prompt: they make bytes, or grow by a table."""


def paid_filter(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, paid for whenever it runs."""
    skipped = 1 if hasattr(run, "jinja_pass_arg") else 0  # Jinja2's own argument comes first
    growth = FILTERS.get(name)

    @wraps(run)
    def paid(*arguments: Any, **named: Any) -> Any:
        given: list[Any] = [listed(one) for one in arguments[skipped:]]
        charge(STEP + sum(map(weight, given)) + sum(map(weight, named.values())))
        if growth is not None:
            charge(max(0, growth(*given, **named)))
        return run(*arguments[:skipped], *given, **named)

    return paid


def pay_call(called: object, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Pay for a call of a macro, a function, or a text's method."""
    charge(STEP + sum(map(weight, arguments)) + sum(map(weight, named.values())))
    owner = getattr(called, "__self__", None)
    if not isinstance(owner, str):
        return
    method = getattr(called, "__name__", "")
    charge(len(owner))
    if method == "join":
        charge(sum(_joined(items, owner) for items in arguments))
    elif method in GROWTH:
        charge(max(0, GROWTH[method](owner, *arguments, **named)))
