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
from unitymas.workflow.compiled import Compiled, Step
from unitymas.workflow.structure import each, together, turns, within

Values = dict[str, object]
Outcome = tuple[Values, bool]
"""A node's record, and whether an `until` inside came true: then the innermost loop is left at once."""


class _Left(Exception):
    """The innermost loop is left from inside a forEach."""


@dataclass(slots=True)
class _Branch:
    """What the expressions of one branch see: the task, the state, the nodes before, the variables around."""

    seen: Values
    nodes: Values
    """`nodes` of `seen`."""

    @staticmethod
    def of(seen: Mapping[str, object], nodes: Mapping[str, object], local: Mapping[str, object]) -> _Branch:
        """A branch that sees these, `local` first, and shows them nothing."""
        own = dict(nodes)
        return _Branch({**seen, **local, "nodes": own}, own)


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
        seen: Values = {"task": task, "state": self.state, "nodes": self.nodes, "turn": 0, "index": 0}
        walk = _Walk(self.hidden, self.state, agents, tools)
        await walk.sequence(self.workflow.steps, _Branch(seen, self.nodes))
        program = self.workflow.result
        return "" if program is None else _evaluate(program, seen, "result")

    def cut_short(self, task: Mapping[str, object]) -> object:
        """The result as things stand; empty where they do not give one."""
        program = self.workflow.result
        if program is None:
            return ""
        try:
            return program.evaluate({"task": task, "state": self.state, "nodes": self.nodes, "turn": 0, "index": 0})
        except EvaluationError:
            return shapes.empty(program.shape)


@dataclass(slots=True)
class _Walk:
    hidden: Mapping[str, object]
    state: Values
    agents: Agents
    tools: Tools

    async def sequence(self, steps: tuple[Step, ...], branch: _Branch) -> bool:
        """Run nodes that follow each other. Returns whether the innermost loop is left."""
        for step in steps:
            if await self.step(step, branch):
                return True
        return False

    async def step(self, step: Step, branch: _Branch) -> bool:
        """Run one node with its modifiers, and store its value. Returns whether the innermost loop is left."""
        node = step.node
        if step.when is not None and not _value(step, step.when, branch):
            _clear(step, branch)
            return False
        if node.loop is not None:
            await self.loop(step, branch)
            return False
        left = False
        if node.for_each is not None:
            branch.nodes[node.name], left = await self.items(step, branch)
        else:
            branch.nodes[node.name], left = await self.body(step, branch)
        return left or self.after(step, branch)

    def after(self, step: Step, branch: _Branch) -> bool:
        """Write the state. Returns whether the node's `until` says to leave the loop."""
        if step.writes:
            self.state.update({name: _stored(step, name, branch) for name in step.writes})
        return step.until is not None and bool(_value(step, step.until, branch))

    async def loop(self, step: Step, branch: _Branch) -> None:
        """Run the body turn by turn, until it is left or the turns are used up."""
        node, seen = step.node, branch.seen
        outer = seen["turn"]
        for turn in turns(node.name, node.loop or 0):
            seen["turn"] = turn
            record, left = await self.body(step, branch)
            branch.nodes[node.name] = {**record, "turns": turn + 1}
            if left or self.after(step, branch):
                break
        seen["turn"] = outer

    async def items(self, step: Step, branch: _Branch) -> tuple[list[Values], bool]:
        """Run the body for every item. Returns the records in item order, of those that were begun."""
        spec = step.node.for_each
        assert spec is not None
        items: list[object] = list(range(spec.most))
        if step.items is not None:
            items = cast(list[object], _value(step, step.items, branch))[: spec.max]
        records: list[Values] = []

        async def one(numbered: tuple[int, object]) -> Values:
            own = _Branch.of(branch.seen, branch.nodes, {"index": numbered[0], spec.as_: numbered[1]})
            record, left = await self.body(step, own)
            records.append(record)
            if left:
                raise _Left
            return record

        try:
            return await each(step.node.name, list(enumerate(items)), one, parallel=spec.parallel), False
        except _Left:  # never from parallel items, whose `until` sees no loop
            return records, True

    async def body(self, step: Step, branch: _Branch) -> Outcome:
        """Run what the node runs, once."""
        node = step.node
        if node.role is not None:
            return await self.role(step, branch), False
        if node.tool is not None:
            return await self.tool(step, branch), False
        if not step.children:
            return {"ran": True}, False
        if node.loop is not None or node.for_each is not None:
            return await self.block(step, branch)  # the turn or the item is the block's place already
        with within(node.name):
            return await self.block(step, branch)

    async def block(self, step: Step, branch: _Branch) -> Outcome:
        """Run a block's children: in order, at once, or the one that is switched to."""
        if step.switch is not None:
            return await self.switch(step, step.switch, branch)
        left = False
        if step.node.parallel:
            await self.branches(step.children, branch)
        else:
            left = await self.sequence(step.children, branch)
        return {**_children(step, branch), "ran": True}, left

    async def branches(self, children: tuple[Step, ...], branch: _Branch) -> None:
        """Run all at once, none seeing another; afterwards all are seen."""
        apart = [_Branch.of(branch.seen, branch.nodes, {}) for _ in children]
        pairs = list(zip(children, apart, strict=True))
        await together([lambda child=child, own=own: self.step(child, own) for child, own in pairs])
        for child, own in pairs:
            for name in (child.node.name, *child.shape.exposed):
                branch.nodes[name] = own.nodes[name]

    async def switch(self, step: Step, program: Program, branch: _Branch) -> Outcome:
        """Run the child of that name, else the child `default`; the others are empty afterwards."""
        choice = _value(step, program, branch)
        by_name = {child.node.name: child for child in step.children}
        chosen = by_name.get(str(choice)) or by_name["default"]
        left = await self.step(chosen, branch)
        for child in step.children:
            if child is not chosen:
                _clear(child, branch)
        value = branch.nodes[chosen.node.name]
        shown = isinstance(value, dict) and not chosen.node.privileged
        record = cast(Values, value) if shown else {}
        output = record.get("output", "")
        told = {
            "choice": chosen.node.name,
            "text": record.get("text", ""),
            "output": output if isinstance(output, str) else json.dumps(output),
        }
        return {**_children(step, branch), "ran": True, **told}, left

    async def role(self, step: Step, branch: _Branch) -> Values:
        """Play a role: its prompt sees the state, what the node binds, and the node's own forEach variable."""
        node, seen = step.node, branch.seen
        values: Values = {"state": self.state, "turn": seen["turn"], "index": seen["index"]}
        if node.for_each is not None:
            values[node.for_each.as_] = seen[node.for_each.as_]
        for name, program in step.arguments.items():
            values[name] = _value(step, program, branch)
        return dict(await self.agents[node.role or ""].at(node.name)(**values))

    async def tool(self, step: Step, branch: _Branch) -> Values:
        """Call a tool with the node's arguments; a privileged node reads the hidden fields too."""
        node, seen = step.node, branch.seen
        if node.privileged:
            seen = {**seen, "task": {**cast(Values, seen["task"]), **self.hidden}}
        where = f"node {node.name}"
        arguments = {name: _evaluate(program, seen, where) for name, program in step.arguments.items()}
        return dict(await self.tools[(node.tool or "").partition(".")[0]].at(node.name)(**arguments))


def _value(step: Step, program: Program, branch: _Branch) -> object:
    return _evaluate(program, branch.seen, f"node {step.node.name}")


def _evaluate(program: Program, seen: Mapping[str, object], where: str) -> object:
    try:
        return program.evaluate(seen)
    except EvaluationError as error:
        raise Author(where, str(error)) from error


def _stored(step: Step, name: str, branch: _Branch) -> object:
    program, shape = step.writes[name]
    try:
        return shapes.conform(shape, _value(step, program, branch))
    except ShapeError as error:
        raise Author(f"node {step.node.name}, set.{name}", str(error)) from error


def _children(step: Step, branch: _Branch) -> Values:
    """What a block's record tells: not what privileged nodes found."""
    told = (child.node.name for child in step.children if not child.node.privileged)
    return {name: branch.nodes[name] for name in told}


def _clear(step: Step, branch: _Branch) -> None:
    """Skipped: the node and everything in it has its empty value."""
    branch.nodes[step.node.name] = shapes.empty(step.shape.value)
    for name, shape in step.shape.exposed.items():
        branch.nodes[name] = shapes.empty(shape)
