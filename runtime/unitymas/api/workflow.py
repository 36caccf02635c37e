"""MultiAgentWorkflow: roles, prompts, tools and the graph that they run in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from unitymas.api import shapes
from unitymas.api.base import Entrypoint, Expression, Name, Notation, Once, Spec, Word
from unitymas.api.tool import Tool

LEVELS = 3
"""Node lists may be this deep, the outermost included."""


class Input(Spec):
    """The fields of a task. Hidden ones reach no prompt: only rewards and privileged nodes read them."""

    visible: list[Name] | dict[Name, Notation] = Field(default_factory=list[Name])
    """Names, or names with their shapes."""
    hidden: list[Name] | dict[Name, Notation] = Field(default_factory=list[Name])
    """Names, or names with their shapes."""

    @staticmethod
    def _shapes(fields: list[str] | dict[str, Any]) -> dict[str, shapes.Shape]:
        if isinstance(fields, list):
            return dict.fromkeys(fields, shapes.ANY)
        return {name: shapes.parse(notation, f".{name}") for name, notation in fields.items()}

    def visible_shapes(self) -> dict[str, shapes.Shape]:
        """Shape of each visible field; `any` where none is given. Raises ShapeError."""
        return self._shapes(self.visible)

    def hidden_shapes(self) -> dict[str, shapes.Shape]:
        """Shape of each hidden field; `any` where none is given. Raises ShapeError."""
        return self._shapes(self.hidden)


class Output(Spec):
    """How a reply becomes the role's output."""

    format: Literal["raw", "tag", "tags", "json", "regex", "choice", "python"] = "raw"
    """`raw` is the whole reply; the others parse it, and a reply that does not parse has `ok` false."""
    tag: str | None = Field(default=None, pattern=r"^[A-Za-z_][\w-]*$")
    """For `tag`: its name."""
    tags: Annotated[list[Name], Once] | None = Field(default=None, min_length=1)
    """For `tags`: their names; the output is a record of strings."""
    pattern: str | None = None
    """For `regex`: the output is the first group, or the match where there is none."""
    choices: Annotated[list[Word], Once] | None = Field(default=None, min_length=1)
    """For `choice`: the words allowed."""
    shape: Notation | None = None
    """For `json` and `python`: the shape of the value."""
    entrypoint: str | None = None
    """For `python`: `module:function` from text to value; raising ValueError means unparsed."""
    fallback: Literal["empty", "text"] = "empty"
    """What an unparsed reply's output is: the type's empty value, or the text (string outputs only)."""
    check: Expression | None = None
    """CEL over `output` and what the node sees; false means `ok` is false."""

    @model_validator(mode="after")
    def _fields_of_the_format(self) -> Output:
        needs = {"tag": "tag", "tags": "tags", "regex": "pattern", "choice": "choices", "python": "entrypoint"}
        wanted = needs.get(self.format)
        if wanted and getattr(self, wanted) is None:
            raise ValueError(f"format {self.format} needs the field `{wanted}`")
        if self.format in ("json", "python") and self.shape is None:
            raise ValueError(f"format {self.format} needs the field `shape`")
        stray = [field for field in needs.values() if getattr(self, field) is not None and field != wanted]
        if stray:
            raise ValueError(f"format {self.format} does not use the field `{stray[0]}`")
        if self.shape is not None and self.format not in ("json", "python"):
            raise ValueError(f"format {self.format} does not use the field `shape`")
        if self.fallback == "text" and self.format in ("tags", "json", "python"):
            raise ValueError(f"fallback text needs a string output; format {self.format} has none")
        return self


class SamplingSpec(Spec):
    """How a role's calls sample."""

    max_tokens: int = Field(default=256, gt=0)
    """Most tokens of one reply."""
    temperature: float = Field(default=1.0, ge=0)
    """0 is greedy."""
    stop: list[Word] = Field(default_factory=list[Word], max_length=8)
    """Texts that end a reply; the end-of-turn token always does."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Refused on trained roles: it would bias the importance ratio."""
    top_k: int = Field(default=0, ge=0)
    """0 is off. Refused on trained roles."""


class Role(Spec):
    """A logical agent: a function from what its node binds to an output."""

    name: Name
    system: str | None = Field(default=None, max_length=65536)
    """System prompt, a Jinja2 template."""
    prompt: str = Field(max_length=65536)
    """Jinja2 template; sees task, state, turn and what its node binds."""
    output: Output = Field(default_factory=Output)
    """How the reply is parsed."""
    sampling: SamplingSpec = Field(default_factory=SamplingSpec)
    """How the reply is sampled."""
    memory: Literal["none", "conversation"] = "none"
    """`conversation`: one append-only chat per role (inside a forEach, per item)."""
    tools: list[str] = Field(default_factory=list[str])
    """Tools that the model calls itself, inside one visit."""
    max_calls: int = Field(default=1, ge=1, le=1000)
    """Most generations of one visit."""


class ForEach(Spec):
    """Repeat a node over items; the node's value is then the list of results."""

    items: Expression | None = None
    """CEL list."""
    times: int | None = Field(default=None, ge=0, le=1024)
    """A fixed number of items, 0, 1, ..."""
    as_: Name = Field(default="item", alias="as")
    """What the item is called inside."""
    max: int = Field(default=64, ge=1, le=1024)
    """Items beyond this are left out."""
    parallel: bool = False
    """Run the items at once; they see neither each other nor may they `set`."""

    @model_validator(mode="after")
    def _items_or_times(self) -> ForEach:
        if (self.items is None) == (self.times is None):
            raise ValueError("exactly one of items and times")
        return self

    @property
    def most(self) -> int:
        """The most items it can have."""
        return self.max if self.times is None else self.times


class Node(Spec):
    """One node: one body (`role`, `tool`, `nodes`, or only `set`) and its modifiers."""

    name: Name
    role: Name | None = None
    """Runs a role."""
    tool: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$")
    """Runs a tool, `name` or `name.method`."""
    nodes: list[Node] | None = Field(default=None, min_length=1, max_length=64)
    """A block."""
    when: Expression | None = None
    """Asked once, before; false means that the node is skipped and its value is empty."""
    with_: dict[Name, Expression] = Field(default_factory=dict[Name, Expression], alias="with")
    """Arguments of the role or tool."""
    set: dict[Name, Expression] = Field(default_factory=dict[Name, Expression])
    """State written afterwards."""
    loop: int | None = Field(default=None, ge=1, le=1024)
    """Repeat at most so often."""
    until: Expression | None = None
    """Leaves the innermost loop at once when true."""
    for_each: ForEach | None = None
    switch: Expression | None = None
    """Runs the child of that name, else the child `default`."""
    parallel: bool = False
    """Run the block's children at once."""
    privileged: bool = False
    """May read hidden fields; only rewards may see its result."""

    @model_validator(mode="after")
    def _one_body(self) -> Node:
        bodies = [body for body in ("role", "tool", "nodes") if getattr(self, body) is not None]
        if len(bodies) > 1 or (not bodies and not self.set):
            raise ValueError(f"one body: role, tool, nodes, or only set; found {', '.join(bodies) or 'none'}")
        if self.loop is not None and self.for_each is not None:
            raise ValueError("loop or forEach, not both; nest them")
        if self.nodes is None and (self.switch is not None or self.parallel):
            raise ValueError("switch and parallel belong to a node with nodes")
        if self.switch is not None and self.parallel:
            raise ValueError("switch runs one child; parallel means nothing beside it")
        if self.with_ and self.nodes is not None:
            raise ValueError("with belongs to a node that runs a role or a tool")
        return self


class PythonWorkflow(Entrypoint):
    """A workflow as code: `async def run(task, agents, tools)`."""

    max_calls: int = Field(ge=1, le=10000)
    """Most calls of one trajectory; one more fails the run."""


class WorkflowSpec(Spec):
    """Roles, tools and the graph that they run in."""

    input: Input
    """Fields of a task."""
    state: dict[Name, Notation] = Field(default_factory=dict[Name, Notation])
    """State fields by shape, empty at first."""
    roles: list[Role] = Field(min_length=1, max_length=64)
    tools: list[Tool] = Field(default_factory=list[Tool], max_length=64)
    nodes: list[Node] | None = Field(default=None, min_length=1, max_length=64)
    """In order; values are CEL."""
    result: Expression | None = None
    """The trajectory's result."""
    python: PythonWorkflow | None = None
    """The workflow as code, in place of state, nodes and result."""

    @model_validator(mode="after")
    def _nodes_or_python(self) -> WorkflowSpec:
        if (self.nodes is None) == (self.python is None):
            raise ValueError("exactly one of nodes and python")
        if self.python is not None and (self.state or self.result is not None):
            raise ValueError("python replaces state, nodes and result")
        return self

    def role(self, name: str) -> Role:
        """The role of a name. Raises KeyError."""
        return next((role for role in self.roles if role.name == name), None) or _missing(name)

    def tool(self, name: str) -> Tool:
        """The tool of a name, a method's part left off. Raises KeyError."""
        first = name.partition(".")[0]
        return next((tool for tool in self.tools if tool.name == first), None) or _missing(name)


def _missing(name: str) -> Any:
    raise KeyError(name)
