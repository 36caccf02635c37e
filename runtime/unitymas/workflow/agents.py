"""Agents and tools of the code-first API: `await agents.answerer(passages=...)`, `await tools.wiki(query=...)`."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unitymas.workflow.context import Context, Value
from unitymas.workflow.team import Player


@dataclass(frozen=True, slots=True)
class Agent:
    """One role, to be called with what its prompt needs."""

    context: Context
    player: Player
    node: str
    task: Mapping[str, object]

    def at(self, node: str) -> Agent:
        """The same role under a node's name of its own."""
        return Agent(self.context, self.player, node, self.task)

    def __call__(self, /, **values: object) -> Coroutine[Any, Any, Value]:
        """Play the role. The visit is keyed now, when the call is made."""
        return self.context.play(self.player, self.context.visit(self.node), {"task": self.task, **values})


@dataclass(frozen=True, slots=True)
class BoundTool:
    """One tool, to be called with its arguments."""

    context: Context
    tool: str
    node: str

    def at(self, node: str) -> BoundTool:
        """The same tool under a node's name of its own."""
        return BoundTool(self.context, self.tool, node)

    def __call__(self, /, **arguments: object) -> Coroutine[Any, Any, Value]:
        """Call the tool. The visit is keyed now, when the call is made."""
        return self.context.use(self.tool, self.context.visit(self.node), arguments)


class Agents:
    """The roles, as attributes; by `agents["name"]` also where Python has that name itself."""

    def __init__(self, context: Context, task: Mapping[str, object]) -> None:
        self.__agents = {name: Agent(context, player, name, task) for name, player in context.team.items()}

    def __getitem__(self, name: str) -> Agent:
        return self.__agents[name]

    def __getattr__(self, name: str) -> Agent:
        if name not in self.__agents:
            raise AttributeError(f"no role `{name}`; there are {', '.join(self.__agents)}")
        return self.__agents[name]


class Tools:
    """The tools, as attributes; by `tools["name"]` also where Python has that name itself."""

    def __init__(self, context: Context, names: Sequence[str]) -> None:
        self.__tools = {name: BoundTool(context, name, name) for name in names}

    def __getitem__(self, name: str) -> BoundTool:
        return self.__tools[name]

    def __getattr__(self, name: str) -> BoundTool:
        if name not in self.__tools:
            raise AttributeError(f"no tool `{name}`; there are {', '.join(self.__tools) or 'none'}")
        return self.__tools[name]
