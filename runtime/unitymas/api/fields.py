"""Which fields a resource has at a path: read from its JSON Schema, so unions and references need no second list."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from unitymas.api.documents import Parts
from unitymas.api.resources import KINDS


@cache
def _schema(kind: str) -> dict[str, Any]:
    return KINDS[kind].model_json_schema(by_alias=True)


def fields_at(kind: str, path: Parts) -> list[str]:
    """The fields that the resource has at a path, as YAML spells them."""
    schema = _schema(kind)
    places: list[dict[str, Any]] = [schema]
    for part in path:
        below = [_below(place, part) for place in _members(places, schema)]
        places = [place for place in below if place]
    return [name for place in _members(places, schema) for name in place.get("properties", {})]


def _members(places: Iterable[dict[str, Any]], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The places themselves, references followed, unions opened."""
    opened: list[dict[str, Any]] = []
    for place in places:
        if "$ref" in place:
            opened += _members([schema["$defs"][place["$ref"].rpartition("/")[2]]], schema)
        elif "anyOf" in place:
            opened += _members(place["anyOf"], schema)
        else:
            opened.append(place)
    return opened


def _below(place: dict[str, Any], part: str | int) -> dict[str, Any]:
    if isinstance(part, int):
        return place.get("items", {})
    entries: list[Any] = [place.get("additionalProperties"), *place.get("patternProperties", {}).values()]
    return place.get("properties", {}).get(part) or next((entry for entry in entries if isinstance(entry, dict)), {})
