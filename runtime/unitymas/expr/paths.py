"""Member paths such as `("nodes", "search", "output")`, and what they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unitymas.api.shapes import ANY, ListOf, Record, Scalar, Shape, notation
from unitymas.expr.errors import ExpressionError, did_you_mean

Path = tuple[str, ...]

ITEM = "[]"
"""Stands in a path for the items of a list."""


def spell(path: Path) -> str:
    """The path as users write it: `state.hits[].text`."""
    return ".".join(path).replace(f".{ITEM}", ITEM)


def resolve(path: Path, variables: Mapping[str, Shape]) -> Shape:
    """The shape that a path leads to; ANY from the first `any` on. Raises ExpressionError where it breaks off."""
    root, *rest = path
    if root not in variables:
        known = ", ".join(variables) or "no variable: none is seen here"
        raise ExpressionError(f"`{spell(path)}`", f"one of {known}", did_you_mean(root, variables))
    shape = variables[root]
    for depth, name in enumerate(rest, start=1):
        if shape == ANY:
            return ANY
        shape = _step(shape, name, path[:depth], f"`{spell(path[: depth + 1])}`")
    return shape


def _step(shape: Shape, name: str, before: Path, found: str) -> Shape:
    match shape:
        case Record() if name != ITEM:
            inner = shape.get(name)
            if inner is None:
                raise no_field(found, name, shape, spell(before))
            return inner
        case ListOf(item) if name == ITEM:
            return item
        case Scalar("string") if name == ITEM:
            return shape
        case Record():
            return ANY  # a template may iterate over the names or the values of a record
        case ListOf():
            raise ExpressionError(found, f"an item first: `{spell(before)}` is a list, {notation(shape)}")
        case Scalar():
            raise ExpressionError(found, f"no member: `{spell(before)}` is {notation(shape)}")


def no_field(found: str, name: str, shape: Record, prefix: str = "") -> ExpressionError:
    """The error of a record that has no such field. `prefix` leads to the record, where that is known."""
    place = f"a field of {prefix}" if prefix else "a field of the record"
    known = shape.names()
    start = f"{prefix}." if prefix else ""
    return ExpressionError(found, f"{place}: {', '.join(known) or 'it has none'}", did_you_mean(name, known, start))


Tree = dict[str, "Tree | None"]
"""Paths that share their beginnings; None where a path ends."""


def tree(paths: Iterable[Path]) -> Tree:
    """The paths as a tree; a path that goes on where another one ends adds nothing."""
    root: Tree = {}
    for path in sorted(paths, key=len):
        branch: Tree | None = root
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
            if branch is None:
                break
        else:
            branch[path[-1]] = None
    return root


def prune(branch: Tree, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without what none of the paths reads. What is missing stays missing."""
    kept: dict[str, Any] = {}
    for name, inner in branch.items():
        if name in values:
            found = values[name]
            kept[name] = prune(inner, found) if inner is not None and isinstance(found, dict) else found
    return kept
