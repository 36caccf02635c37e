"""tokenF1: overlap of words with the best of the references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from unitymas.rewards.metrics.rules import require_rule
from unitymas.rewards.metrics.words import words

_VERDICTS = (["yes"], ["no"], ["noanswer"])


@dataclass(frozen=True, slots=True)
class TokenF1:
    """Harmonic mean of word precision and recall, in [0, 1]; the maximum over the references.

    squad: a side without words scores 1 when both are, else 0; references without words are dropped, and none left
    means that no answer is right. hotpot: a side without words scores 0, and `yes`, `no`, `noanswer` earn no partial
    credit; no references give 0 (ours: HotpotQA always has one).
    Raises ValueError for an unknown rule. Cases: `squad_answer`, `squad_multi_gold`, `hotpot_answer`.
    """

    arguments: ClassVar[Mapping[str, object]] = {"prediction": "string", "references": ["string"]}
    rules: ClassVar[tuple[str, ...]] = ("squad", "hotpot")

    rule: Literal["squad", "hotpot"] = "squad"

    def __post_init__(self) -> None:
        require_rule(self.rule, self.rules)

    def __call__(self, prediction: str, references: Sequence[str]) -> float:
        """The best F1 over the references; word order does not count."""
        given = words(prediction)
        golds = [words(reference) for reference in references]
        if self.rule == "squad":
            golds = [gold for gold in golds if gold] or [[]]
        return max((self._f1(given, gold) for gold in golds), default=0.0)

    def _f1(self, given: list[str], gold: list[str]) -> float:
        if self.rule == "squad" and not (given and gold):
            return float(given == gold)
        if self.rule == "hotpot" and given != gold and (given in _VERDICTS or gold in _VERDICTS):
            return 0.0
        shared = (Counter(given) & Counter(gold)).total()
        if not shared:
            return 0.0
        precision, recall = shared / len(given), shared / len(gold)
        return 2 * precision * recall / (precision + recall)
