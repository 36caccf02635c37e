"""Small mathematical expressions, read by a grammar of our own: what a model wrote is never evaluated as code.

Importing this costs a second (sympy), so it is imported on first use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

import sympy  # pyright: ignore[reportMissingTypeStubs]

MAX_CHARS = 200
MAX_NESTING = 20
MAX_DEGREE = 30
"""Bounds that keep a hostile answer from costing minutes; what is left is for the caller's time limit."""

_TOKENS = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+|sqrt|pi|(?!ln)[a-z]|[-+*/^()]|(?P<other>ln|.)", re.DOTALL)
_PI = cast(sympy.Expr, sympy.pi)  # pyright: ignore[reportUnknownMemberType]


def read(text: str) -> sympy.Expr:
    """The expression that a text spells. Raises ValueError when it is none, or too large to be an answer.

    Lower case: numbers (decimals are exact), one-letter symbols, `pi`, `sqrt(...)`, + - * / ^, and products written
    side by side. An exponent is one digit or a symbol. No logarithms: sympy needs minutes for 9^9 ln(3.7).
    """
    matches = list(_TOKENS.finditer(text))
    if len(text) > MAX_CHARS or text.count("(") > MAX_NESTING or any(match["other"] for match in matches):
        raise ValueError(f"not a small expression: {text[:60]}")
    reader = _Reader([match[0] for match in matches])
    expression = reader.sum()
    if reader.peek():
        raise ValueError(f"unexpected {reader.peek()}")
    return expression


@dataclass(slots=True)
class _Reader:
    """Recursive descent; one method per level of precedence."""

    tokens: list[str]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def sum(self) -> sympy.Expr:
        total = self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self) -> sympy.Expr:
        value = self.signed()
        while self.peek() not in ("", "+", "-", ")", "^"):
            match self.peek():
                case "*":
                    self.take()
                    value = value * self.signed()
                case "/":
                    self.take()
                    value = value / self.signed()
                case _:
                    value = value * self.power()
        return value

    def signed(self) -> sympy.Expr:
        sign = sympy.Integer(1)
        while self.peek() in ("+", "-"):
            sign = -sign if self.take() == "-" else sign
        return sign * self.power()

    def power(self) -> sympy.Expr:
        base = self.atom()
        if self.peek() != "^":
            return base
        self.take()
        sign = -1 if self.peek() == "-" else 1
        if self.peek() in ("+", "-"):
            self.take()
        if self.peek() in ("(", "sqrt") or self.peek()[1:2].isdigit():
            raise ValueError("an exponent is one digit or a symbol")
        exponent = self.atom()
        if _degree(base) * _size(exponent) > MAX_DEGREE or self.peek() == "^":
            raise ValueError("too high a power")
        return base ** (sign * exponent)

    def atom(self) -> sympy.Expr:
        token = self.take()
        match token:
            case "(":
                inner = self.sum()
                if self.take() != ")":
                    raise ValueError("a bracket is not closed")
                return inner
            case "sqrt":
                return sympy.sqrt(self.atom())  # pyright: ignore[reportUnknownMemberType]
            case "pi":
                return _PI
            case _ if token.isalpha():
                return sympy.Symbol(token)
            case _ if token.strip("+-*/^)"):
                return sympy.Rational(token)
            case _:
                raise ValueError(f"unexpected {token or 'end'}")


def _size(exponent: sympy.Expr) -> float:
    """How much an exponent raises the degree; a symbol leaves it."""
    return float(exponent) if exponent.is_number else 1.0


def _degree(base: sympy.Expr) -> float:
    """The highest whole power inside a base; for a number, one for every ten bits."""
    if isinstance(base, sympy.Rational):
        return max(1.0, (int(base.p).bit_length() + int(base.q).bit_length()) / 10)
    return max((abs(float(power.exp)) for power in base.atoms(sympy.Pow) if power.exp.is_Integer), default=1.0)
