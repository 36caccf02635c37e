"""CRDs from the pydantic classes: structural schemas, every size bounded so that the API server can price its CEL.

No defaults: an object stays as its author wrote it (a default written into a role's `loss` would override the run's),
and the runtime fills in what is absent. The default is told in the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from unitymas.api.base import API_VERSION
from unitymas.api.crd_rules import COLUMNS, REQUIRED, RULES, SHORT_NAMES, root_rules
from unitymas.api.resources import KINDS
from unitymas.api.status import STATUS
from unitymas.api.workflow import LEVELS

Schema = dict[str, Any]
DURATION: Mapping[str, Any] = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d|w))+$", "maxLength": 32}
"""Such as 60s, 5m, 1h30m."""
MOST_TEXT, MOST_ITEMS, MOST_ENTRIES = 4096, 256, 64
"""Bounds where the classes give none: characters, list items, map entries."""
BOUNDS: Mapping[str, int] = {"placement": 16}
"""Other bounds, by property: no more placements than models."""
_KEPT = frozenset(f"{side}{what}" for side in ("min", "max") for what in ("imum", "Length", "Items", "Properties")) | {
    "pattern",
    "enum",
}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def crd(kind: str) -> Schema:
    """The CustomResourceDefinition of a kind."""
    group, _, version = API_VERSION.partition("/")
    plural = plural_of(kind)
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [dict(column) for column in COLUMNS[kind]],
        "schema": {"openAPIV3Schema": _root(kind)},
    }
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [SHORT_NAMES[kind]],
        "categories": ["unitymas"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [served]},
    }


def plural_of(kind: str) -> str:
    """The resource name in URLs and on the command line."""
    return f"{kind.lower()}s"


def _root(kind: str) -> Schema:
    resource = KINDS[kind].model_json_schema(by_alias=True)
    status = STATUS[kind].model_json_schema(by_alias=True)
    return {
        "type": "object",
        "description": resource["description"],
        "required": ["spec"],
        "x-kubernetes-validations": root_rules(kind),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(resource["properties"]["spec"], resource["$defs"]),
            "status": structural(status, status.get("$defs", {})),
        },
    }


def structural(node: Schema, defs: Mapping[str, Schema], level: int = 0) -> Schema:
    """A JSON Schema node as a structural one. `level` counts the node lists around it."""
    said = {"description": text} if (text := _said(node)) else {}
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return _object(name, defs, level + (name == "Node")) | said
    if "anyOf" in node:
        members = [member for member in node["anyOf"] if member.get("type") != "null"]
        return (structural(members[0], defs, level) if len(members) == 1 else _union(members)) | said
    if "x-duration" in node:
        return {**DURATION} | said
    if "properties" in node:
        return _fields(node, defs, level) | said
    if node.get("type") == "array":
        items = structural(node.get("items") or node["prefixItems"][0], defs, level)
        return {"type": "array", "items": items, "maxItems": MOST_ITEMS} | _bounds(node) | _keys(items) | said
    if node.get("type") == "object" and _PRESERVE not in node:
        entries = next(iter(node.get("patternProperties", {}).values()), None) or node["additionalProperties"]
        entry = structural(entries, defs, level)
        return {"type": "object", "additionalProperties": entry, "maxProperties": MOST_ENTRIES} | _bounds(node) | said
    return _leaf(node) | said


def _said(node: Schema) -> str:
    """A field's text, with its default where that is a plain value."""
    default = node.get("default")
    if "x-duration" in node or any("x-duration" in member for member in node.get("anyOf", ())):
        default = None if default is None else f"{default:g}s"
    told = "" if default in (None, "") or isinstance(default, list | dict) else f"Default: {in_yaml(default)}."
    return " ".join(filter(None, (node.get("description", ""), told)))


def in_yaml(value: object) -> str:
    """A plain value, or a list of them, as written in YAML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(in_yaml(item) for item in cast(list[object], value))}]"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _object(name: str, defs: Mapping[str, Schema], level: int) -> Schema:
    made = structural(defs[name], defs, level)
    rules = RULES[name](made["properties"]) if name in RULES else []
    if rules:
        made["x-kubernetes-validations"] = rules
    if name in REQUIRED:
        made["oneOf"] = [{"required": [field]} for field in REQUIRED[name]]
    return made


def _fields(node: Schema, defs: Mapping[str, Schema], level: int) -> Schema:
    """A class's own fields; the innermost nodes have no `nodes`."""
    properties = {
        name: structural(field, defs, level)
        for name, field in node["properties"].items()
        if not (level == LEVELS and name == "nodes")
    }
    for name in BOUNDS.keys() & properties.keys():
        properties[name]["maxProperties"] = BOUNDS[name]
    required = {"required": node["required"]} if node.get("required") else {}
    return {"type": "object", **required, "properties": properties}


def _union(members: list[Schema]) -> Schema:
    """Structural schemas have no unions but one."""
    types = {member.get("type") for member in members}
    quantity = "string" in types and types <= {"integer", "number", "string"}
    return {"x-kubernetes-int-or-string": True} if quantity else {_PRESERVE: True}


def _leaf(node: Schema) -> Schema:
    if node.get(_PRESERVE):
        return ({"type": "object"} if node.get("type") == "object" else {}) | {_PRESERVE: True}
    made = {"type": node["type"]} | _bounds(node)
    if "const" in node:
        made["enum"] = [node["const"]]
    if "format" in node:
        made["format"] = node["format"]
    elif node["type"] == "string" and "enum" not in made:
        made.setdefault("maxLength", MOST_TEXT)
    return made


def _bounds(node: Schema) -> Schema:
    """The node's own bounds; exclusive ones are flags here, as in OpenAPI 3.0."""
    made = {key: value for key, value in node.items() if key in _KEPT}
    for side in ("Minimum", "Maximum"):
        if f"exclusive{side}" in node:
            made |= {side.lower(): node[f"exclusive{side}"], f"exclusive{side}": True}
    return made


def _keys(items: Schema) -> Schema:
    """A list of named things is a map by name: no name twice, and appliers may own single items."""
    required = items.get("required", [])
    key = "name" if "name" in required else "type" if {"type", "status"} <= set(required) else ""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} if key else {}
