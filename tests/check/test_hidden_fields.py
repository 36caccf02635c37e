"""Hidden fields reach no prompt: by no template, no expression, no privileged node, wherever it stands."""

from __future__ import annotations

from io import StringIO

import pytest

from unitymas.api.errors import Finding
from unitymas.api.load import read
from unitymas.check.run import check

HEAD = """\
apiVersion: unitymas.io/v1alpha1
kind: MultiAgentWorkflow
metadata: {name: secrets}
spec:
  input: {visible: [question], hidden: [answer]}
  tools: [{name: grader, python: {entrypoint: "m:f"}, returns: {grade: number}}]
"""
ROLE = "  roles: [{name: solver, prompt: 'Solve {{ task.question }} {{ hint }}'}]\n"
GRADE = "{name: grade, tool: grader, privileged: true, with: {answer: task.answer}}"


def findings(body: str) -> list[Finding]:
    return check(read(["-"], StringIO(HEAD + body)))


def told(body: str) -> list[tuple[str, str]]:
    return [(finding.check, finding.found) for finding in findings(body)]


@pytest.mark.parametrize(
    "around",
    [
        "  - {grade}",
        "  - {{name: block, nodes: [{grade}]}}",
        "  - {{name: block, loop: 2, nodes: [{grade}]}}",
        "  - {{name: block, forEach: {{times: 2}}, nodes: [{grade}]}}",
        "  - {{name: block, parallel: true, nodes: [{grade}]}}",
        "  - {{name: outer, nodes: [{{name: block, nodes: [{grade}]}}]}}",
    ],
)
def test_a_privileged_node_is_seen_by_no_later_node(around: str):
    nodes = f"  nodes:\n{around.format(grade=GRADE)}\n"
    reads = "  - {name: solve, role: solver, with: {hint: nodes.grade.grade}}\n"
    assert told(ROLE + nodes + reads) == [("hidden-field", "`nodes.grade`, a privileged node")]


def test_a_block_does_not_show_the_privileged_node_inside_it():
    nodes = f"  nodes:\n  - {{name: block, nodes: [{GRADE}]}}\n"
    reads = "  - {name: solve, role: solver, with: {hint: nodes.block.grade.grade}}\n"
    assert told(ROLE + nodes + reads) == [("expression", "`nodes.block.grade`")]


def test_a_loop_does_not_show_the_last_turns_privileged_node():
    solve = "{name: solve, role: solver, with: {hint: nodes.grade.grade}}"
    loop = f"  nodes: [{{name: turns, loop: 2, nodes: [{solve}, {{name: block, nodes: [{GRADE}]}}]}}]\n"
    assert told(ROLE + loop) == [("hidden-field", "`nodes.grade`, a privileged node")]


def test_what_every_node_found_cannot_be_read_at_once():
    reads = f"  nodes: [{GRADE}, {{name: solve, role: solver, with: {{hint: nodes}}}}]\n"
    assert told(ROLE + reads) == [("expression", "`nodes`, all at once")]


@pytest.mark.parametrize(
    "prompt",
    [
        "{{ task.answer }}",
        "{{ task['answer'] }}",
        "{% set t = task %}{{ t.answer }}",
        "{% if task.answer %}yes{% endif %}",
        "{% for a in task.answer %}{{ a }}{% endfor %}",
        "{{ task.question ~ task.answer }}",
        "{{ task.answer | upper }}",
        "{% with a = task.answer %}{{ a }}{% endwith %}",
    ],
)
@pytest.mark.parametrize("python", [False, True], ids=["nodes", "python"])
def test_no_spelling_of_a_hidden_field_passes_a_template(prompt: str, python: bool):
    role = f'  roles: [{{name: solver, prompt: "{prompt}"}}]\n'
    nodes = "  python: {entrypoint: 'm:run', maxCalls: 2}\n" if python else "  nodes: [{name: solve, role: solver}]\n"
    found = [check for check, what in told(role + nodes) if what == "`task.answer`, a hidden field"]
    assert found == ["hidden-in-prompt"]


def test_an_output_check_reads_no_hidden_field():
    role = "  roles: [{name: solver, prompt: hello, output: {check: output == task.answer}}]\n"
    nodes = f"  nodes: [{{name: solve, role: solver}}, {GRADE}]\n"
    assert told(role + nodes) == [("hidden-field", "`task.answer`, a hidden field")]


def test_a_prompt_in_code_may_name_whatever_its_calls_bind():
    role = "  roles: [{name: solver, prompt: '{{ task.question }} {{ anything.at[0].all }}'}]\n"
    assert told(role + "  python: {entrypoint: 'm:run', maxCalls: 2}\n") == []
    typo = "  roles: [{name: solver, prompt: '{{ task.qestion }}'}]\n"
    assert told(typo + "  python: {entrypoint: 'm:run', maxCalls: 2}\n") == [("unknown-name", "`task.qestion`")]
