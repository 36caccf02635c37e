"""What all resource classes share: strict fields, camelCase aliases, names, durations, metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from durationpy import from_str  # pyright: ignore[reportUnknownVariableType]
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

API_VERSION = "unitymas.io/v1alpha1"
CEL_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    )
)
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"


class Spec(BaseModel):
    """Base of every class that users write: unknown fields are errors, values never change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


def _not_reserved(name: str) -> str:
    if name in CEL_RESERVED:
        raise ValueError(f"`{name}` is a reserved word of CEL")
    return name


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not re.search(r"[a-zµ]", value):
        raise ValueError("a duration carries its unit, such as 60s, 5m or 1h30m")
    try:
        return from_str(value).total_seconds()
    except Exception as caught:
        raise ValueError(f"not a duration such as 60s, 5m or 1h30m ({caught})") from caught


def _once(items: list[str]) -> list[str]:
    again = [item for number, item in enumerate(items) if item in items[:number]]
    if again:
        raise ValueError(f"each entry once; found `{again[0]}` a second time")
    return items


Once = AfterValidator(_once)
"""Marks a list whose entries all differ."""
Word = Annotated[str, Field(min_length=1)]
"""Text that is not empty."""
Name = Annotated[str, Field(pattern=IDENTIFIER, max_length=63), AfterValidator(_not_reserved)]
"""A name that expressions can say: a CEL identifier, no reserved word."""
Label = Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
"""A DNS label, as names of resources, models and sources are."""
Duration = Annotated[float, BeforeValidator(_seconds), Field(gt=0, json_schema_extra={"x-duration": True})]
"""Seconds inside, `60s` or `1h30m` in YAML."""
Expression = Annotated[str, Field(min_length=1, max_length=8192, json_schema_extra={"x-cel": True})]
"""A CEL expression."""
Notation = Annotated[Any, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
"""A type by shape: `string`, `[string]`, `{title: string}`."""
Free = Annotated[Mapping[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
"""Fields that the cluster checks, not we: pod templates and the like."""


class Metadata(BaseModel):
    """The part of Kubernetes metadata that we read; the rest passes through."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(pattern=DNS_LABEL, max_length=63)
    namespace: str = "default"


class Entrypoint(Spec):
    """A function or class of the user's own code."""

    entrypoint: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`module:name`, importable from a source of the run with `python: true`."""
