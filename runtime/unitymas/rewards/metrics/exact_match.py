"""exactMatch: equal to one of the references after normalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from unitymas.rewards.metrics.rules import require_rule
from unitymas.rewards.metrics.words import normalise


@dataclass(frozen=True, slots=True)
class ExactMatch:
    """1 when the prediction equals a reference (squad, hotpot) or contains one (subspan), else 0.

    squad: references without words are dropped, and none left means that no answer is right. hotpot, subspan: no
    references give 0. subspan: a reference without words is inside every prediction, and a prediction that lists
    many answers matches too, so as a reward it needs a bound on length.
    Raises ValueError for an unknown rule.
    Cases: `squad_answer`, `squad_multi_gold`, `hotpot_answer`, `litm_subspan`, `tagged_answer_em`.
    """

    arguments: ClassVar[Mapping[str, object]] = {"prediction": "string", "references": ["string"]}
    rules: ClassVar[tuple[str, ...]] = ("squad", "hotpot", "subspan")

    rule: Literal["squad", "hotpot", "subspan"] = "squad"

    def __post_init__(self) -> None:
        require_rule(self.rule, self.rules)

    def __call__(self, prediction: str, references: Sequence[str]) -> float:
        """1.0 or 0.0."""
        given = normalise(prediction)
        golds = [normalise(reference) for reference in references]
        if self.rule == "squad":
            golds = [gold for gold in golds if gold] or [""]
        if self.rule == "subspan":
            return float(any(gold in given for gold in golds))
        return float(given in golds)
