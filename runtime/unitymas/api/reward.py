"""RewardSpec: metrics of a trajectory, rewards of its visits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from unitymas.api.base import Duration, Entrypoint, Expression, Name, Spec


class TextMetric(Spec):
    """Arguments of the metrics that compare a text with references."""

    prediction: Expression
    references: Expression
    """CEL list of strings; the best match counts."""


class TokenF1Spec(TextMetric):
    """Overlap of words."""

    rule: Literal["squad", "hotpot"] = "squad"


class ExactMatchSpec(TextMetric):
    """Equal after normalisation."""

    rule: Literal["squad", "hotpot", "subspan"] = "squad"


class MathEqualSpec(TextMetric):
    """The same mathematical answer."""

    rule: Literal["hendrycks", "prm800k", "symbolic"] = "hendrycks"


class ChoiceSpec(TextMetric):
    """One of the references, verbatim."""


class PassRateSpec(Spec):
    """Share of tests that a program passes, sandboxed."""

    program: Expression
    tests: Expression


class PythonMetric(Entrypoint):
    """A function of the user's own; gets its arguments by keyword, returns a float."""

    with_: dict[Name, Expression] = Field(default_factory=dict[Name, Expression], alias="with")


class Metric(Spec):
    """A number about a trajectory, or with `at` a series of readings. Exactly one kind."""

    name: Name
    at: list[Name] | None = Field(default=None, min_length=1)
    """Nodes after whose visits it is read: then it is a series."""
    token_f1: TokenF1Spec | None = Field(default=None, alias="tokenF1")
    exact_match: ExactMatchSpec | None = None
    math_equal: MathEqualSpec | None = None
    choice: ChoiceSpec | None = None
    pass_rate: PassRateSpec | None = None
    cel: Expression | None = None
    python: PythonMetric | None = None

    @property
    def kind(self) -> str:
        """Which of the kinds this metric is, as written in YAML."""
        return next(alias for field, alias in METRIC_KINDS.items() if getattr(self, field) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> Metric:
        given = [alias for field, alias in METRIC_KINDS.items() if getattr(self, field) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(METRIC_KINDS.values())}; found {', '.join(given) or 'none'}")
        return self


METRIC_KINDS = {
    "token_f1": "tokenF1",
    "exact_match": "exactMatch",
    "math_equal": "mathEqual",
    "choice": "choice",
    "pass_rate": "passRate",
    "cel": "cel",
    "python": "python",
}


class Reward(Spec):
    """One part of the reward of each visit of some roles."""

    name: Name
    roles: list[Name] = Field(min_length=1)
    value: Expression
    """CEL over metrics, `visit`, task, nodes, state, result, usage."""
    weight: float = 1.0
    """Multiplies the value."""
    share: Literal["full", "split"] = "full"
    """`split`: the value is divided among the visits that receive it."""


class RewardSpecSpec(Spec):
    """Metrics after the trajectory; rewards per visit, summed, every part kept by name."""

    metrics: list[Metric] = Field(default_factory=list[Metric], max_length=128)
    rewards: list[Reward] = Field(default_factory=list[Reward], max_length=128)
    score: Name | None = None
    """The metric that status, evaluation and selection use."""
    python: Entrypoint | None = None
    """One function in place of `rewards`: yields (visit key, name, value)."""
    timeout_s: Duration | None = Field(default=None, alias="timeout")
    """Of one metric; the run's `limits.metric` where absent."""

    @model_validator(mode="after")
    def _rewards_or_python(self) -> RewardSpecSpec:
        if bool(self.rewards) == (self.python is not None):
            raise ValueError("exactly one of rewards and python")
        return self
