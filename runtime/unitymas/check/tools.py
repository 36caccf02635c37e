"""Tool calls: methods that are declared, arguments that the tool takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unitymas.api import shapes
from unitymas.api.errors import Finding, Findings
from unitymas.api.shapes import Record, Shape
from unitymas.api.tool import Tool
from unitymas.api.workflow import Node, WorkflowSpec
from unitymas.check.names import named
from unitymas.check.subject import Compilation
from unitymas.check.walk import placed, steps
from unitymas.expr.cel import Program
from unitymas.expr.errors import ExpressionError
from unitymas.expr.scope import Scope
from unitymas.tools import check_tools
from unitymas.workflow.declared import shapes_of_input
from unitymas.workflow.fence import Fence

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


def opens(compilation: Compilation) -> Iterator[Finding]:
    """What opens a session reads the task's visible fields and the state."""
    spec = compilation.compiled.spec
    visible, _, state = shapes_of_input(spec, Findings())
    task = Scope().with_variable("task", Record(tuple(visible.items())))
    scope = task.with_variable("state", Record(tuple(state.items())))
    fence = Fence.of(spec)
    for number, tool in enumerate(spec.tools):
        for name, text in tool.open.items():
            path = f"spec.tools[{number}].open.{name}"
            if wrong := list(fence.broken(text, path, scope)):
                yield from wrong
                continue
            try:
                scope.compile(text)
            except ExpressionError as error:
                yield Finding("expression", path, error.found, error.expected, error.hint)


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
