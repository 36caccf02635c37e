"""Shapes of what nodes give: a role's value, a tool's, a block's, a loop's, the list of a forEach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unitymas.api import shapes
from unitymas.api.shapes import ListOf, Record, Shape, ShapeError
from unitymas.api.tool import Tool
from unitymas.api.workflow import Node, WorkflowSpec
from unitymas.workflow.declared import DEFAULT
from unitymas.workflow.team import role_value

PASSAGE = shapes.record(id=shapes.STRING, title=shapes.STRING, text=shapes.STRING, score=shapes.NUMBER)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What one node gives."""

    single: Record
    """One execution."""
    value: Shape
    """`nodes.<name>` after it: a list under forEach."""
    exposed: Mapping[str, Shape]
    """Everything inside by name: what is not privileged is visible after it."""


def tool_shape(tool: Tool, method: str = "") -> Record:
    """Shape of a tool's answer, without `ok` and `ran`.

    Raises KeyError for a method that is not declared, ShapeError for a result that is not.
    """
    if method and method not in tool.methods:
        raise KeyError(method)
    if tool.retriever is not None:
        return shapes.record(passages=ListOf(PASSAGE))
    if tool.code is not None:
        return shapes.record(passRate=shapes.NUMBER, passed=shapes.BOOL, error=shapes.STRING)
    if tool.python is not None and not tool.methods and tool.returns is None:
        raise ShapeError("", "nothing", "a record")
    declared = shapes.parse(tool.methods[method] if method else (tool.returns or {}))
    return declared if isinstance(declared, Record) else shapes.record(value=declared)


def node_shape(spec: WorkflowSpec, node: Node) -> NodeShape:
    """Shape of a node's value. Raises KeyError for a role, tool or method that there is not."""
    children = {child.name: node_shape(spec, child) for child in node.nodes or ()}
    told = {child.name for child in node.nodes or () if not child.privileged}
    single = _single(spec, node, {name: child.value for name, child in children.items() if name in told})
    if node.loop is not None:
        single = Record((*single.fields, ("turns", shapes.INT)))
    if node.for_each is not None:
        return NodeShape(single, ListOf(single), {})
    exposed: dict[str, Shape] = {}
    for name, child in children.items():
        if name != DEFAULT:  # there may be many: each is told by its switch only
            exposed[name] = child.value
        exposed.update(child.exposed)
    return NodeShape(single, single, exposed)


def _single(spec: WorkflowSpec, node: Node, children: Mapping[str, Shape]) -> Record:
    if node.role is not None:
        return role_value(spec.role(node.role))
    if node.tool is not None:
        answer = tool_shape(spec.tool(node.tool), node.tool.partition(".")[2])
        return Record((*answer.fields, ("ok", shapes.BOOL), ("ran", shapes.BOOL)))
    fields = (*children.items(), ("ran", shapes.BOOL))
    if node.switch is not None:
        fields = (*fields, *((name, shapes.STRING) for name in ("choice", "text", "output")))
    return Record(fields)
