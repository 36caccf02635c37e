"""What an expression or a template can get wrong: before it runs, and while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ExpressionError(ValueError):
    """The text of an expression or template is wrong. `found`, `expected` and `hint` read like a Finding's."""

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        self.found, self.expected, self.hint = found, expected, hint
        super().__init__(f"found {found}; expected {expected}" + (f"\n\nhint: {hint}" if hint else ""))


class EvaluationError(ValueError):
    """A checked expression or template that could not be evaluated on these values. `text` is the whole expression."""

    def __init__(self, text: str, reason: str) -> None:
        self.text, self.reason = text, reason
        super().__init__(f"`{text if len(text) <= 100 else text[:97] + '...'}`: {reason}")


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """A hint naming the closest of the known names, or nothing when none is close."""
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean `{prefix}{close[0]}`?" if close else ""
