"""The tools of a workflow: something that a node, or a role itself, can call."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from unitymas.api.base import Duration, Entrypoint, Expression, Label, Name, Notation, Spec


class RetrieverSpec(Spec):
    """Passages of a corpus for a query."""

    corpus: Label
    """A source of the run: JSONL rows of id, title, text."""
    index: Literal["bm25", "dense", "hybrid"] = "bm25"
    """How passages are ranked."""
    top_k: int = Field(default=5, ge=1, le=1000)
    """Most passages of one answer."""


class CodeSpec(Spec):
    """Runs a program on tests, sandboxed."""

    language: Literal["python"] = "python"


class PythonSpec(Entrypoint):
    """A function, or a class where the tool has a session or methods."""


class McpSpec(Spec):
    """A server of the Model Context Protocol."""

    url: str | None = None
    command: list[str] | None = None


class SandboxSpec(Spec):
    """A machine of its own for one trajectory."""

    image: str
    """Image name, or a CEL expression over the task."""
    workdir: str = "/"


class HttpSpec(Spec):
    """One HTTP request per call."""

    url: str
    method: Literal["GET", "POST"] = "POST"


class Tool(Spec):
    """Something that a node, or a role itself, can call. Exactly one kind."""

    name: Name
    retriever: RetrieverSpec | None = None
    code: CodeSpec | None = None
    python: PythonSpec | None = None
    mcp: McpSpec | None = None
    sandbox: SandboxSpec | None = None
    http: HttpSpec | None = None
    session: Literal["none", "trajectory"] = "none"
    """`trajectory`: opened at first use, always closed."""
    open: dict[Name, Expression] = Field(default_factory=dict[Name, Expression])
    """Arguments for opening the session."""
    returns: Notation | None = None
    """Shape of the result, for http, python and mcp."""
    methods: dict[Name, Notation] = Field(default_factory=dict[Name, Notation])
    """Shape of the result of each method."""
    timeout_s: Duration | None = Field(default=None, alias="timeout")
    """Of one call; the run's `limits.tool` where absent."""

    @property
    def kind(self) -> str:
        """Which of the kinds this tool is."""
        return next(kind for kind in TOOL_KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> Tool:
        given = [kind for kind in TOOL_KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(TOOL_KINDS)}; found {', '.join(given) or 'none'}")
        return self


TOOL_KINDS = ("retriever", "code", "python", "mcp", "sandbox", "http")
