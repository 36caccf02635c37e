"""Manifests: what loads, and what every kind of mistake is told as."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.documents import parts_of, spell
from unitymas.api.errors import BadInput, Finding
from unitymas.api.load import Loaded, read, resolve

TESTS = Path(__file__).parents[1]
DESIGN = TESTS / "cases" / "design"
HEAD = "apiVersion: unitymas.io/v1alpha1\nkind: {kind}\nmetadata: {{name: rag}}\nspec:\n"
WORKFLOW = """\
  input: {visible: [question]}
  roles:
  - name: searcher
    prompt: hello
    sampling: {maxTokens: 4}
  nodes:
  - {name: search, role: searcher}
"""
REWARD = "  rewards: [{name: a, roles: [searcher], value: '1.0'}]\n"
MAPPING = "  models: [{name: m, source: weights}]\n  roles: {searcher: m}\n"


def load(text: str) -> Loaded:
    return read(["-"], StringIO(text))


def findings(text: str) -> list[Finding]:
    with pytest.raises(BadInput) as caught:
        load(text)
    return list(caught.value.findings)


def workflow(old: str = "", new: str = "") -> str:
    assert old in WORKFLOW
    return HEAD.format(kind="MultiAgentWorkflow") + WORKFLOW.replace(old, new)


def mapping(body: str) -> str:
    return HEAD.format(kind="ModelMapping") + body


def project(**refs: str) -> str:
    run = HEAD.format(kind="TrainingRun") + "".join(f"  {ref}: {{name: {name}}}\n" for ref, name in refs.items())
    run += "  seed: 1\n"
    return "---\n".join([run, workflow(), HEAD.format(kind="RewardSpec") + REWARD, mapping(MAPPING)])


@pytest.mark.parametrize("file", sorted((TESTS / "workflows").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_workflow_of_the_field_loads(file: Path):
    assert {kind for kind, _ in read([file]).resources} >= {"MultiAgentWorkflow", "RewardSpec", "ModelMapping"}


def test_the_examples_of_the_design_make_one_project():
    made = resolve(read([DESIGN]))
    assert (made.run.name, made.workflow.spec.roles[1].name) == ("multihop-rag", "answerer")
    assert made.mapping.spec.model_of("searcher") == "seeker"
    assert made.folder == str(DESIGN)


def test_an_unknown_field_names_its_place_the_known_ones_and_the_nearest():
    (found,) = findings(workflow("maxTokens", "maxTokns"))
    assert found == Finding(
        check="unknown-field",
        path="spec.roles[0].sampling.maxTokns",
        found="an unknown field",
        expected="one of maxTokens, temperature, stop, topP, topK",
        hint="did you mean `maxTokens`?",
        kind="MultiAgentWorkflow",
        name="rag",
        file="<stdin>",
        line=9,
    )


def test_snake_case_is_refused_and_the_camel_case_name_told():
    (found,) = findings(workflow("maxTokens", "max_tokens"))
    assert found.hint == "fields are camelCase: `maxTokens`"


@pytest.mark.parametrize(
    ("old", "new", "path", "found", "expected"),
    [
        ("maxTokens: 4", "maxTokens: 0", "spec.roles[0].sampling.maxTokens", "`0`", "a number above 0"),
        ("maxTokens: 4", 'maxTokens: "4"', "spec.roles[0].sampling.maxTokens", '`"4"`', "a whole number"),
        ("prompt: hello", "prompt: 4", "spec.roles[0].prompt", "`4`", "a string"),
        ("    prompt: hello\n", "", "spec.roles[0].prompt", "nothing", "this field: it is required"),
        (
            "sampling: {",
            "output: {format: tga}\n    sampling: {",
            "spec.roles[0].output.format",
            "`tga`",
            "one of raw,",
        ),
        (
            "sampling: {",
            "output: {format: tag}\n    sampling: {",
            "spec.roles[0].output",
            "a mapping of format",
            "`tag`",
        ),
        ("[question]", "question", "spec.input.visible", "`question`", "a list or a mapping"),
        ("[question]", "[for]", "spec.input.visible[0]", "`for`", "reserved word of CEL"),
        ("[question]", "{a-b: string}", "spec.input.visible.a-b", "`a-b`", "a CEL identifier"),
        ("role: searcher}", "role: searcher, tool: t}", "spec.nodes[0]", "role, tool", "one body: role, tool, nodes"),
        ("role: searcher}", "nodes: []}", "spec.nodes[0].nodes", "a list of 0", "at least 1 entry"),
        ("name: search,", "name: 7up,", "spec.nodes[0].name", "`7up`", "a CEL identifier"),
        ("role: searcher}", "role: searcher, with: {for: a}}", "spec.nodes[0].with.for", "`for`", "reserved word"),
    ],
)
def test_a_wrong_field_tells_path_found_and_expected(old: str, new: str, path: str, found: str, expected: str):
    told = findings(workflow(old, new))[0]
    assert (told.path, told.found) == (path, found)
    assert expected in told.expected
    assert "Input should" not in told.expected


@pytest.mark.parametrize(
    ("source", "path", "expected"),
    [
        ("{hubb: Qwen/Q}", "spec.models[0].source.hub", "this field: it is required"),
        ("A_B", "spec.models[0].source", "a DNS label"),
        ("[x]", "spec.models[0].source", "a mapping or a string"),
    ],
)
def test_a_union_is_judged_by_its_best_fitting_member(source: str, path: str, expected: str):
    told = findings(mapping(f"  models: [{{name: m, source: {source}}}]\n  roles: {{a: m}}\n"))
    assert told[0].path == path
    assert expected in told[0].expected
    assert not any("str" in finding.path or "Hub" in finding.path for finding in told)


def test_fields_inside_a_map_of_unions_are_known():
    told = findings(mapping("  models: [{name: m, source: w}]\n  roles: {a: {model: m, tran: false}}\n"))
    assert [(finding.path, finding.hint) for finding in told] == [("spec.roles.a.tran", "did you mean `train`?")]


def test_all_mistakes_of_all_documents_are_told_at_once():
    text = workflow("maxTokens: 4", "maxTokens: 0").replace("hello", "4") + "---\n" + mapping("  models: []\n")
    assert [finding.kind for finding in findings(text)] == ["MultiAgentWorkflow"] * 2 + ["ModelMapping"] * 2


@pytest.mark.parametrize(
    ("text", "line", "path", "found"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3, "column 2", "expected ',' or ']'"),
        ("a: 1\nb: 2\na: 3\n", 3, "column 1", "a second key `a`"),
        ("a:\n\t- b\n", 2, "column 1", "cannot start any token"),
        ("a: *x\n", 1, "column 4", "undefined alias"),
    ],
)
def test_broken_yaml_is_told_with_line_and_column(text: str, line: int, path: str, found: str):
    (told,) = findings(text)
    assert (told.check, told.line, told.path) == ("yaml-syntax", line, path)
    assert found in told.found


def test_an_alias_within_itself_is_refused():
    assert findings("a: &x [*x]\n")[0].check == "yaml-syntax"


def test_the_words_of_yaml_1_1_are_strings():
    loaded = load(workflow("name: search,", "name: on,"))
    (resource,) = loaded.resources.values()
    assert resource.kind == "MultiAgentWorkflow"
    assert resource.spec.nodes is not None
    assert resource.spec.nodes[0].name == "on"


def test_two_resources_of_one_kind_and_name_are_told_with_both_places():
    (found,) = findings(workflow() + "---\n" + workflow())
    assert (found.check, found.line) == ("duplicate-resource", 15)
    assert "<stdin>:3" in found.found


def test_foreign_kinds_are_noted_and_ours_of_another_version_are_refused():
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n"
    assert load(config + workflow()).ignored == ("<stdin>:1: ignored: v1 ConfigMap c",)
    (found,) = findings("apiVersion: unitymas.io/v2\nkind: RewardSpec\n")
    assert (found.path, found.expected) == ("apiVersion", "unitymas.io/v1alpha1")
    (found,) = findings("apiVersion: unitymas.io/v1alpha1\nkind: RewardSpecs\n")
    assert found.hint == "did you mean `RewardSpec`?"


def test_a_list_is_unpacked_with_its_lines():
    items = "".join(
        f"- {line}\n" if n == 0 else f"  {line}\n" for n, line in enumerate(workflow("hello", "4").splitlines())
    )
    (found,) = findings("apiVersion: v1\nkind: List\nitems:\n" + items)
    assert (found.path, found.line) == ("spec.roles[0].prompt", 11)


def test_json_loads_like_yaml(tmp_path: Path):
    file = tmp_path / "a.json"
    spec = {"models": [{"name": "m", "source": "w"}], "roles": {"a": "m"}}
    whole = {"apiVersion": "unitymas.io/v1alpha1", "kind": "ModelMapping", "metadata": {"name": "rag"}, "spec": spec}
    file.write_text(json.dumps(whole, indent=2))
    assert list(read([file]).resources) == [("ModelMapping", "rag")]


def test_a_folder_gives_its_yaml_files_in_order_but_not_deeper(tmp_path: Path):
    for name, text in {"b.yaml": workflow(), "a.yml": mapping(MAPPING), "c.txt": "[", "d/e.yaml": "["}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    loaded = read([tmp_path, tmp_path / "b.yaml"])
    assert list(loaded.resources) == [("ModelMapping", "rag"), ("MultiAgentWorkflow", "rag")]


def test_a_missing_or_empty_place_is_a_finding(tmp_path: Path):
    with pytest.raises(BadInput) as caught:
        read([tmp_path / "none", tmp_path])
    assert [finding.found for finding in caught.value.findings] == [
        "no such file or folder",
        "no *.yaml file in the folder",
    ]


def test_a_finding_of_a_later_check_gets_file_and_line():
    loaded = load(workflow())
    found = Finding("names", "spec.nodes[0].with.passages", "a", "b", kind="MultiAgentWorkflow", name="rag")
    assert (loaded.locate(found).file, loaded.locate(found).line) == ("<stdin>", 11)
    elsewhere = Finding("names", "spec", "a", "b", kind="MultiAgentWorkflow", name="other")
    assert loaded.locate(elsewhere) is elsewhere
    assert loaded.line_of(loaded.resources["MultiAgentWorkflow", "rag"], "spec.roles[0].prompt") == 8


def test_references_default_to_the_runs_own_name():
    assert resolve(load(project())).workflow.name == "rag"


def test_a_reference_to_nothing_tells_what_there_is():
    with pytest.raises(BadInput) as caught:
        resolve(load(project(workflowRef="rga", rewardRef="other")))
    first, second = caught.value.findings
    assert (first.path, first.found, first.line) == ("spec.workflowRef.name", "`rga`", 5)
    assert (first.expected, first.hint) == ("a MultiAgentWorkflow of these manifests: rag", "did you mean `rag`?")
    assert second.path == "spec.rewardRef.name"


def test_one_run_is_needed_unless_it_is_named():
    two = project() + "---\n" + HEAD.format(kind="TrainingRun").replace("rag", "rag-2") + "  workflowRef: {name: rag}\n"
    two += "  mappingRef: {name: rag}\n  rewardRef: {name: rag}\n"
    for text, name in ((two, None), (workflow(), None), (two, "rag-3")):
        with pytest.raises(BadInput) as caught:
            resolve(load(text), name)
        assert caught.value.findings[0].check == "one-run"
    assert resolve(load(two), "rag-2").run.name == "rag-2"


@given(st.lists(st.one_of(st.integers(0, 99), st.from_regex(r"[A-Za-z_][A-Za-z0-9_./-]*", fullmatch=True))).map(tuple))
def test_a_spelt_path_reads_back(parts: tuple[str | int, ...]):
    assert parts_of(spell(parts)) == parts


@pytest.mark.parametrize("value", ["{{ task.question }}", "question: why", "{a: b ? 0.0 : -1.0}"])
def test_a_value_that_yaml_cannot_read_without_quotes_is_answered_with_quotes(tmp_path: Path, value: str) -> None:
    manifest = tmp_path / "workflow.yaml"
    manifest.write_text(f"kind: MultiAgentWorkflow\nprompt: {value}\n")
    with pytest.raises(BadInput) as caught:
        read([manifest])
    assert "quotes" in caught.value.findings[0].hint
