"""Hidden fields reach no prompt, and every name in a prompt is there wherever its role is played."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unitymas.api import shapes
from unitymas.api.errors import Finding
from unitymas.api.shapes import Record
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.subject import Compilation
from unitymas.check.walk import plays
from unitymas.expr.errors import ExpressionError
from unitymas.expr.scope import Scope
from unitymas.expr.template import Template
from unitymas.workflow.compile import Compiled

LEAK = "hidden-in-prompt"


def prompts(compilation: Compilation) -> Iterator[Finding]:
    """Every template can be read, names no hidden field, and names nothing that is not bound where it is rendered."""
    compiled = compilation.compiled
    for number, role in enumerate(compiled.spec.roles):
        for field, text in (("system", role.system), ("prompt", role.prompt)):
            if text is None:
                continue
            path = f"spec.roles[{number}].{field}"
            try:
                template = Template(text)
            except ExpressionError as error:
                yield Finding("template", path, error.found, error.expected, error.hint)
                continue
            yield from _hidden(template, path, compiled.spec)
            yield from _unknown(template, path, role.name, compiled)


def _hidden(template: Template, path: str, spec: WorkflowSpec) -> Iterator[Finding]:
    visible = ", ".join(spec.input.visible) or "there are none"
    read = {name[1] for name in template.names() if name[0] == "task" and len(name) > 1}
    for name in sorted(read.intersection(spec.input.hidden)):
        hint = f"if agents may know it, move `{name}` to spec.input.visible"
        yield Finding(LEAK, path, f"`task.{name}`, a hidden field", f"visible fields of the task: {visible}", hint)


def _unknown(template: Template, path: str, role: str, compiled: Compiled) -> Iterator[Finding]:
    """Names that are not bound: at all nodes that run the role, or at some."""
    spec = compiled.spec
    nodes = plays(compiled, role) if spec.python is None else [("", _code_scope(template, spec))]
    told: dict[str, tuple[ExpressionError, list[str]]] = {}
    for node, scope in nodes:
        errors = {_found(error, scope): error for error in template.check(_with_hidden(scope, spec))}
        for found, error in errors.items():
            told.setdefault(found, (error, []))[1].append(node)
    for found, (error, where) in told.items():
        place = "" if len(where) == len(nodes) else f", which {_said(where)} does not bind"
        yield Finding("unknown-name", path, found + place, error.expected, error.hint or _hint(found, where, compiled))


def _found(error: ExpressionError, scope: Scope) -> str:
    """What was found; of a name that is not bound the name alone, whatever is read of it."""
    root = re.split(r"[.\[]", error.found.strip("`"), maxsplit=1)[0]
    return error.found if root in scope.variables else f"`{root}`"


def _code_scope(template: Template, spec: WorkflowSpec) -> Scope:
    """In a workflow as code, a prompt sees the task and whatever its calls bind."""
    scope = Scope({path[0]: shapes.ANY for path in template.names()})
    try:
        return scope.with_variable("task", Record(tuple(spec.input.visible_shapes().items())))
    except shapes.ShapeError:  # has its own finding
        return scope


def _with_hidden(scope: Scope, spec: WorkflowSpec) -> dict[str, shapes.Shape]:
    """What a prompt sees, hidden fields too: those have a finding of their own."""
    task = scope.variables["task"]
    seen = dict(task.fields) if isinstance(task, Record) else {}
    return {**scope.variables, "task": Record(tuple({**dict.fromkeys(spec.input.hidden, shapes.ANY), **seen}.items()))}


def _said(nodes: Sequence[str]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(f'`{node}`' for node in nodes)}"


def _hint(found: str, nodes: Sequence[str], compiled: Compiled) -> str:
    """Where the name may come from: the task, the state, or an argument of the node."""
    name = found.strip("`").partition(".")[0]
    for root, fields in (("task", compiled.spec.input.visible), ("state", compiled.state)):
        if name in fields:
            return f"write `{root}.{name}`"
    if "." in found or not nodes[0]:
        return ""
    return f"bind it at {_said(nodes)}: `with: {{{name}: ...}}`"
