"""Metric rules give the values of the scorers they are named after; the cases hold where each value comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from unitymas.rewards.metrics.boxed import last_boxed
from unitymas.rewards.metrics.exact_match import ExactMatch
from unitymas.rewards.metrics.hendrycks import canonical
from unitymas.rewards.metrics.math_equal import MathEqual
from unitymas.rewards.metrics.token_f1 import TokenF1

Case = dict[str, Any]
CASES = Path(__file__).parents[1] / "cases" / "metrics"
EXCEPTIONS = {
    "math_is_equiv_hendrycks-069": "the metric reads the box first, the rule takes an answer already taken out",
    "tagged_answer_em-014": "the quartered reward of a reply with many tags is a reward part of its own here",
}


def cases(case_set: str) -> list[Case]:
    return json.loads((CASES / f"{case_set}.json").read_text(encoding="utf-8"))["cases"]


def golds(case: Case) -> list[str]:
    given = case["input"]
    return given["golds"] if "golds" in given else [text(given["gold"])]


def text(value: str | None) -> str:
    """No nulls in the language: what is missing is the empty text."""
    return value or ""


def tagged() -> list[Case]:
    """The scorer's cases as the metric meets them: the output format has taken the answer out of its tag."""
    found = [case for case in cases("tagged_answer_em") if case["expected"]["extracted"] is not None]
    return [{**case, "input": {**case["input"], "prediction": case["expected"]["extracted"]}} for case in found]


SETS: list[tuple[Callable[[str, list[str]], float], str, list[Case]]] = [
    (TokenF1(), "f1", cases("squad_answer")),
    (TokenF1(), "f1", cases("squad_multi_gold")),
    (TokenF1("hotpot"), "f1", cases("hotpot_answer")),
    (ExactMatch(), "em", cases("squad_answer")),
    (ExactMatch(), "em", cases("squad_multi_gold")),
    (ExactMatch("hotpot"), "em", cases("hotpot_answer")),
    (ExactMatch("subspan"), "best_subspan_em", cases("litm_subspan")),
    (ExactMatch(), "em_reward", tagged()),
    (ExactMatch("subspan"), "subem_reward", tagged()),
    (MathEqual(), "equal", cases("math_is_equiv_hendrycks")),
    (MathEqual("prm800k"), "equal", cases("math_grade_prm800k")),
]


@pytest.mark.parametrize(
    ("metric", "field", "case"),
    [
        pytest.param(metric, field, case, id=f"{case['id']}-{field}")
        for metric, field, found in SETS
        for case in found
        if case["id"] not in EXCEPTIONS
    ],
)
def test_every_case_of_a_rule_has_its_scorers_value(
    metric: Callable[[str, list[str]], float], field: str, case: Case
) -> None:
    given = case["input"]
    prediction = text(given["given"] if "given" in given else given["prediction"])
    assert metric(prediction, golds(case)) == float(case["expected"][field])


@pytest.mark.parametrize("case", cases("math_is_equiv_hendrycks"), ids=lambda case: cast(Case, case)["id"])
@pytest.mark.parametrize("side", ["prediction", "gold"])
def test_canonical_spelling_is_the_scorers(side: Literal["prediction", "gold"], case: Case) -> None:
    given, wanted = case["input"][side], case["expected"][f"stripped_{side}"]
    if given is not None:
        assert canonical(given) == (wanted if isinstance(wanted, str) else None)  # None where the scorer raised


@pytest.mark.parametrize("case", cases("math_last_boxed"), ids=lambda case: cast(Case, case)["id"])
def test_the_last_box_is_the_scorers(case: Case) -> None:
    assert last_boxed(case["input"]["solution"]) == case["expected"]["last_boxed"]


def test_every_exception_is_a_case() -> None:
    known = {case["id"] for _, _, found in SETS for case in found}
    assert set(EXCEPTIONS) <= known
