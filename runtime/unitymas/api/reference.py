"""The reference page: every field of every kind, with type, default and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from unitymas.api.crds import in_yaml
from unitymas.api.resources import KINDS

_INTRO = """# 90 Reference

The four kinds of `unitymas.io/v1alpha1`, field by field. No default: absent means none. Durations are written
`60s`, `5m` or `1h30m`; expressions are CEL; a shape is `string`, `number`, `int`, `bool`, `any`, `[shape]` or
`{name: shape}`.
"""


def docs_tables() -> str:
    """The page, in Markdown: a table per class, each class once, under the first kind that uses it."""
    seen: set[type[BaseModel]] = set()
    parts = [_INTRO]
    for kind, resource in KINDS.items():
        schema = resource.model_json_schema(by_alias=True)
        spec = cast(type[BaseModel], resource.model_fields["spec"].annotation)
        parts.append(f"## {kind}\n\n{_text(resource.__doc__)}\n")
        for cls in _classes(spec, seen):
            title = "spec" if cls is spec else cls.__name__
            parts.append(f"### {kind}: {title}\n\n{_text(cls.__doc__)}\n\n{_table(cls, schema['$defs'][cls.__name__])}")
    return "\n".join(parts)


def _classes(cls: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """A class and those of its fields, each before its own."""
    if cls in seen:
        return
    seen.add(cls)
    yield cls
    for field in cls.model_fields.values():
        for below in _models(field.annotation):
            yield from _classes(below, seen)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _table(cls: type[BaseModel], schema: dict[str, Any]) -> str:
    rows = ["| field | type | default | |", "| --- | --- | --- | --- |"]
    for name, field in cls.model_fields.items():
        alias = field.alias or name
        node = schema["properties"][alias]
        cells = (f"`{alias}`", _type(node), _default(field, node), _text(field.description))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _type(node: dict[str, Any]) -> str:
    """What is written in YAML, in words."""
    if "$ref" in node:
        return node["$ref"].rpartition("/")[2]
    if "anyOf" in node:
        return " or ".join(_type(member) for member in node["anyOf"] if member.get("type") != "null")
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    mark = next((word for key, word in _MARKS.items() if key in node), "")
    if mark and node.get("type") != "object":
        return mark
    if node.get("type") == "array":
        return f"list of {_type(node.get('items') or node['prefixItems'][0])}"
    if node.get("type") == "object":
        entries = next(iter(node.get("patternProperties", {}).values()), None) or node["additionalProperties"]
        return f"map of {_type(entries)}" if isinstance(entries, dict) else "mapping"
    return str(node.get("type", "any"))


_MARKS = {"x-duration": "duration", "x-cel": "expression", "x-kubernetes-preserve-unknown-fields": "shape"}


def _default(field: FieldInfo, node: dict[str, Any]) -> str:
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel) or value is None or value in ("", [], {}):
        return ""
    return f"`{in_yaml(value)}s`" if "x-duration" in node else f"`{in_yaml(value)}`"


def _text(text: str | None) -> str:
    return " ".join((text or "").split())
