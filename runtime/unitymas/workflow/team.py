"""The roles of a workflow, ready to be played: templates, output parsers and checks, compiled once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from unitymas.api import shapes
from unitymas.api.ports import Output, ParsesAside, Workers
from unitymas.api.records import Message, Sampling
from unitymas.api.shapes import Shape
from unitymas.api.workflow import Role, WorkflowSpec
from unitymas.expr.cel import Environment, Program, names
from unitymas.expr.template import Template
from unitymas.workflow.outputs import build_output, parser


@dataclass(frozen=True, slots=True)
class Player:
    """One role, ready to be played."""

    role: Role
    model: str
    system: Template | None
    prompt: Template
    output: Output | ParsesAside
    parse: Callable[[str], Awaitable[object]]
    check: Program | None
    sampling: Sampling

    def messages(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """The chat of one call. Raises EvaluationError for a name that is not bound."""
        user = Message("user", self.prompt.render(values))
        if self.system is None:
            return (user,)
        return (Message("system", self.system.render(values)), user)

    async def read(self, text: str, values: Mapping[str, object]) -> tuple[object, bool]:
        """Output and whether it parsed and passed its check; unparsed is the fallback or the shape's empty value."""
        try:
            output = await self.parse(text)
        except ValueError:
            fallback = text.strip() if self.role.output.fallback == "text" else shapes.empty(self.output.shape)
            return fallback, False
        if self.check is None:
            return output, True
        return output, bool(self.check.evaluate({**values, "output": output}))


def output_shape(role: Role) -> Shape:
    """Shape of a role's output."""
    match role.output.format:
        case "json" | "python":
            return shapes.parse(role.output.shape)
        case "tags":
            return shapes.record(**dict.fromkeys(role.output.tags or (), shapes.STRING))
        case _:
            return shapes.STRING


def role_value(role: Role) -> shapes.Record:
    """Shape of the value of a node that runs a role."""
    return shapes.record(
        output=output_shape(role), text=shapes.STRING, ok=shapes.BOOL, ran=shapes.BOOL, calls=shapes.INT
    )


def build_team(
    spec: WorkflowSpec, model_of: Mapping[str, str], *, workers: Workers | None = None
) -> Mapping[str, Player]:
    """Every role of the workflow by name; `workers` run the outputs of format `python`.

    Raises ExpressionError where a template or check does not parse, BadInput for a pattern or shape.
    """
    return {role.name: _player(role, model_of.get(role.name, ""), workers) for role in spec.roles}


def _player(role: Role, model: str, workers: Workers | None) -> Player:
    given = role.sampling
    output = build_output(role.output, path=f"spec.roles.{role.name}.output", workers=workers)
    return Player(
        role=role,
        model=model,
        system=Template(role.system) if role.system is not None else None,
        prompt=Template(role.prompt),
        output=output,
        parse=parser(output),
        check=_check(role),
        sampling=Sampling(
            max_tokens=given.max_tokens,
            temperature=given.temperature,
            stop=tuple(given.stop),
            top_p=given.top_p,
            top_k=given.top_k,
        ),
    )


def _check(role: Role) -> Program | None:
    text = role.output.check
    if text is None:
        return None
    # Typed against each node's scope when the workflow is compiled; here the role may be played from any of them.
    roots = {path[0]: shapes.ANY for path in names(text)}
    return Environment.of({**roots, "output": output_shape(role)}).compile(text)
