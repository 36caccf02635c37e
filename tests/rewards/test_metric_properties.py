"""What must hold of the metrics for every input."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unitymas.api import shapes
from unitymas.api.names import METRICS, load
from unitymas.rewards.metrics.algebra import same_value
from unitymas.rewards.metrics.boxed import answer_of
from unitymas.rewards.metrics.choice import Choice
from unitymas.rewards.metrics.exact_match import ExactMatch
from unitymas.rewards.metrics.math_equal import MathEqual
from unitymas.rewards.metrics.pass_rate import PassRate
from unitymas.rewards.metrics.token_f1 import TokenF1
from unitymas.rewards.metrics.words import words

TEXT_RULES: list[Literal["squad", "hotpot"]] = ["squad", "hotpot"]
MATH_RULES: list[Literal["hendrycks", "prm800k"]] = ["hendrycks", "prm800k"]
METRICS_OF_TEXT = [
    *(TokenF1(rule) for rule in TEXT_RULES),
    *(ExactMatch(rule) for rule in (*TEXT_RULES, "subspan")),
    *(MathEqual(rule) for rule in MATH_RULES),
    Choice(),
]
PHRASES = st.lists(st.sampled_from(["paris", "Paris!", "the", "A", "yes", "no", "noanswer", "new", "york"])).map(
    " ".join
)
PIECES = (
    r"\frac \dfrac \sqrt \text{ \text{cm} \boxed{ \left( \right] \begin{pmatrix} \end{ \\ \! \% \$ \pi \infty \cdot "
    r"\verb \input{x} \item \ { } ( ) [ ] , . = ^ _ * / + - ! ** % $ & 0 1 9 12 1,000 1e9 0.5 x y ln sqrt pi π"
)
MATHS = st.lists(st.sampled_from([*PIECES.split(), " ", "\N{FULLWIDTH DIGIT ONE}"])).map("".join)
TEXTS = st.one_of(st.text(), PHRASES, MATHS)


@pytest.mark.parametrize("metric", METRICS_OF_TEXT, ids=repr)
@settings(deadline=None)
@given(prediction=TEXTS, references=st.lists(TEXTS, max_size=3))
def test_any_text_scores_between_zero_and_one(metric: TokenF1, prediction: str, references: list[str]) -> None:
    assert 0.0 <= metric(prediction, references) <= 1.0


@pytest.mark.parametrize("metric", METRICS_OF_TEXT, ids=repr)
@settings(deadline=None)
@given(prediction=TEXTS, references=st.lists(TEXTS, min_size=2, max_size=3), seed=st.integers())
def test_the_order_of_references_changes_nothing(
    metric: TokenF1, prediction: str, references: list[str], seed: int
) -> None:
    shuffled = random.Random(seed).sample(references, len(references))
    assert metric(prediction, shuffled) == metric(prediction, references)


@pytest.mark.parametrize("rule", TEXT_RULES)
@given(left=TEXTS, right=TEXTS)
def test_f1_is_symmetric(rule: Literal["squad", "hotpot"], left: str, right: str) -> None:
    assert TokenF1(rule)(left, [right]) == TokenF1(rule)(right, [left])


@pytest.mark.parametrize("rule", TEXT_RULES)
@given(prediction=PHRASES, reference=PHRASES, seed=st.integers())
def test_the_order_of_words_changes_no_f1(
    rule: Literal["squad", "hotpot"], prediction: str, reference: str, seed: int
) -> None:
    given_words = prediction.split()
    shuffled = " ".join(random.Random(seed).sample(given_words, len(given_words)))
    assert TokenF1(rule)(shuffled, [reference]) == TokenF1(rule)(prediction, [reference])


@pytest.mark.parametrize("rule", TEXT_RULES)
@given(prediction=TEXTS, references=st.lists(TEXTS, max_size=3))
def test_an_exact_match_has_full_f1(rule: Literal["squad", "hotpot"], prediction: str, references: list[str]) -> None:
    wordless = rule == "hotpot" and not words(prediction)  # HotpotQA: two empty answers match with F1 0
    if ExactMatch(rule)(prediction, references) == 1.0 and not wordless:
        assert TokenF1(rule)(prediction, references) == 1.0


@given(prediction=TEXTS, reference=TEXTS)
def test_an_exact_match_is_a_subspan(prediction: str, reference: str) -> None:
    assert ExactMatch("subspan")(prediction, [reference]) >= ExactMatch("hotpot")(prediction, [reference])


@pytest.mark.parametrize("rule", MATH_RULES)
@settings(deadline=None)
@given(answer=TEXTS)
def test_an_answer_equals_itself(rule: Literal["hendrycks", "prm800k"], answer: str) -> None:
    assert MathEqual(rule)(answer, [answer]) == 1.0


@settings(deadline=None)
@given(prediction=MATHS, reference=MATHS)
def test_what_string_rules_accept_the_grader_accepts(prediction: str, reference: str) -> None:
    assert MathEqual("prm800k")(prediction, [reference]) >= MathEqual("hendrycks")(prediction, [reference])


@pytest.mark.parametrize("rule", MATH_RULES)
def test_the_last_box_holds_the_answer(rule: Literal["hendrycks", "prm800k"]) -> None:
    assert MathEqual(rule)(r"First \boxed{3}, so \boxed{\frac12}.", ["1/2"]) == 1.0


@given(content=st.text(st.characters(exclude_characters="{}")), before=st.text())
def test_a_box_gives_back_what_it_holds(content: str, before: str) -> None:
    assert answer_of(before + r"\boxed{" + content + "}") == content


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(x+1)^2", "x^2+2x+1"),
        ("sqrt(8)", "2sqrt2"),
        ("1/(1+sqrt(2))", "sqrt(2)-1"),
        ("0.1+0.2", ".3"),
        ("2^-1", "1/2"),
    ],
)
def test_equal_expressions_have_one_value(left: str, right: str) -> None:
    assert same_value(left, right)


@pytest.mark.parametrize(
    "hostile",
    [
        "9^9^9",
        "9**9**9",
        "(((9^9)^9)^9)^9",
        "((x+y+1)^9)^9",
        "9^-9^9",
        "99999999!",
        "x^10",
        "9^9ln(3.7)",
        "(" * 90 + "1",
        "x.y",
        "9^",
    ],
)
def test_what_is_no_small_expression_is_never_computed(hostile: str) -> None:
    assert not same_value(hostile, hostile)


@pytest.mark.parametrize("name", METRICS)
def test_every_registered_metric_declares_arguments_of_known_shapes(name: str) -> None:
    declared = cast(Mapping[str, object], vars(load(METRICS, name))["arguments"])
    assert declared and all(shapes.parse(notation) for notation in declared.values())


@pytest.mark.parametrize("metric", [TokenF1, ExactMatch, MathEqual])
def test_an_unknown_rule_names_those_offered(metric: type[TokenF1]) -> None:
    with pytest.raises(ValueError, match=f"found `other`; expected {' or '.join(metric.rules)}"):
        metric(rule="other")  # pyright: ignore[reportArgumentType]


def test_a_rule_of_a_later_release_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="`symbolic` is not in this release; expected hendrycks or prm800k"):
        MathEqual(rule="symbolic")  # pyright: ignore[reportArgumentType]


def passes_even(program: str, tests: Sequence[Mapping[str, object]]) -> Sequence[bool]:
    return [cast(int, case["n"]) % 2 == 0 for case in tests]


@given(numbers=st.lists(st.integers(), min_size=1))
def test_pass_rate_is_the_share_of_tests_passed(numbers: list[int]) -> None:
    passed = sum(number % 2 == 0 for number in numbers)
    assert PassRate(passes_even)("pass", [{"n": number} for number in numbers]) == passed / len(numbers)


def test_no_program_passes_nothing() -> None:
    assert PassRate(passes_even)(" \n", [{"n": 2}]) == 0.0
    assert PassRate(passes_even)("pass", []) == 0.0


def test_pass_rate_without_a_sandbox_says_what_to_use() -> None:
    with pytest.raises(ValueError, match="`python` metric"):
        PassRate()("pass", [{"n": 2}])


def test_missing_verdicts_are_an_error() -> None:
    with pytest.raises(ValueError, match="found 0 verdicts for 1 tests"):
        PassRate(lambda program, tests: [])("pass", [{"n": 2}])
