"""Agents and tools of the code-first API: `await agents.answerer(passages=...)`, `await tools.wiki(query=...)`.

Users' code holds them, so none leads to the trajectory, where the task's hidden fields are: the context is closed over.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unitymas.workflow.context import Context, Value, plain
from unitymas.workflow.team import Player

Visiting = Callable[[str, Mapping[str, object]], Coroutine[Any, Any, Value]]
"""Makes a visit: from the node's name and what it is given."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One role, to be called with what its prompt needs."""

    play: Visiting
    node: str

    def at(self, node: str) -> Agent:
        """The same role under a node's name of its own."""
        return Agent(self.play, node)

    def __call__(self, /, **values: object) -> Coroutine[Any, Any, Value]:
        """Play the role. The visit is keyed now, when the call is made."""
        return self.play(self.node, values)


@dataclass(frozen=True, slots=True)
class BoundTool:
    """One tool, to be called with its arguments."""

    use: Visiting
    node: str

    def at(self, node: str) -> BoundTool:
        """The same tool under a node's name of its own."""
        return BoundTool(self.use, node)

    def __call__(self, /, **arguments: object) -> Coroutine[Any, Any, Value]:
        """Call the tool. The visit is keyed now, when the call is made."""
        return self.use(self.node, arguments)


class Agents:
    """The roles, as attributes; by `agents["name"]` also where Python has that name itself."""

    def __init__(self, context: Context, task: Mapping[str, object]) -> None:
        self.__agents = {name: Agent(_plays(context, player, task), name) for name, player in context.team.items()}

    def __getitem__(self, name: str) -> Agent:
        return self.__agents[name]

    def __getattr__(self, name: str) -> Agent:
        if name not in self.__agents:
            raise AttributeError(f"no role `{name}`; there are {', '.join(self.__agents)}")
        return self[name]


class Tools:
    """The tools, as attributes; by `tools["name"]` also where Python has that name itself."""

    def __init__(self, context: Context, names: Sequence[str]) -> None:
        self.__tools = {name: BoundTool(_uses(context, name), name) for name in names}

    def __getitem__(self, name: str) -> BoundTool:
        return self.__tools[name]

    def __getattr__(self, name: str) -> BoundTool:
        if name not in self.__tools:
            raise AttributeError(f"no tool `{name}`; there are {', '.join(self.__tools) or 'none'}")
        return self[name]


def _plays(context: Context, player: Player, task: Mapping[str, object]) -> Visiting:
    def play(node: str, values: Mapping[str, object]) -> Coroutine[Any, Any, Value]:
        seen = {"task": task, **{name: plain(value) for name, value in values.items()}}
        return context.play(player, context.visit(node), seen)

    return play


def _uses(context: Context, tool: str) -> Visiting:
    def use(node: str, arguments: Mapping[str, object]) -> Coroutine[Any, Any, Value]:
        given = {name: plain(value) for name, value in arguments.items()}
        return context.use(tool, context.visit(node), given)

    return use
