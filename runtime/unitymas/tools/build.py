"""From the tools of a workflow to objects that answer calls."""

from __future__ import annotations

from typing import cast

from unitymas.api import names, shapes
from unitymas.api.errors import Findings
from unitymas.api.ports import Tool, Workers
from unitymas.api.run import Limits
from unitymas.api.shapes import Record
from unitymas.api.tool import Tool as ToolSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.tools.guarded import Guarded
from unitymas.tools.kind import Corpora, Kind, Offer


def check_tools(spec: WorkflowSpec) -> Findings:
    """What this release cannot run (check `later`), and results without a shape. Needs the spec only."""
    findings = Findings()
    for number, tool in enumerate(spec.tools):
        path = f"spec.tools[{number}]"
        for field, found, expected, what in _later(tool):
            hint = f"in a later release: {what}"
            findings.add("later", f"{path}.{field}", found=f"`{found}`", expected=expected, hint=hint)
        if tool.python is not None and not tool.methods:
            _returns(findings, tool, f"{path}.returns")
    return findings


def build_tools(spec: WorkflowSpec, *, corpora: Corpora, limits: Limits, workers: Workers) -> dict[str, Tool]:
    """Every tool of the workflow by name, guarded. Raises BadInput with all that `check_tools` finds."""
    check_tools(spec).raise_if_any()
    return {tool.name: _build(tool, corpora, limits, workers) for tool in spec.tools}


def _build(tool: ToolSpec, corpora: Corpora, limits: Limits, workers: Workers) -> Tool:
    limit_s = tool.timeout_s or limits.tool_s
    kind = cast(Kind, names.load(names.TOOLS, tool.kind))
    built = kind.of(tool, Offer(corpora, workers, limit_s))
    return Guarded(built, name=tool.name, timeout_s=None if kind.keeps_limit else limit_s, retries=limits.retries)


def _later(tool: ToolSpec) -> list[tuple[str, str, str, str]]:
    """Field, what was found, what would be right, and what is missing."""
    missing: list[tuple[str, str, str, str]] = []
    if tool.kind not in names.TOOLS:
        missing.append((tool.kind, tool.kind, f"one of {', '.join(names.TOOLS)}", names.LATER[tool.kind]))
    if tool.retriever is not None and tool.retriever.index != "bm25":
        missing.append(("retriever.index", tool.retriever.index, "bm25", "indexes of embeddings"))
    if tool.session != "none":
        missing.append(("session", tool.session, "none", "sessions"))
    if tool.methods:
        missing.append(("methods", ", ".join(tool.methods), "a tool without methods", "tools with methods"))
    return missing


def _returns(findings: Findings, tool: ToolSpec, path: str) -> None:
    expected = "a record, such as {answer: string}"
    if tool.returns is None:
        findings.add("shape", path, found="nothing", expected=expected)
        return
    try:
        shape = shapes.parse(tool.returns)
    except shapes.ShapeError as error:
        findings.add("shape", path + error.path, found=error.found, expected=error.expected)
        return
    if not isinstance(shape, Record):
        findings.add("shape", path, found=f"`{shapes.notation(shape)}`", expected=expected)
