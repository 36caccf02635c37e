"""The controller's way from a trajectory to models and tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unitymas.api.ports import ModelGroup, Streams, Tool, ToolAnswer
from unitymas.api.records import Request
from unitymas.controller.rounds import Rounds
from unitymas.workflow import Answered


@dataclass(slots=True)
class Desk:
    """Sends calls where they belong and times them. Implements `workflow.Dispatch`."""

    groups: Mapping[str, ModelGroup]
    tools: Mapping[str, Tool]
    rounds: Rounds
    greedy: bool = False
    """Evaluation of this kind asks every call at temperature 0."""
    _streams: Mapping[str, Streams] = field(init=False)
    _started_s: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def __post_init__(self) -> None:
        # asked once: a protocol's own check is slow
        self._streams = {name: group for name, group in self.groups.items() if isinstance(group, Streams)}

    def now(self) -> float:
        """Seconds since this desk opened: one does for the rollout of a step or an evaluation."""
        return asyncio.get_running_loop().time() - self._started_s

    async def generate(self, model: str, request: Request) -> Answered:
        """One generation: in a round, or at once where the group takes single requests."""
        started = self.now()
        if self.greedy:
            request = replace(request, sampling=replace(request.sampling, temperature=0.0))
        if model in self._streams:
            with self.rounds.busy():
                reply = await self._streams[model].answer(request)
        else:
            reply = await self.rounds.ask(model, request)
        return Answered(reply, started, self.now())

    async def call_tool(self, tool: str, arguments: Mapping[str, object]) -> ToolAnswer:
        """One tool call; its limits and retries are the tool's own wrapper's."""
        with self.rounds.busy():
            return await self.tools[tool].call(arguments)
