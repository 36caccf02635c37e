"""A workflow ready to be run, and what its rewards may see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from unitymas.api import shapes
from unitymas.api.shapes import Record, Shape
from unitymas.api.workflow import Node, WorkflowSpec
from unitymas.expr.cel import Program
from unitymas.expr.scope import Scope
from unitymas.workflow.team import output_shape
from unitymas.workflow.values import NodeShape


@dataclass(frozen=True, slots=True)
class Step:
    """One node, ready to be run."""

    node: Node
    shape: NodeShape
    when: Program | None
    items: Program | None
    switch: Program | None
    until: Program | None
    arguments: Mapping[str, Program]
    writes: Mapping[str, tuple[Program, Shape]]
    children: tuple[Step, ...]
    prompt_scope: Scope | None
    """What the role's prompt may see; None where no role runs."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A workflow ready to be run; what its rewards may see of it."""

    spec: WorkflowSpec
    steps: tuple[Step, ...]
    result: Program | None
    state: Mapping[str, Shape]
    nodes: Mapping[str, Shape]
    """Every node that a reward sees by name, privileged ones too."""
    empty: Mapping[str, object]
    """Value of every node before it has run."""
    visits: Mapping[str, Record]
    """Value of one visit, by node name."""


class Seen(TypedDict):
    """What rewards may see of a workflow, by shape: the keywords of `rewards.compile_rewards`. None: anything."""

    task: Mapping[str, Shape] | None
    nodes: Mapping[str, Shape] | None
    state: Mapping[str, Shape] | None
    result: Shape
    role_outputs: Mapping[str, Shape] | None
    node_values: Mapping[str, Record] | None


def seen_by_rewards(compiled: Compiled) -> Seen:
    """Hidden fields and privileged nodes too. The nodes of a workflow as code are known when it has run."""
    given = compiled.spec.input
    coded = compiled.spec.python is not None
    return {
        "task": {**given.visible_shapes(), **given.hidden_shapes()},
        "nodes": None if coded else compiled.nodes,
        "state": compiled.state,
        "result": compiled.result.shape if compiled.result is not None else shapes.ANY,
        "role_outputs": {role.name: output_shape(role) for role in compiled.spec.roles},
        "node_values": None if coded else compiled.visits,
    }
