"""The most calls that one trajectory can make: every workflow ends, and this is when."""

from __future__ import annotations

from collections.abc import Sequence

from unitymas.api.workflow import Node, WorkflowSpec


def most_calls(spec: WorkflowSpec) -> int:
    """Upper bound on generations of one trajectory; of a code-first workflow what it declares."""
    if spec.python is not None:
        return spec.python.max_calls
    return _sequence(spec, spec.nodes or [])


def _sequence(spec: WorkflowSpec, nodes: Sequence[Node]) -> int:
    return sum(_node(spec, node) for node in nodes)


def _node(spec: WorkflowSpec, node: Node) -> int:
    calls = 0
    if node.role is not None:
        calls = max((role.max_calls for role in spec.roles if role.name == node.role and role.tools), default=1)
    elif node.nodes:
        counts = [_node(spec, child) for child in node.nodes]
        calls = max(counts) if node.switch is not None else sum(counts)
    calls *= node.loop or 1
    return calls * (node.for_each.most if node.for_each is not None else 1)
