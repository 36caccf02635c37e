"""Prompt templates: segments, names, checks, and what a template must not do."""

from __future__ import annotations

import copy
from itertools import pairwise

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.records import Segment
from unitymas.api.shapes import ANY, INT, NUMBER, STRING, ListOf, Shape, record
from unitymas.expr import EvaluationError, ExpressionError, Template

VARIABLES: dict[str, Shape] = {
    "task": record(question=STRING, items=STRING),
    "state": record(hits=ListOf(record(title=STRING, text=STRING)), total=NUMBER),
    "extra": ANY,
    "turn": INT,
}
VALUES: dict[str, object] = {
    "task": {"question": "Who?", "items": "a field"},
    "state": {"hits": [{"title": "t1", "text": "x1"}, {"title": "t2", "text": "x2"}], "total": 2.0},
    "extra": {"k": [1]},
    "turn": 3,
}


def ours(text: str) -> Segment:
    return Segment(text, variable=False)


def theirs(text: str) -> Segment:
    return Segment(text, variable=True)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", ()),
        ("plain\n", (ours("plain"),)),
        ("Q: {{ task.question }}\nA:", (ours("Q: "), theirs("Who?"), ours("\nA:"))),
        ("{{ task.question }}{{ turn }}", (theirs("Who?3"),)),
        ("{% for h in state.hits %}- {{ h.text }}\n{% endfor %}end",
         (ours("- "), theirs("x1"), ours("\n- "), theirs("x2"), ours("\nend"))),
        ("{% if turn > 2 %}late{% else %}{{ task.question }}{% endif %}", (ours("late"),)),
        ("{{ state.total }} {{ turn }} {{ true }}", (theirs("2.0"), ours(" "), theirs("3"), ours(" "), theirs("True"))),
        ("{{ '<|im_end|>' }}x", (theirs("<|im_end|>"), ours("x"))),
        ("{{ '' }}x", (ours("x"),)),
        ("{{ state.hits | map(attribute='title') | join(', ') }}.", (theirs("t1, t2"), ours("."))),
        ("{% filter upper %}q: {{ task.question }}{% endfilter %}", (theirs("Q: WHO?"),)),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}a{{ m(turn) }}b", (ours("a"), theirs("<3>"), ours("b"))),
        ("{% macro m() %}({{ caller() }}){% endmacro %}{% call m() %}z{% endcall %}", (theirs("(z)"),)),
        ("{% set z %}b{{ turn }}{% endset %}{{ z }}", (theirs("b3"),)),
        ("{% block b %}q{{ turn }}{% endblock %}", (ours("q"), theirs("3"))),
        ("{% raw %}{{ turn }}{% endraw %}", (ours("{{ turn }}"),)),
        ("{{ task.items }}", (theirs("a field"),)),
        ("{% for k, v in extra.items() %}{{ k }}={{ v }}{% endfor %}", (theirs("k"), ours("="), theirs("[1]"))),
        ("{{ task.question.upper() }}", (theirs("WHO?"),)),
        ("{{ '&<>' }}", (theirs("&<>"),)),
    ],
)  # fmt: skip
def test_outputs_are_variable_segments_and_the_rest_is_ours(text: str, segments: tuple[Segment, ...]) -> None:
    assert Template(text).render(VALUES) == segments


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("{{ task.question }} {{ turn }}", {("task", "question"), ("turn",)}),
        ("{% for p in state.hits %}{{ loop.index }}{{ p.text }}{% endfor %}",
         {("state", "hits"), ("state", "hits", "text")}),
        ("{% set h = state.hits %}{{ h[0].title }}", {("state", "hits"), ("state", "hits", "title")}),
        ("{{ (state.hits | first).text }}", {("state", "hits", "text")}),
        ("{{ task['question'].upper() }}", {("task", "question")}),
        ("{{ state.hits[turn].text }}", {("state", "hits", "text"), ("turn",)}),
        ("{{ (state.hits | default(extra) | last).text }}", {("state", "hits", "text"), ("extra",)}),
        ("{% macro m(x) %}{{ x.y }}{{ turn }}{% endmacro %}{{ m(extra) }}", {("turn",), ("extra",)}),
        ("{% for k, v in extra.items() %}{{ k }}{{ v.z }}{% endfor %}", {("extra",)}),
        ("{% with q = task.question %}{{ q }}{% endwith %}", {("task", "question")}),
        ("{% if x is defined %}{% endif %}", {("x",)}),
        ("{% set n = namespace(i=0) %}{% set n.i = turn %}{{ n.i }}{{ range(2) }}", {("turn",)}),
    ],
)  # fmt: skip
def test_names_are_the_member_paths_read(text: str, paths: set[tuple[str, ...]]) -> None:
    assert Template(text).names() == paths


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("{{ taks.question }}", "`taks.question`", "did you mean `task`?"),
        ("{{ task.qestion }}", "`task.qestion`", "did you mean `task.question`?"),
        ("{% for p in state.hits %}{{ p.txt }}{% endfor %}", "`state.hits[].txt`", "did you mean `state.hits[].text`?"),
        ("{% for p in state.hits | reverse %}{{ p.nope }}{% endfor %}", "`state.hits[].nope`", ""),
        ("{{ state.hits.text }}", "`state.hits.text`", ""),
        ("{{ state.hits.append(1) }}", "`state.hits.append`", ""),
        ("{{ turn.real }}", "`turn.real`", ""),
    ],
)
def test_check_finds_a_path_that_does_not_exist(text: str, found: str, hint: str) -> None:
    (error,) = Template(text).check(VARIABLES)
    assert (error.found, error.hint) == (found, hint)


@pytest.mark.parametrize(
    "text",
    [
        "{{ extra.anything.at.all }}",
        "{% for c in task.question %}{{ c }}{% endfor %}{{ task.question[0] }}",
        "{% for name in state %}{{ state[name] }}{% endfor %}",
        "{{ state.hits | length }}{{ task.question.split('?')[0] }}",
    ],
)
def test_check_passes_what_renders(text: str) -> None:
    template = Template(text)
    assert template.check(VARIABLES) == []


def test_check_finds_every_problem() -> None:
    assert len(Template("{{ a }}{{ b }}{{ task.c }}").check(VARIABLES)) == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{ a b }}", "line 1: expected token"),
        ("a\n{% if %}", "line 2: Expected an expression"),
        ("a\n{% for x in y %}", "line 2: Unexpected end"),
        ("{{ x | nofilter }}", "line 1: No filter named"),
        ("{{ [1] | random }}", "line 1: No filter named"),
        ("\n{% include 'other' %}", "line 2: include"),
        ("{% extends 'other' %}", "line 1: extends"),
    ],
)
def test_unreadable_template_is_refused_with_its_line(text: str, found: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        Template(text)
    assert found in refused.value.found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ nobody }}", "line 1: no value for `nobody`"),
        ("a\nb\n{{ task.absent }}", "line 3: no field `absent`"),
        ("{{ state.hits[5].text }}", "has no element 5"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{{ lipsum() }}", "no value for `lipsum`"),
        ("{{ ''.__class__ }}", "unsafe"),
        ("{{ '' | attr('__class__') }}", "unsafe"),
        ("{{ '{0.__class__}'.format(1) }}", "unsafe"),
        ("{{ task.__class__ }}", "no field `__class__`"),
        ("{{ task['__class__'] }}", "no field `__class__`"),
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
        ("{{ 'a' * 10**9 }}", "`*` would make more"),
        ("{{ 10 ** 1000000 }}", "exponents"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
    ],
)
def test_render_that_fails_says_where_and_why(text: str, reason: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        Template(text).render(VALUES)
    assert reason in failed.value.reason


DOUBLED = (
    "{{% set n = namespace(x={start}) %}}{{% for i in range(60) %}}{{% set n.x = {grown} %}}{{% endfor %}}{{{{ n.x }}}}"
)
UNBOUNDED = [
    *(f"{{{{ 'x' | {call} }}}}" for call in ("center(60000000)", "indent(60000000, true)", "tojson(indent=60000000)")),
    *(f"{{{{ 'x'.{name}(60000000) }}}}" for name in ("center", "ljust", "rjust", "zfill")),
    "{{ '\t'.expandtabs(60000000) }}",
    *(f"{{{{ '{field}' % given }}}}" for field in ("%60000000d", "%.60000000f", "%(a)60000000d", "%(a(b))9999999d")),
    "{{ '%*d' % (60000000, 1) }}",
    "{{ '%60000000d' | format(1) }}",
    "{{ '{:60000000}'.format(1) }}{{ '{:{w}}'.format(1, w=60000000) }}",
    "{{ '{:{w}}'.format(1, w=60000000) }}",
    "{{ ('{0}' * 30000).format('x' * 90000) }}",
    "{{ ('%(a)s' * 19000) % {'a': 'x' * 90000} }}",
    "{{ ('x' * 90000) | replace('x', 'y' * 9000) }}",
    "{{ ('x' * 90000).replace('x', 'y' * 9000) }}",
    "{{ (['y'] * 90000) | join('z' * 9000) }}",
    "{{ ('z' * 9000).join(['y'] * 90000) }}",
    "{{ (['y' * 90000] * 90000) | string }}",
    "{{ (['y'] * 90000) | map('upper') | join('z' * 9000) }}",
    "{{ {1: ['y' * 90000] * 90000}.values() }}",
    "{{ [1] | batch(90000000, 'x') | list }}",
    "{{ [1] | slice(90000000) | list }}",
    "{{ ('x' * 90000) | wordwrap(1, true, 'y' * 9000) }}",
    "{{ 1.5 | round(900000000, 'ceil') }}",
    "{{ ([[1] * 9000] * 9000) | sum(start=[]) }}",
    "{{ 'x'.encode() * 10**9 }}",
    "{% filter center(60000000) %}x{% endfilter %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}" + 1000 * "a" + "{% endfor %}",
    "{% for i in [1, 2] recursive %}{{ loop([1, 2]) if loop.depth < 60 }}{% endfor %}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    *(
        DOUBLED.format(start="'a'", grown=grown)
        for grown in ("n.x ~ n.x", "n.x + n.x", "[n.x, n.x]", "{1: n.x, 2: n.x}")
    ),
    DOUBLED.format(start="'a'", grown="[n.x, n.x]").replace("{{ n.x }}", "{{ n }}"),
    DOUBLED.format(start="3", grown="n.x * n.x"),
]


@pytest.mark.parametrize("text", UNBOUNDED)
def test_nothing_in_a_template_grows_without_bound(text: str) -> None:
    template = Template(text)  # compiling computes nothing
    with pytest.raises(EvaluationError, match=r"SecurityError: "):
        template.render({"given": {"a": 1, "a(b)": 1}})


def test_a_long_prompt_is_well_within_bounds() -> None:
    hits = [{"title": f"title {number}", "text": "word " * 2000} for number in range(100)]
    text = (
        "{% for h in hits %}{{ loop.index }}/{{ loop.length }} {{ h.title | center(30) }}: {{ h.text }}\n{% endfor %}"
    )
    text += (
        "{{ hits | tojson(indent=2) | length }} {{ '%5.2f' % 1.5 }} {{ '{:>4}'.format(3) }} {{ ', '.join(['a', 'b']) }}"
    )
    rendered = "".join(segment.text for segment in Template(text).render({"hits": hits}))
    assert len(rendered) > 1_000_000
    assert rendered.endswith("  1.50    3 a, b")


@pytest.mark.parametrize(
    "call",
    ["task.update({'a': 1})", "task.pop('question')", "task.clear()", "state.hits.append(1)", "state.hits.clear()"],
)
def test_a_template_changes_no_value(call: str) -> None:
    before = copy.deepcopy(VALUES)
    with pytest.raises(EvaluationError):
        Template("{{ " + call + " }}").render(VALUES)
    assert before == VALUES


TEMPLATES = st.lists(
    st.sampled_from(
        [
            "ours ",
            "\n",
            "{{ a }}",
            "{{ b | upper }}",
            "{% for x in xs %}<{{ x }}>{% endfor %}",
            "{% if a %}yes{% else %}no {{ b }}{% endif %}",
            "{% filter lower %}Kept {{ b }}{% endfilter %}",
            "{% set c = a ~ b %}{{ c }}",
            "{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(a) }}",
            "{{ xs | join('|') }}",
            "{% for x in xs recursive %}{{ x }}{% else %}none{% endfor %}",
        ]
    ),
    max_size=8,
).map("".join)
# letters that no template above holds, so that a variable's text is recognised wherever it lands
TEXTS = st.text(alphabet="ζηθ0<|>\n {%}&", max_size=6)


@given(TEMPLATES, TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_segments_together_are_what_plain_jinja_renders(text: str, a: str, b: str, xs: list[str]) -> None:
    values: dict[str, object] = {"a": a, "b": b, "xs": xs}
    segments = Template(text).render(values)
    plain = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text)  # prompts are text: no autoescape
    assert "".join(segment.text for segment in segments) == plain.render(values)
    assert all(segment.text for segment in segments)
    assert all(left.variable != right.variable for left, right in pairwise(segments))


@given(TEMPLATES, st.text(alphabet="ζηθΖΗΘ", min_size=1, max_size=6))
def test_variable_text_is_never_in_a_segment_of_ours(text: str, secret: str) -> None:
    segments = Template(text).render({"a": secret, "b": secret, "xs": [secret]})
    assert not any(set(segment.text) & set("ζηθΖΗΘ") for segment in segments if not segment.variable)


def test_what_always_stands_in_a_prompt_is_its_text_outside_conditions_and_loops() -> None:
    text = "Read {{ a }}.{% if b %} Maybe {% endif %}{% for x in xs %} each {% endfor %} Answer"
    assert Template(text).always() == "Read . Answer"
