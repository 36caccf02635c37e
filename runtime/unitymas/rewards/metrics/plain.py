"""A LaTeX answer as plain text: no units, no markup, no spaces; whole numbers in their shortest form."""

from __future__ import annotations

import logging
import re
from decimal import Decimal
from functools import cache
from typing import cast

from pylatexenc.latex2text import LatexNodes2Text  # pyright: ignore[reportMissingTypeStubs]

logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)  # half-written LaTeX is the policy's doing, not worth a line

MAX_DIGITS = 1000

_TEXT = re.compile(r"\\text\{(.+?)\}")
_UNITS = "degree|cm|centimeter|meter|mile|second|minute|hour|day|week|month|year|foot|feet|inch|yard"
_REPLACED = (
    (re.compile(r"\\?\$|\\?%"), ""),
    (re.compile(r" (?:or|and) "), " , "),
    (re.compile("million"), "*10^6"),
    (re.compile("billion"), "*10^9"),
    (re.compile("trillion"), "*10^12"),
    (re.compile(rf"(?:{_UNITS})(?:es)?s? *(?:\^[0-9]+)?"), ""),
    (re.compile(r"\^ *\\circ"), ""),
    (re.compile(r",\\! *"), ""),
)
_SYMBOLS = str.maketrans(
    {"√": "sqrt", "π": "pi", "∞": "inf", "\N{UNION}": "U", "·": "*", "\N{MULTIPLICATION SIGN}": "*"}
)
_MIXED = re.compile(r"([0-9]) +(?=[0-9])")
_IGNORED = str.maketrans("", "", " {}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")


def unwrapped(answer: str) -> str:
    r"""What `\text{...}` around the whole answer holds, without white space at the ends."""
    match = _TEXT.fullmatch(answer.strip())
    return match[1] if match else answer.strip()


def plain(answer: str) -> str:
    """Lower case without units, LaTeX, spaces and braces; a whole number in its shortest form."""
    text = unwrapped(answer)
    for pattern, right in _REPLACED:
        text = pattern.sub(right, text)
    if "\\" in text:
        text = _read_latex(text.replace(r"\tfrac", r"\frac").replace(r"\dfrac", r"\frac"))
    text = _MIXED.sub(r"\1+", text).translate(_IGNORED).lower()
    number = whole(text)
    return text if number is None else str(number)


@cache
def _reader() -> LatexNodes2Text:
    return LatexNodes2Text()


def _read_latex(text: str) -> str:
    r"""LaTeX as a reader sees it: `5\frac12` becomes `5 1/2`. What cannot be read stays as it is."""
    spaced = text.replace(r"\frac", r" \frac")  # else the 5 and the 1 would touch
    try:
        read = cast(str, _reader().latex_to_text(spaced))  # pyright: ignore[reportUnknownMemberType]
    except (ValueError, IndexError, TypeError, AttributeError, KeyError, RecursionError):
        return text  # pylatexenc on half an environment and the like
    return read.translate(_SYMBOLS).strip()


def without_thousands(text: str) -> str:
    """`1,000,000` as `1000000`; other commas stay."""
    return _THOUSANDS.sub("", text)


def whole(text: str) -> int | None:
    """The whole number that a text writes, thousands apart by commas, within 1e-7; else None."""
    try:
        number = Decimal(without_thousands(text))
    except ArithmeticError:
        return None
    if not number.is_finite() or number.adjusted() > MAX_DIGITS:
        return None
    nearest = number.to_integral_value()
    return int(nearest) if abs(number - nearest) <= Decimal("1e-7") else None
