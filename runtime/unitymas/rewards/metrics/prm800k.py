r"""Equality of LaTeX answers as PRM800K grades them: spelling, then units and markup read away, then algebra.

Answers of several parts, such as `(1, 2]`, need the same outer brackets and are compared part by part; a fraction must
be reduced as the reference is; a whole number equals only a whole number. Algebra is asked for two letters at most.
Known looseness of the rule, kept: a numerator loses its brackets (`\frac{x+1}{2}` reads `x+1/2`), a root its index.
"""

from __future__ import annotations

import re

from unitymas.rewards.metrics import hendrycks
from unitymas.rewards.metrics.algebra import same_value
from unitymas.rewards.metrics.plain import plain, unwrapped, whole, without_thousands

MAX_CHARS = 1000
"""Longer texts are compared by spelling only: LaTeX is read in more than linear time."""

_FRACTION = re.compile(r"-?[0-9]+/0*[1-9][0-9]*")


def equal(prediction: str, reference: str) -> bool:
    """Whether the rule accepts the prediction. Raises nothing. Cases: `math_grade_prm800k`."""
    if hendrycks.equal(unwrapped(prediction), unwrapped(reference)):
        return True
    if max(len(prediction), len(reference)) > MAX_CHARS:
        return False
    given, gold = plain(prediction), plain(reference)
    if not given or given == gold:
        return given == gold
    left, right = _parts(given), _parts(gold)
    if len(left) != len(right) or (len(right) > 1 and (given[0], given[-1]) != (gold[0], gold[-1])):
        return False
    return all(map(_same_part, left, right))


def _parts(text: str) -> list[str]:
    """The parts of a tuple or interval; any other text is one part."""
    text = without_thousands(text)
    inside = text[1:-1]
    if inside and text[0] in "([" and text[-1] in ")]" and not set(inside) & set("()[]"):
        return inside.split(",")
    return [text] if text else []


def _same_part(given: str, gold: str) -> bool:
    if given == gold:
        return True
    if _FRACTION.fullmatch(given) and _FRACTION.fullmatch(gold):
        return False
    if (whole(given) is None) != (whole(gold) is None):
        return False
    return _letters(f"{given} {gold}") <= 2 and same_value(given, gold)


def _letters(text: str) -> int:
    """Different letters, beyond those of `sqrt` and `frac`."""
    return len({letter for letter in text.replace("sqrt", "").replace("frac", "") if letter.isalpha()})
