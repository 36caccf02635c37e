"""Names, shapes and expressions of a workflow: all of them exist where they are used, and all that exists is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unitymas.api import shapes
from unitymas.api.errors import BadInput, Finding
from unitymas.api.load_errors import did_you_mean
from unitymas.api.tool import Tool
from unitymas.api.workflow import Role, WorkflowSpec
from unitymas.check.subject import Compilation
from unitymas.check.walk import placed, plays
from unitymas.expr.errors import ExpressionError
from unitymas.expr.scope import Scope
from unitymas.workflow.fence import Fence
from unitymas.workflow.outputs import build_output
from unitymas.workflow.team import output_shape

OWN = ("task", "state", "nodes", "turn", "index", "fresh", "output")
"""Variables that the language itself gives."""


def once(workflow: WorkflowSpec) -> Iterator[Finding]:
    """Roles and tools have names of their own, and no argument or item hides a variable of the language."""
    yield from repeated([role.name for role in workflow.roles], "spec.roles")
    yield from repeated([tool.name for tool in workflow.tools], "spec.tools")
    expected = f"a name of its own, and none of {', '.join(OWN)}"
    for place in placed(workflow):
        node = place.node
        if node.for_each is not None and node.for_each.as_ in OWN:
            yield Finding("reserved-name", f"{place.path}.forEach.as", f"`{node.for_each.as_}`", expected)
        for name in node.with_ if node.role is not None else ():
            if name in OWN:
                yield Finding("reserved-name", f"{place.path}.with.{name}", f"`{name}`", expected)


def repeated(names: Sequence[str], path: str) -> Iterator[Finding]:
    """A finding for each name of a list that an earlier entry has."""
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Finding("duplicate-name", f"{path}[{number}].name", f"`{name}` a second time", "a name of its own")


def named(name: str, known: Sequence[str], what: str) -> tuple[str, str, str]:
    """Found, expected and hint of a name that is none of the known ones."""
    return f"`{name}`", f"{what}: {', '.join(known) or 'there are none'}", did_you_mean(name, known)


def shapes_and_patterns(workflow: WorkflowSpec) -> Iterator[Finding]:
    """Every shape and pattern can be read."""
    for number, role in enumerate(workflow.roles):
        try:
            build_output(role.output, path=f"spec.roles[{number}].output")
        except BadInput as error:
            yield from error.findings
    for number, tool in enumerate(workflow.tools):
        yield from _shapes_of(tool, f"spec.tools[{number}]")


def _shapes_of(tool: Tool, path: str) -> Iterator[Finding]:
    given = {f"{path}.methods.{name}": notation for name, notation in tool.methods.items()}
    if tool.returns is not None:
        given[f"{path}.returns"] = tool.returns
    for place, notation in given.items():
        try:
            shapes.parse(notation)
        except shapes.ShapeError as error:
            yield Finding("shape", place + error.path, error.found, error.expected)


def expressions(compilation: Compilation) -> Iterator[Finding]:
    """Every expression of the nodes compiles where it stands; nodes name roles and tools that exist."""
    yield from compilation.findings


def output_checks(compilation: Compilation) -> Iterator[Finding]:
    """`output.check` compiles wherever its role is played, and is a bool."""
    spec = compilation.compiled.spec
    fence = Fence.of(spec)
    for number, role in enumerate(spec.roles):
        if role.output.check is None:
            continue
        told: set[str] = set()
        for _, scope in plays(compilation.compiled, role.name):
            for finding in _output_check(role, role.output.check, scope, fence, f"spec.roles[{number}].output.check"):
                if finding.found not in told:  # once, however many nodes run the role
                    told.add(finding.found)
                    yield finding


def _output_check(role: Role, text: str, scope: Scope, fence: Fence, path: str) -> Iterator[Finding]:
    if wrong := list(fence.broken(text, path, scope)):
        yield from wrong
        return
    try:
        program = scope.with_variable("output", output_shape(role)).compile(text)
    except ExpressionError as error:
        yield Finding("expression", path, error.found, error.expected, error.hint)
        return
    if program.shape not in (shapes.BOOL, shapes.ANY):
        yield Finding("expression", path, f"`{text}`, which is {shapes.notation(program.shape)}", "a bool")


def used(workflow: WorkflowSpec) -> Iterator[Finding]:
    """Every role is played and every tool is called; of a workflow as code nobody can tell."""
    if workflow.python is not None:
        return
    played = {place.node.role for place in placed(workflow)}
    called = {(place.node.tool or "").partition(".")[0] for place in placed(workflow)}
    called |= {name.partition(".")[0] for role in workflow.roles for name in role.tools}
    wrong = played - {None} - {role.name for role in workflow.roles}  # misspelt: the one meant would look unused
    for number, role in enumerate(() if wrong else workflow.roles):
        if role.name not in played:
            found = f"`{role.name}`, which no node runs"
            yield Finding("unused-role", f"spec.roles[{number}].name", found, "a role that a node runs")
    wrong = called - {""} - {tool.name for tool in workflow.tools}
    for number, tool in enumerate(() if wrong else workflow.tools):
        if tool.name not in called:
            found = f"`{tool.name}`, which neither a node nor a role calls"
            yield Finding("unused-tool", f"spec.tools[{number}].name", found, "a tool that is called")
