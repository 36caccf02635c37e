"""What a workflow declares: the shapes of its input and state, the names of its nodes, what may be stored where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from unitymas.api import shapes
from unitymas.api.errors import Findings
from unitymas.api.shapes import ListOf, Record, Shape, ShapeError
from unitymas.api.workflow import Node, WorkflowSpec

DEFAULT = "default"
"""The child that a switch runs when it names no other."""


def shapes_of_input(
    spec: WorkflowSpec, findings: Findings
) -> tuple[dict[str, Shape], dict[str, Shape], dict[str, Shape]]:
    """Shapes of the visible fields, the hidden ones and the state, with a finding for each that cannot be read."""
    visible = _shapes(spec.input.visible, "spec.input.visible", findings)
    hidden = _shapes(spec.input.hidden, "spec.input.hidden", findings)
    for name in [name for name in hidden if name in visible]:
        findings.add("input", f"spec.input.hidden.{name}", found="a field that is visible too", expected="one of both")
        del hidden[name]
    return visible, hidden, _shapes(spec.state, "spec.state", findings)


def _shapes(fields: Sequence[str] | Mapping[str, object], path: str, findings: Findings) -> dict[str, Shape]:
    """Shape of each field; `any`, so that nothing else is found wrong, where none is given or it cannot be read."""
    read: dict[str, Shape] = dict.fromkeys(fields, shapes.ANY)
    for name, notation in fields.items() if isinstance(fields, Mapping) else ():
        try:
            read[name] = shapes.parse(notation)
        except ShapeError as error:
            findings.add("shape", f"{path}.{name}{error.path}", found=error.found, expected=error.expected)
    return read


def all_nodes(nodes: Sequence[Node], path: str = "spec.nodes") -> Iterator[tuple[Node, str]]:
    """Every node with its path, outer ones first."""
    for number, node in enumerate(nodes):
        yield node, f"{path}[{number}]"
        yield from all_nodes(node.nodes or (), f"{path}[{number}].nodes")


def check_names(spec: WorkflowSpec, findings: Findings) -> None:
    """A finding for every node with an earlier one's name; each switch, and nothing else, may have one `default`."""
    nodes = list(all_nodes(spec.nodes or ()))
    switched = {id(child): id(node) for node, _ in nodes if node.switch is not None for child in node.nodes or ()}
    seen: Counter[tuple[str, int]] = Counter()
    for node, path in nodes:
        at = f"{path}.name"
        if node.name == DEFAULT and id(node) not in switched:
            findings.add("switch-default", at, found="`default` outside a switch", expected="another name")
            continue
        once = (node.name, switched[id(node)] if node.name == DEFAULT else 0)
        seen[once] += 1
        if seen[once] == 2:  # once, however often
            findings.add("duplicate-name", at, found=f"`{node.name}` a second time", expected="a name of its own")


def check_privileged(spec: WorkflowSpec, findings: Findings) -> None:
    """What a privileged node learns goes nowhere but to rewards: it calls a tool, stores nothing, decides nothing."""
    only = "only rewards may see its result"
    for node, path in all_nodes(spec.nodes or ()):
        if not node.privileged:
            continue
        if node.tool is None:
            what = f"a node that runs role `{node.role}`" if node.role else "a node that calls no tool"
            findings.add("hidden-in-prompt", f"{path}.privileged", found=what, expected="a node that calls a tool")
            continue
        for name in node.set:
            findings.add("hidden-in-prompt", f"{path}.set.{name}", found="a privileged `set`", expected=f"none: {only}")
        if node.until is not None:
            findings.add("hidden-in-prompt", f"{path}.until", found="a privileged `until`", expected=f"none: {only}")


def stores(given: Shape, wanted: Shape) -> bool:
    """Whether a value of one shape may be stored as another: extra record fields are dropped, ints become doubles."""
    if shapes.ANY in (given, wanted):
        return True
    match given, wanted:
        case ListOf(item), ListOf(into):
            return stores(item, into)
        case Record(), Record(fields):
            have = [(given.get(name), shape) for name, shape in fields]
            return all(found is not None and stores(found, shape) for found, shape in have)
        case _:
            return given == wanted or (given == shapes.INT and wanted == shapes.NUMBER)
