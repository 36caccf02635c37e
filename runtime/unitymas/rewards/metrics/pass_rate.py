"""passRate: share of tests that a program passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

Runner = Callable[[str, Sequence[Mapping[str, object]]], Sequence[bool]]
"""Runs a program against tests, isolated from this process; one verdict per test, in order."""


@dataclass(frozen=True, slots=True)
class PassRate:
    """Passed tests over all tests, in [0, 1]; 0 for no program or no tests.

    The metric runs no code itself: the runner does. Raises ValueError without one, or when verdicts are missing.
    """

    arguments: ClassVar[Mapping[str, object]] = {"program": "string", "tests": ["any"]}
    rules: ClassVar[tuple[str, ...]] = ()

    runner: Runner | None = None

    def __call__(self, program: str, tests: Sequence[Mapping[str, object]]) -> float:
        """The share of tests passed."""
        if self.runner is None:
            raise ValueError("passRate: its sandbox is not in this release; a `python` metric can be used instead")
        if not program.strip() or not tests:
            return 0.0
        verdicts = self.runner(program, tests)
        if len(verdicts) != len(tests):
            raise ValueError(f"passRate: found {len(verdicts)} verdicts for {len(tests)} tests; expected one each")
        return sum(map(bool, verdicts)) / len(tests)
