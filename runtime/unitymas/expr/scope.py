"""What a node may see: the variables of its expressions and prompts, by shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from unitymas.api.shapes import Record, Shape
from unitymas.expr.cel import Environment, Program

NODES = "nodes"


def _frozen(variables: Mapping[str, Shape]) -> Mapping[str, Shape]:
    return MappingProxyType(dict(variables))


@dataclass(frozen=True, slots=True)
class Scope:
    """Variables by name, each with its shape. Frozen: every builder returns another scope.

    `nodes` is one record whose fields are the nodes seen; a scope without nodes has no variable `nodes`.
    """

    variables: Mapping[str, Shape] = field(default_factory=lambda: _frozen({}))

    def with_variable(self, name: str, shape: Shape) -> Scope:
        """The scope with a variable added, or its shape replaced."""
        return Scope(_frozen({**self.variables, name: shape}))

    def with_node(self, name: str, shape: Shape) -> Scope:
        """The scope that also sees a node, as `nodes.<name>`."""
        return self.with_variable(NODES, Record(tuple({**self._nodes(), name: shape}.items())))

    def node(self, name: str) -> Shape | None:
        """The shape of a node's value, or None when the scope does not see it."""
        return self._nodes().get(name)

    def compile(self, text: str) -> Program:
        """A CEL expression, checked against this scope. Raises ExpressionError."""
        return Environment.of(self.variables).compile(text)

    def _nodes(self) -> dict[str, Shape]:
        nodes = self.variables.get(NODES)
        return dict(nodes.fields) if isinstance(nodes, Record) else {}
