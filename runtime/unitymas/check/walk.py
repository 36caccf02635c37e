"""Going through a workflow's nodes, with their paths and what repeats them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unitymas.api.workflow import Node, WorkflowSpec
from unitymas.expr.scope import Scope
from unitymas.workflow.compile import Compiled, Step


@dataclass(frozen=True, slots=True)
class Placed:
    """A node where it stands."""

    node: Node
    path: str
    repeats: Mapping[str, int]
    """Most turns or items by the name of each loop or forEach around the node, its own too."""


def placed(spec: WorkflowSpec) -> Iterator[Placed]:
    """Every node, outer ones first."""
    yield from _placed(spec.nodes or (), "spec.nodes", {})


def _placed(nodes: Sequence[Node], path: str, around: Mapping[str, int]) -> Iterator[Placed]:
    for number, node in enumerate(nodes):
        most = node.loop if node.for_each is None else node.for_each.most
        repeats = around if most is None else {**around, node.name: most}
        yield Placed(node, f"{path}[{number}]", repeats)
        yield from _placed(node.nodes or (), f"{path}[{number}].nodes", repeats)


def steps(compiled: Compiled) -> Iterator[Step]:
    """Every step, outer ones first."""
    waiting = list(reversed(compiled.steps))
    while waiting:
        step = waiting.pop()
        yield step
        waiting += reversed(step.children)


def plays(compiled: Compiled, role: str) -> list[tuple[str, Scope]]:
    """The nodes that run a role, with what its prompt sees there."""
    return [
        (step.node.name, step.prompt_scope)
        for step in steps(compiled)
        if step.node.role == role and step.prompt_scope is not None
    ]
