"""What the expressions of a workflow must not read: hidden fields, and the nodes that may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unitymas.api.errors import Finding
from unitymas.api.shapes import Record
from unitymas.api.workflow import WorkflowSpec
from unitymas.expr.cel import names
from unitymas.expr.errors import ExpressionError
from unitymas.expr.paths import Path
from unitymas.expr.scope import Scope
from unitymas.workflow.declared import all_nodes

HINT = "only rewards and nodes with privileged: true read hidden fields"


@dataclass(frozen=True, slots=True)
class Fence:
    """Keeps hidden fields, and what was made of them, out of every expression that a prompt could see."""

    visible: tuple[str, ...]
    hidden: frozenset[str]
    secret: frozenset[str]
    """Names of the privileged nodes."""

    @staticmethod
    def of(spec: WorkflowSpec) -> Fence:
        """The fence of a workflow."""
        secret = frozenset(node.name for node, _ in all_nodes(spec.nodes or ()) if node.privileged)
        return Fence(tuple(spec.input.visible), frozenset(spec.input.hidden), secret)

    def broken(self, text: str, path: str, scope: Scope) -> Iterator[Finding]:
        """A finding for each hidden field or privileged node that an expression reads, unless the scope shows it.

        Also for `nodes` as a whole, which is all of them. An expression that cannot be read is another's finding.
        """
        try:
            read = sorted(names(text))
        except ExpressionError:
            return
        task = scope.variables.get("task")
        shown = task.names() if isinstance(task, Record) else ()
        for name in _second("task", read):
            if name in self.hidden and name not in shown:
                expected = f"visible fields: {', '.join(self.visible) or 'there are none'}"
                yield Finding("hidden-field", path, f"`task.{name}`, a hidden field", expected, HINT)
        for name in _second("nodes", read):
            if name in self.secret and scope.node(name) is None:
                found = f"`nodes.{name}`, a privileged node"
                yield Finding("hidden-field", path, found, "a node that reads no hidden field", "rewards may read it")
        if ("nodes",) in read:
            yield Finding("expression", path, "`nodes`, all at once", "a node, such as `nodes.a`")


def _second(root: str, paths: list[Path]) -> list[str]:
    return list(dict.fromkeys(path[1] for path in paths if path[0] == root and len(path) > 1))
