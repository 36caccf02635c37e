"""The canonical spelling of a LaTeX answer by string rules alone, as MATH's own scorer compares answers: no algebra."""

from __future__ import annotations

import re

_REMOVED = re.compile(r"\n|\\!")
_SIZES = (("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), (r"\left", ""), (r"\right", ""))
_MARKS = re.compile(r"\^\{\\circ\}|\^\\circ|\\\$")
_UNIT = r"\text{ "
_PERCENT = r"\%"
_BARE_POINT = re.compile(r"([ {])\.")
_SLASH = re.compile(r"(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)")


def equal(prediction: str, reference: str) -> bool:
    r"""Same canonical spelling; when one side has none (`\frac` without arguments), same text.

    Cases: `math_is_equiv_hendrycks`.
    """
    left, right = canonical(prediction), canonical(reference)
    return prediction == reference if left is None or right is None else left == right


def canonical(text: str) -> str | None:
    """The spelling that answers are compared in; None for a command that lacks its argument."""
    text = _REMOVED.sub("", text)
    for found, right in _SIZES:
        text = text.replace(found, right)
    text, *units = _MARKS.sub("", text).split(_UNIT)
    if len(units) > 1:  # which of them ends the answer is unknown
        return None
    text = _BARE_POINT.sub(r"\g<1>0.", text.replace(_PERCENT, ""))
    text = _right_side(f"0{text}" if text.startswith(".") else text)
    rooted = _with_braces(text, r"\sqrt", arguments=1)
    braced = None if rooted is None else _with_braces(rooted.replace(" ", ""), r"\frac", arguments=2)
    if braced is None:
        return None
    return r"\frac{1}{2}" if braced == "0.5" else _fraction(braced)


def _right_side(text: str) -> str:
    """`x = 5` means 5, where the left side is a name of at most two characters."""
    left, *rest = text.split("=")
    return rest[0] if len(rest) == 1 and len(left) <= 2 else text


def _with_braces(text: str, command: str, *, arguments: int) -> str | None:
    r"""`\sqrt3` and `\frac12` with braces around each argument; None when one ends right after its command."""
    head, *rest = text.split(command)
    if not all(rest):
        return None
    if any(len(piece) < arguments and piece[0] != "{" for piece in rest):
        return text
    return head + "".join(command + _braced(piece, arguments) for piece in rest)


def _braced(piece: str, arguments: int) -> str:
    """Braces around the leading single characters; a group that is already there ends it."""
    for at in range(arguments):
        if piece[3 * at] == "{":
            break
        piece = f"{piece[: 3 * at]}{{{piece[3 * at]}}}{piece[3 * at + 1 :]}"
    return piece


def _fraction(text: str) -> str:
    r"""`3/4` as `\frac{3}{4}`, for whole numbers written plainly."""
    match = _SLASH.fullmatch(text)
    return rf"\frac{{{match[1]}}}{{{match[2]}}}" if match else text
