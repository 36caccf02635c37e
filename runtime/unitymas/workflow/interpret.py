"""The YAML interpreter, written on the code-first API: it makes the records that the same workflow as code makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from unitymas.api import shapes
from unitymas.api.errors import Author
from unitymas.api.shapes import ShapeError
from unitymas.expr.cel import Program
from unitymas.expr.errors import EvaluationError
from unitymas.workflow.agents import Agents, Tools
from unitymas.workflow.compile import Compiled, Step
from unitymas.workflow.structure import each, together, turns, within

Values = dict[str, object]


class _Leave(Exception):
    """An `until` came true: leave the innermost loop at once."""


@dataclass(slots=True)
class _Branch:
    """What one branch sees: the nodes before it, and the variables around it."""

    nodes: Values
    local: Values

    def apart(self) -> _Branch:
        """A branch that sees what this one sees, and shows it nothing."""
        return _Branch(dict(self.nodes), dict(self.local))


@dataclass(slots=True)
class Interpreter:
    """One run of a compiled workflow on one task. `run` has the signature of a code-first workflow."""

    workflow: Compiled
    hidden: Mapping[str, object]
    """The task's hidden fields, for privileged nodes only."""
    state: Values = field(default_factory=dict[str, object])
    nodes: Values = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        self.state = {name: shapes.empty(shape) for name, shape in self.workflow.state.items()}
        self.nodes = dict(self.workflow.empty)

    async def run(self, task: Mapping[str, object], agents: Agents, tools: Tools) -> object:
        """Run every node; returns the result."""
        walk = _Walk(self, task, agents, tools)
        await walk.sequence(self.workflow.steps, _Branch(self.nodes, {"turn": 0, "index": 0}))
        return self.result(task)

    def result(self, task: Mapping[str, object]) -> object:
        """The result as things stand: also of a trajectory that was cut short."""
        program = self.workflow.result
        if program is None:
            return ""
        return _evaluate(program, {"task": task, "state": self.state, "nodes": self.nodes, "turn": 0, "index": 0})


@dataclass(slots=True)
class _Walk:
    run: Interpreter
    task: Mapping[str, object]
    agents: Agents
    tools: Tools

    def value(self, program: Program, branch: _Branch) -> object:
        """An expression's value, as this branch sees things now."""
        seen = {"task": self.task, "state": self.run.state, "nodes": branch.nodes, **branch.local}
        return _evaluate(program, seen)

    async def sequence(self, steps: tuple[Step, ...], branch: _Branch) -> None:
        """Run nodes that follow each other."""
        for step in steps:
            await self.step(step, branch)

    async def step(self, step: Step, branch: _Branch) -> None:
        """Run one node with its modifiers, and store its value."""
        node = step.node
        if step.when is not None and not self.value(step.when, branch):
            _clear(step, branch)
            return
        if node.for_each is not None:
            branch.nodes[node.name] = await self.items(step, branch)
        elif node.loop is not None:
            await self.loop(step, branch)
            return
        else:
            branch.nodes[node.name] = await self.body(step, branch)
        self.after(step, branch)

    def after(self, step: Step, branch: _Branch) -> None:
        """Write the state; leave the loop where the node says so."""
        if step.writes:
            written = {name: self._stored(name, step, branch) for name in step.writes}
            self.run.state.update(written)
        if step.until is not None and self.value(step.until, branch):
            raise _Leave

    def _stored(self, name: str, step: Step, branch: _Branch) -> object:
        program, shape = step.writes[name]
        try:
            return shapes.conform(shape, self.value(program, branch))
        except ShapeError as error:
            raise Author(f"node {step.node.name}, set.{name}", str(error)) from error

    async def loop(self, step: Step, branch: _Branch) -> None:
        """Run the body turn by turn, until it is left or the turns are used up."""
        node = step.node
        outer = branch.local["turn"]
        done = 0
        try:
            for turn in turns(node.name, node.loop or 0):
                done = turn + 1
                branch.local["turn"] = turn
                branch.nodes[node.name] = {**await self.body(step, branch), "turns": done}
                self.after(step, branch)
        except _Leave:
            if step.children:
                branch.nodes[node.name] = {**_children(step, branch), "ran": True, "turns": done}
        finally:
            branch.local["turn"] = outer

    async def items(self, step: Step, branch: _Branch) -> list[Values]:
        """Run the body for every item. Returns the records, in item order."""
        spec = step.node.for_each
        assert spec is not None
        items: list[object] = list(range(spec.most))
        if step.items is not None:
            items = cast(list[object], self.value(step.items, branch))[: spec.max]

        async def one(numbered: tuple[int, object]) -> Values:
            own = branch.apart() if spec.parallel else _Branch(branch.nodes, dict(branch.local))
            own.local["index"], own.local[spec.as_] = numbered
            return await self.body(step, own)

        return await each(step.node.name, list(enumerate(items)), one, parallel=spec.parallel)

    async def body(self, step: Step, branch: _Branch) -> Values:
        """Run what the node runs, once. Returns its record."""
        node = step.node
        if node.role is not None:
            return await self.role(step, branch)
        if node.tool is not None:
            return await self.tool(step, branch)
        if not step.children:
            return {"ran": True}
        if node.loop is not None or node.for_each is not None:
            return await self.block(step, branch)  # the turn or the item is the block's place already
        with within(node.name):
            return await self.block(step, branch)

    async def block(self, step: Step, branch: _Branch) -> Values:
        """Run a block's children: in order, at once, or the one that is switched to."""
        if step.switch is not None:
            return await self.switch(step, branch)
        if step.node.parallel:
            branches = [branch.apart() for _ in step.children]
            await together(
                [
                    lambda child=child, own=own: self.step(child, own)
                    for child, own in zip(step.children, branches, strict=True)
                ]
            )
            for child, own in zip(step.children, branches, strict=True):
                for name in (child.node.name, *child.shape.exposed):
                    branch.nodes[name] = own.nodes[name]
        else:
            await self.sequence(step.children, branch)
        return {**_children(step, branch), "ran": True}

    async def switch(self, step: Step, branch: _Branch) -> Values:
        """Run the child of that name, else the child `default`; the others are empty."""
        assert step.switch is not None
        choice = self.value(step.switch, branch)
        by_name = {child.node.name: child for child in step.children}
        chosen = by_name.get(str(choice)) or by_name["default"]
        for child in step.children:
            _clear(child, branch)
        await self.step(chosen, branch)
        value = branch.nodes[chosen.node.name]
        record = cast(Values, value) if isinstance(value, dict) else {}
        output = record.get("output", "")
        return {
            **_children(step, branch),
            "ran": True,
            "choice": chosen.node.name,
            "text": record.get("text", ""),
            "output": output if isinstance(output, str) else json.dumps(output),
        }

    async def role(self, step: Step, branch: _Branch) -> Values:
        """Play a role: its prompt sees the state, what the node binds, and the node's own forEach variable."""
        node = step.node
        seen: Values = {"state": self.run.state, "turn": branch.local["turn"], "index": branch.local["index"]}
        if node.for_each is not None:
            seen[node.for_each.as_] = branch.local[node.for_each.as_]
        for name, program in step.arguments.items():
            seen[name] = self.value(program, branch)
        agent = getattr(self.agents, node.role or "")
        return dict(await agent.at(node.name)(**seen))

    async def tool(self, step: Step, branch: _Branch) -> Values:
        """Call a tool with the node's arguments; a privileged node reads the hidden fields too."""
        node = step.node
        seen = {"task": self.task, "state": self.run.state, "nodes": branch.nodes, **branch.local}
        if node.privileged:
            seen["task"] = {**self.task, **self.run.hidden}
        arguments = {name: _evaluate(program, seen) for name, program in step.arguments.items()}
        bound = getattr(self.tools, (node.tool or "").partition(".")[0])
        return dict(await bound.at(node.name)(**arguments))


def _evaluate(program: Program, seen: Mapping[str, object]) -> object:
    try:
        return program.evaluate(seen)
    except EvaluationError as error:
        raise Author("expression", str(error)) from error


def _children(step: Step, branch: _Branch) -> Values:
    """What a block's record tells: not what privileged nodes found."""
    told = (child.node.name for child in step.children if not child.node.privileged)
    return {name: branch.nodes[name] for name in told}


def _clear(step: Step, branch: _Branch) -> None:
    """Skipped: the node and everything in it has its empty value."""
    branch.nodes[step.node.name] = shapes.empty(step.shape.value)
    for name, shape in step.shape.exposed.items():
        branch.nodes[name] = shapes.empty(shape)
