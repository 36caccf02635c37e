"""Agents and tools of the code-first API: `await agents.answerer(passages=...)`, `await tools.wiki(query=...)`."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unitymas.workflow.context import Context, Value, plain
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
        seen = {"task": self.task, **{name: plain(value) for name, value in values.items()}}
        return self.context.play(self.player, self.context.visit(self.node), seen)


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
        given = {name: plain(value) for name, value in arguments.items()}
        return self.context.use(self.tool, self.context.visit(self.node), given)


class Agents:
    """The roles, as attributes; by `agents["name"]` also where Python has that name itself."""

    def __init__(self, context: Context, task: Mapping[str, object]) -> None:
        self.__context, self.__task = context, task

    def __getitem__(self, name: str) -> Agent:
        return Agent(self.__context, self.__context.team[name], name, self.__task)

    def __getattr__(self, name: str) -> Agent:
        if name not in self.__context.team:
            raise AttributeError(f"no role `{name}`; there are {', '.join(self.__context.team)}")
        return self[name]


class Tools:
    """The tools, as attributes; by `tools["name"]` also where Python has that name itself."""

    def __init__(self, context: Context, names: Sequence[str]) -> None:
        self.__context, self.__names = context, names

    def __getitem__(self, name: str) -> BoundTool:
        return BoundTool(self.__context, name, name)

    def __getattr__(self, name: str) -> BoundTool:
        if name not in self.__names:
            raise AttributeError(f"no tool `{name}`; there are {', '.join(self.__names) or 'none'}")
        return self[name]
