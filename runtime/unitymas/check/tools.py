"""Tool calls: methods that are declared, arguments that the tool takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unitymas.api import shapes
from unitymas.api.errors import Finding
from unitymas.api.shapes import Shape
from unitymas.api.workflow import Node, Tool, WorkflowSpec
from unitymas.check.subject import Compilation, named
from unitymas.check.walk import placed, steps
from unitymas.expr.cel import Program
from unitymas.tools import check_tools

ARGUMENTS: Mapping[str, Mapping[str, Shape]] = {
    "retriever": {"query": shapes.STRING},
    "code": {"program": shapes.STRING, "tests": shapes.ANY},
}
"""What the kinds of tool take that are not the user's own; said here too, for the tools are only loaded to run."""


def calls(workflow: WorkflowSpec, compilation: Compilation) -> Iterator[Finding]:
    """Nodes and roles call methods that exist; nodes give built-in tools their arguments; results have shapes."""
    yield from (finding for finding in check_tools(workflow).items if finding.check != "later")
    tools = {tool.name: tool for tool in workflow.tools}
    programs = {step.node.name: step.arguments for step in steps(compilation.compiled)}
    for place in placed(workflow):
        tool = tools.get((place.node.tool or "").partition(".")[0])
        if tool is None:
            continue
        if tool.methods and "." not in (place.node.tool or ""):
            expected = f"one of its methods: {', '.join(f'{tool.name}.{method}' for method in tool.methods)}"
            yield Finding("unknown-tool", f"{place.path}.tool", f"`{tool.name}`", expected)
        yield from _arguments(place.node, place.path, tool, programs.get(place.node.name, {}))
    for number, role in enumerate(workflow.roles):
        known = [name for tool in workflow.tools for name in _callable(tool)]
        for index, name in enumerate(role.tools):
            if name not in known:
                path = f"spec.roles[{number}].tools[{index}]"
                yield Finding("unknown-tool", path, *named(name, known, "a tool of spec.tools"))


def _callable(tool: Tool) -> list[str]:
    return [f"{tool.name}.{method}" for method in tool.methods] or [tool.name]


def _arguments(node: Node, path: str, tool: Tool, programs: Mapping[str, Program]) -> Iterator[Finding]:
    wanted = ARGUMENTS.get(tool.kind)
    if wanted is None:
        return
    for name in node.with_:
        if name not in wanted:
            yield Finding(
                "tool-argument", f"{path}.with.{name}", *named(name, list(wanted), f"an argument of a {tool.kind}")
            )
    for name, shape in wanted.items():
        if name not in node.with_:
            yield Finding("tool-argument", f"{path}.with", f"no `{name}`", f"`{name}`, {shapes.notation(shape)}")
        elif name in programs and shapes.ANY not in (shape, programs[name].shape) and programs[name].shape != shape:
            found = f"`{node.with_[name]}`, which is {shapes.notation(programs[name].shape)}"
            yield Finding("tool-argument", f"{path}.with.{name}", found, shapes.notation(shape))
