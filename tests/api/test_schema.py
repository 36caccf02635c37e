"""CRDs and JSON Schemas: structural, bounded, small, fresh; their rules decide as the classes do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from unitymas.api.crd_rules import RULES, root_rules
from unitymas.api.crds import crd
from unitymas.api.resources import KINDS
from unitymas.api.schema import docs_tables, files, json_schema, main
from unitymas.api.shapes import ANY
from unitymas.api.workflow import LEVELS
from unitymas.expr import cel

ROOT = Path(__file__).parents[2]
Schema = dict[str, Any]
ALLOWED = {
    *("type", "format", "description", "enum", "pattern", "required", "properties", "items", "additionalProperties"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "oneOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "x-kubernetes-validations"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
}
KIND = pytest.mark.parametrize("kind", KINDS)


def root(kind: str) -> Schema:
    return crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def below(path: str, node: Schema) -> Iterator[tuple[str, Schema]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from below(f"{path}.{name}", child)
    for step in ("items", "additionalProperties"):
        if step in node:
            yield from below(f"{path}[]", node[step])


@KIND
def test_every_node_is_structural(kind: str):
    for path, node in below("", root(kind)):
        assert set(node) <= ALLOWED, path
        open_ended = node.get("x-kubernetes-preserve-unknown-fields") or node.get("x-kubernetes-int-or-string")
        assert "type" in node or open_ended, path
        assert "properties" not in node or node["type"] == "object", path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        for key in node.get("x-kubernetes-list-map-keys", []):
            assert key in node["items"]["required"], path


@KIND
def test_every_size_is_bounded_so_that_rules_have_a_price(kind: str):
    for path, node in below("", root(kind)):
        if path in (".apiVersion", ".kind"):
            continue
        match node.get("type"):
            case "array":
                assert "maxItems" in node, path
            case "string":
                assert {"maxLength", "enum", "format"} & set(node), path
            case "object":
                assert "additionalProperties" not in node or "maxProperties" in node, path
            case _:
                pass


@KIND
def test_a_crd_fits_client_side_apply(kind: str):
    (text,) = (text for path, text in files().items() if path.endswith(f"_{kind.lower()}s.yaml"))
    assert len(text.encode()) < 100_000


def test_nodes_are_unrolled_to_the_levels_that_the_language_has():
    nodes = root("MultiAgentWorkflow")["properties"]["spec"]["properties"]["nodes"]
    depth = 0
    while nodes is not None:
        depth += 1
        assert nodes["x-kubernetes-list-map-keys"] == ["name"]
        nodes = nodes["items"]["properties"].get("nodes")
    assert depth == LEVELS


def test_the_generated_files_are_fresh():
    """Else run `python -m unitymas.api.schema`."""
    assert main(["--check", str(ROOT)]) == 0


def test_the_command_writes_what_is_stale_and_check_only_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["--check", str(tmp_path)]) == 1
    assert not list(tmp_path.iterdir())
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == set(files())
    assert "written: crds/unitymas.io_trainingruns.yaml" in capsys.readouterr().out


@KIND
def test_the_reference_names_every_field(kind: str):
    text = docs_tables()
    for definition in json_schema(kind)["$defs"].values():
        if "namespace" not in definition["properties"]:
            assert all(f"`{name}`" in text for name in definition["properties"])


def test_json_schemas_write_durations_as_text_and_have_no_marks_of_ours():
    limits = json_schema("TrainingRun")["$defs"]["Limits"]["properties"]["call"]
    assert (limits["type"], limits["default"]) == ("string", "60s")
    assert "x-" not in "".join(key for kind in KINDS for key in _keys(json_schema(kind)))


def _keys(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():  # pyright: ignore[reportUnknownVariableType]
            yield f"{key} "
            yield from _keys(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(node, list):
        for item in node:  # pyright: ignore[reportUnknownVariableType]
            yield from _keys(item)  # pyright: ignore[reportUnknownArgumentType]


def refused(rules: list[dict[str, str]], new: Schema, old: Schema | None = None) -> list[str]:
    """Messages of the rules that do not hold; transition rules are asked only where there is an old object."""
    values: dict[str, object] = {"self": new, **({} if old is None else {"oldSelf": old})}
    environment = cel.Environment.of(dict.fromkeys(values, ANY))
    asked = [rule for rule in rules if old is not None or "oldSelf" not in rule["rule"]]
    return [rule["message"] for rule in asked if not environment.compile(rule["rule"]).evaluate(values)]


def rules(name: str, *properties: str) -> list[dict[str, str]]:
    return RULES[name](dict.fromkeys(properties))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("Tool", {"name": "a", "code": {}}, {"name": "a", "code": {}, "mcp": {}}),
        ("Tool", {"name": "a", "http": {}}, {"name": "a"}),
        ("Metric", {"cel": "1.0"}, {"cel": "1.0", "tokenF1": {}}),
        ("Source", {"path": "x"}, {"path": "x", "uri": "y"}),
        ("ForEach", {"times": 3}, {"times": 3, "items": "x"}),
        ("WorkflowSpec", {"nodes": []}, {"nodes": [], "python": {}}),
        ("WorkflowSpec", {"python": {}}, {"python": {}, "result": "x"}),
        ("RewardSpecSpec", {"rewards": [1]}, {"rewards": []}),
        ("Model", {"adapterOf": "a", "lora": {}}, {"adapterOf": "a"}),
        ("Model", {"endpoint": {}}, {"endpoint": {}, "trainable": True}),
    ],
)
def test_unions_are_exactly_one(name: str, good: Schema, bad: Schema):
    assert refused(rules(name), good) == []
    assert len(refused(rules(name), bad)) == 1


@pytest.mark.parametrize(
    ("node", "ok"),
    [
        ({"role": "a"}, True),
        ({"tool": "a", "set": {}}, True),
        ({"nodes": []}, True),
        ({"set": {}}, True),
        ({}, False),
        ({"role": "a", "tool": "b"}, False),
        ({"role": "a", "__loop__": 3, "forEach": {}}, False),
    ],
)
def test_a_node_has_one_body(node: Schema, ok: bool):
    assert (refused(rules("Node", "role", "tool", "nodes"), node) == []) is ok


@pytest.mark.parametrize(
    ("old", "new", "ok"),
    [
        ({}, {"cancel": True}, True),
        ({"cancel": True}, {"cancel": True}, True),
        ({"cancel": True}, {}, False),
        ({"cancel": True}, {"cancel": False}, False),
        ({"image": "a"}, {"image": "b"}, False),
        ({"image": "a"}, {}, False),
        ({}, {"workflowRef": {"name": "a"}}, False),
        ({"image": "a", "suspend": True}, {"image": "b", "suspend": False}, True),
        ({"image": "a"}, {"image": "b", "suspend": True}, False),
        ({"placement": {"a": {"nodes": 1}}}, {"placement": {"a": {"nodes": 2}}}, True),
        ({"placement": {"a": {}}}, {"placement": {"b": {}}}, False),
        ({"placement": {"a": {}}}, {"placement": {"a": {}, "b": {}}}, False),
        ({"suspend": False}, {"suspend": True, "runPolicy": {"activeDeadlineSeconds": 3}}, True),
    ],
)
def test_a_run_keeps_what_it_was_accepted_with_unless_suspended(old: Schema, new: Schema, ok: bool):
    assert (refused(rules("TrainingRunSpec"), new, old) == []) is ok


@pytest.mark.parametrize(
    ("kind", "name", "ok"),
    [
        ("TrainingRun", "r" * 42, True),
        ("TrainingRun", "r" * 43, False),
        ("RewardSpec", "r" * 63, True),
        ("RewardSpec", "a.b", False),
    ],
)
def test_names_are_labels_and_short_enough_for_what_is_made_of_them(kind: str, name: str, ok: bool):
    assert (refused(root_rules(kind), {"metadata": {"name": name}}) == []) is ok


def test_deadlines_are_above_zero_and_models_at_most_sixteen():
    run = root("TrainingRun")["properties"]["spec"]["properties"]
    deadline = run["runPolicy"]["properties"]["activeDeadlineSeconds"]
    assert (deadline["minimum"], deadline["exclusiveMinimum"]) == (0, True)
    assert run["placement"]["maxProperties"] == 16
    assert root("ModelMapping")["properties"]["spec"]["properties"]["models"]["maxItems"] == 16


def test_a_model_has_exactly_one_origin_by_structure():
    model = root("ModelMapping")["properties"]["spec"]["properties"]["models"]["items"]
    assert model["oneOf"] == [{"required": [field]} for field in ("source", "adapterOf", "endpoint")]


def test_kubectl_shows_a_run_by_scalars():
    columns = {
        column["name"]: column["jsonPath"]
        for column in crd("TrainingRun")["spec"]["versions"][0]["additionalPrinterColumns"]
    }
    assert list(columns) == ["Phase", "Attempt", "Step", "Progress", "Reward", "Queue", "Age", "RayJob", "Message"]
    assert not any("conditions" in path for path in columns.values())
    for path in columns.values():
        if not path.startswith(".metadata"):
            node = root("TrainingRun")
            for part in path.strip(".").split("."):
                node = node["properties"][part]
            assert node["type"] in ("string", "integer")
