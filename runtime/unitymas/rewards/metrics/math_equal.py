"""mathEqual: the same mathematical answer as one of the references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from unitymas.rewards.metrics import hendrycks
from unitymas.rewards.metrics.boxed import answer_of
from unitymas.rewards.metrics.rules import require_rule


@dataclass(frozen=True, slots=True)
class MathEqual:
    r"""1 when the prediction's answer is one of the references', else 0.

    On both sides the answer is what the last `\boxed{...}` holds, or without a box the whole text.
    hendrycks: string rules only, fast. prm800k: also units, LaTeX and algebra by sympy; its time on hostile input is
    bounded by size only, so it runs in a process with a time limit. symbolic comes in a later release.
    Raises ValueError for a rule that is not offered. Cases: `math_is_equiv_hendrycks`, `math_grade_prm800k`.
    """

    arguments: ClassVar[Mapping[str, object]] = {"prediction": "string", "references": ["string"]}
    rules: ClassVar[tuple[str, ...]] = ("hendrycks", "prm800k")

    rule: Literal["hendrycks", "prm800k"] = "hendrycks"

    def __post_init__(self) -> None:
        require_rule(self.rule, self.rules, later=("symbolic",))

    def __call__(self, prediction: str, references: Sequence[str]) -> float:
        """1.0 or 0.0; 0.0 without references."""
        answer = answer_of(prediction)
        return float(any(self._equal(answer, answer_of(reference)) for reference in references))

    def _equal(self, answer: str, reference: str) -> bool:
        if self.rule == "hendrycks":
            return hendrycks.equal(answer, reference)
        from unitymas.rewards.metrics import prm800k  # sympy: a second to import, so not when resources are checked

        return prm800k.equal(answer, reference)
