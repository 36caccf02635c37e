r"""The last `\boxed{...}` of a solution: where MATH-style answers stand."""

from __future__ import annotations

_BOXES = (r"\boxed", r"\fbox")  # a \boxed anywhere beats any \fbox


def last_boxed(solution: str) -> str | None:
    r"""The last box with its command, such as `\boxed{5}`; None when there is none or its braces never close.

    Cases: `math_last_boxed`.
    """
    found = _find(solution)
    return solution[found[0] : found[2] + 1] if found else None


def answer_of(solution: str) -> str:
    """What the last box holds; without a box, the whole text."""
    found = _find(solution)
    return solution[found[1] + 1 : found[2]] if found else solution


def _find(solution: str) -> tuple[int, int, int] | None:
    """Where the last box starts, and its outer braces."""
    start = next((at for at in map(solution.rfind, _BOXES) if at >= 0), -1)
    opening = solution.find("{", start) if start >= 0 else -1
    if opening < 0:
        return None
    depth = 0
    for at in range(opening, len(solution)):
        depth += {"{": 1, "}": -1}.get(solution[at], 0)
        if not depth:
            return start, opening, at
    return None
