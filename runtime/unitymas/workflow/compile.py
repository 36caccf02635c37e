"""From a workflow's spec to steps that can be run: every expression checked against what its node may see.

What a node may see: the task's visible fields, the state, the nodes before it in its own branch (in a loop the last
turn's too), `turn`, `index`, the variables of the forEach around it. Parallel branches see nothing of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unitymas.api import shapes
from unitymas.api.errors import Findings
from unitymas.api.shapes import ListOf, Record, Shape, ShapeError
from unitymas.api.workflow import LEVELS, Node, WorkflowSpec
from unitymas.expr.cel import Program
from unitymas.expr.errors import ExpressionError, did_you_mean
from unitymas.expr.scope import Scope
from unitymas.workflow.compiled import Compiled, Seen, Step, seen_by_rewards
from unitymas.workflow.declared import all_nodes, check_names, check_privileged, shapes_of_input, stores
from unitymas.workflow.fence import Fence
from unitymas.workflow.values import NodeShape, node_shape

__all__ = ["Compiled", "Seen", "Step", "compile_workflow", "seen_by_rewards"]

BOOLEAN, TEXT, LIST = "a bool", "a string", "a list"


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the walk stands."""

    path: str
    depth: int = 1
    loops: int = 0
    """Loops that `until` can leave from here: those in this branch."""
    parallel: bool = False


@dataclass(slots=True)
class _Compiler:
    spec: WorkflowSpec
    findings: Findings
    state: Mapping[str, Shape]
    hidden: Mapping[str, Shape]
    visible: Mapping[str, Shape]
    fence: Fence
    privileged: dict[str, Shape] = field(default_factory=dict[str, Shape])
    visits: dict[str, Record] = field(default_factory=dict[str, Record])
    empty: dict[str, object] = field(default_factory=dict[str, object])

    def expression(self, text: str | None, path: str, scope: Scope, want: str = "") -> Program | None:
        """The program, or a finding."""
        if text is None:
            return None
        if wrong := list(self.fence.broken(text, path, scope)):
            self.findings.items += wrong
            return None
        try:
            program = scope.compile(text)
        except ExpressionError as error:
            self.findings.add("expression", path, found=error.found, expected=error.expected, hint=error.hint)
            return None
        if want and not _fits(program.shape, want):
            self.findings.add(
                "expression", path, found=f"`{text}`, which is {shapes.notation(program.shape)}", expected=want
            )
        return program

    def sequence(self, nodes: Sequence[Node], scope: Scope, frame: _Frame, *, apart: bool) -> tuple[list[Step], Scope]:
        """Compile nodes that follow each other, or (`apart`) that do not see each other."""
        if frame.depth > LEVELS:
            self.findings.add(
                "nesting", frame.path, found=f"{frame.depth} levels of nodes", expected=f"at most {LEVELS}"
            )
        steps: list[Step] = []
        after = scope
        for number, node in enumerate(nodes):
            step = self.node(node, scope if apart else after, replace(frame, path=f"{frame.path}[{number}]"))
            if step is None:  # has its finding; what reads it needs none
                for child, _ in all_nodes([node]):
                    after = after.with_node(child.name, shapes.ANY)
                continue
            steps.append(step)
            if node.privileged:
                self.privileged[node.name] = step.shape.value
                continue
            after = self._seen(after, node.name, step.shape)
        return steps, after

    def _seen(self, scope: Scope, name: str, shape: NodeShape) -> Scope:
        for child, value in shape.exposed.items():
            if child not in self.fence.secret:
                scope = scope.with_node(child, value)
        return scope.with_node(name, shape.value)

    def node(self, node: Node, scope: Scope, frame: _Frame) -> Step | None:
        """Compile one node. None where what it runs does not exist, which is a finding."""
        shape = self._shape(node, frame.path)
        if shape is None:
            return None
        self.visits[node.name] = shape.single
        self.empty[node.name] = shapes.empty(shape.value)
        path = frame.path
        when = self.expression(node.when, f"{path}.when", scope, BOOLEAN)
        items, inner = self._items(node, path, scope)
        if node.loop is not None:  # inside, the last turn's values are seen too, empty in the first turn
            inner = self._seen(inner, node.name, shape)
        loops = frame.loops + (1 if node.loop is not None else 0)
        apart = node.parallel or (node.for_each is not None and node.for_each.parallel)
        body = replace(
            frame,
            path=f"{path}.nodes",
            depth=frame.depth + 1,
            loops=0 if apart else loops,
            parallel=frame.parallel or apart,
        )
        switch = self.expression(node.switch, f"{path}.switch", inner, TEXT)
        children: list[Step] = []
        if node.nodes:
            children, _ = self.sequence(node.nodes, inner, body, apart=node.parallel or node.switch is not None)
            self._switch_has_default(node, path)
        arguments = self._arguments(node, path, inner)
        after = self._seen(scope, node.name, shape)
        return Step(
            node=node,
            shape=shape,
            when=when,
            items=items,
            switch=switch,
            until=self._until(node, path, after, loops),
            arguments=arguments,
            writes=self._writes(node, path, after, frame),
            children=tuple(children),
            prompt_scope=self._prompt_scope(node, inner, arguments),
        )

    def _shape(self, node: Node, path: str) -> NodeShape | None:
        try:
            return node_shape(self.spec, node)
        except (KeyError, ShapeError):
            pass
        roles, tools = [role.name for role in self.spec.roles], [tool.name for tool in self.spec.tools]
        for name, known, what in ((node.role, roles, "role"), ((node.tool or "").partition(".")[0], tools, "tool")):
            if name and name not in known:
                self.findings.add(
                    f"unknown-{what}",
                    f"{path}.{what}",
                    found=f"`{name}`",
                    expected=f"a {what} of spec.{what}s: {', '.join(known) or 'there are none'}",
                    hint=did_you_mean(name, known),
                )
                return None
        method = (node.tool or "").partition(".")[2]
        if method and method not in self.spec.tool(node.tool or "").methods:
            methods = list(self.spec.tool(node.tool or "").methods)
            expected = "a method of the tool: " + (", ".join(methods) or "it declares none")
            hint = did_you_mean(method, methods)
            self.findings.add("unknown-tool", f"{path}.tool", found=f"`{node.tool}`", expected=expected, hint=hint)
        # Otherwise a child, or a role's or tool's shape, is at fault, and has its own finding.
        for number, child in enumerate(node.nodes or ()):
            self._shape(child, f"{path}.nodes[{number}]")
        return None

    def _items(self, node: Node, path: str, scope: Scope) -> tuple[Program | None, Scope]:
        each = node.for_each
        if each is None:
            return None, scope
        if each.items is None:
            return None, scope.with_variable(each.as_, shapes.INT)
        program = self.expression(each.items, f"{path}.forEach.items", scope, LIST)
        item = program.shape.item if program is not None and isinstance(program.shape, ListOf) else shapes.ANY
        return program, scope.with_variable(each.as_, item)

    def _switch_has_default(self, node: Node, path: str) -> None:
        if node.switch is not None and "default" not in {child.name for child in node.nodes or ()}:
            self.findings.add(
                "switch-default",
                f"{path}.nodes",
                found="no child named `default`",
                expected="one, for a value that names no child: an unparsed output is the empty string",
            )

    def _arguments(self, node: Node, path: str, scope: Scope) -> dict[str, Program]:
        if node.privileged:
            scope = scope.with_variable("task", Record((*self.visible.items(), *self.hidden.items())))
        programs = {name: self.expression(text, f"{path}.with.{name}", scope) for name, text in node.with_.items()}
        return {name: program for name, program in programs.items() if program is not None}

    def _prompt_scope(self, node: Node, inner: Scope, arguments: Mapping[str, Program]) -> Scope | None:
        if node.role is None:
            return None
        seen = Scope().with_variable("task", inner.variables["task"])
        seen = seen.with_variable("state", Record(tuple(self.state.items())))
        for name in ("turn", "index"):
            seen = seen.with_variable(name, shapes.INT)
        seen = seen.with_variable("fresh", shapes.BOOL)
        if node.for_each is not None:
            seen = seen.with_variable(node.for_each.as_, inner.variables[node.for_each.as_])
        for name in node.with_:  # an argument in error is known by name all the same
            seen = seen.with_variable(name, arguments[name].shape if name in arguments else shapes.ANY)
        return seen

    def _until(self, node: Node, path: str, scope: Scope, loops: int) -> Program | None:
        if node.until is not None and not loops:
            self.findings.add(
                "until-outside-loop", f"{path}.until", found="no loop in this branch", expected="a loop to leave"
            )
        return self.expression(node.until, f"{path}.until", scope, BOOLEAN)

    def _writes(self, node: Node, path: str, scope: Scope, frame: _Frame) -> dict[str, tuple[Program, Shape]]:
        writes: dict[str, tuple[Program, Shape]] = {}
        for name, text in node.set.items():
            at = f"{path}.set.{name}"
            if frame.parallel:
                self.findings.add(
                    "set-in-parallel", at, found="a parallel branch", expected="set after the branches have joined"
                )
            if name not in self.state:
                self.findings.add(
                    "unknown-state",
                    at,
                    found=f"`{name}`",
                    expected=f"a field of spec.state: {', '.join(self.state) or 'there are none'}",
                    hint=did_you_mean(name, self.state),
                )
                continue
            program = self.expression(text, at, scope)
            if program is None:
                continue
            if not stores(program.shape, self.state[name]):
                self.findings.add(
                    "state-shape",
                    at,
                    found=f"`{text}`, which is {shapes.notation(program.shape)}",
                    expected=shapes.notation(self.state[name]),
                )
            writes[name] = (program, self.state[name])
        return writes


def _fits(shape: Shape, want: str) -> bool:
    if shape == shapes.ANY:
        return True
    return {BOOLEAN: shape == shapes.BOOL, TEXT: shape == shapes.STRING, LIST: isinstance(shape, ListOf)}[want]


def compile_workflow(spec: WorkflowSpec) -> tuple[Compiled, Findings]:
    """Every expression compiled against its scope, with everything found wrong. Paths start at `spec`."""
    findings = Findings()
    visible, hidden, state = shapes_of_input(spec, findings)
    compiler = _Compiler(spec, findings, state, hidden, visible, Fence.of(spec))
    scope = Scope().with_variable("task", Record(tuple(visible.items())))
    scope = scope.with_variable("state", Record(tuple(state.items())))
    scope = scope.with_variable("nodes", Record(()))
    for name in ("turn", "index"):
        scope = scope.with_variable(name, shapes.INT)
    check_names(spec, findings)
    check_privileged(spec, findings)
    steps, after = compiler.sequence(spec.nodes or [], scope, _Frame("spec.nodes"), apart=False)
    result = compiler.expression(spec.result, "spec.result", after)
    nodes = after.variables["nodes"]
    seen = dict(nodes.fields) if isinstance(nodes, Record) else {}
    compiled = Compiled(
        spec=spec,
        steps=tuple(steps),
        result=result,
        state=state,
        nodes={**seen, **compiler.privileged},
        empty=compiler.empty,
        visits=compiler.visits,
    )
    return compiled, findings
