"""Equality of small expressions by sympy, which takes a second to import."""

from __future__ import annotations

import sympy  # pyright: ignore[reportMissingTypeStubs]

from unitymas.rewards.metrics.expression import read


def same_value(left: str, right: str) -> bool:
    """Whether the difference simplifies to 0; False when either side is no small expression. Raises nothing."""
    try:
        difference = read(left) - read(right)
        return sympy.simplify(difference).is_zero is True  # pyright: ignore[reportUnknownMemberType]
    except (ArithmeticError, ValueError, TypeError, NotImplementedError, RecursionError):
        return False  # beyond sympy: not shown to be equal
