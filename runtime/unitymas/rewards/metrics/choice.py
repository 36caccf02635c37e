"""choice: one of the references, verbatim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Choice:
    """1 when the prediction is one of the references, white space around both apart, else 0. Case counts."""

    arguments: ClassVar[Mapping[str, object]] = {"prediction": "string", "references": ["string"]}
    rules: ClassVar[tuple[str, ...]] = ()

    def __call__(self, prediction: str, references: Sequence[str]) -> float:
        """1.0 or 0.0; 0.0 without references."""
        return float(prediction.strip() in [reference.strip() for reference in references])
