"""Workflow 09 as plain Python."""

from __future__ import annotations

from collections.abc import Mapping

from unitymas.workflow import Agents, Tools, Value, each


async def run(task: Mapping[str, object], agents: Agents, tools: Tools) -> object:
    """Propose a problem, then try it eight times at once."""
    proposal = await agents.proposer.at("propose")()

    async def solve(_: int) -> Value:
        return await agents.solver.at("solve")(problem=proposal.output["problem"])

    if proposal.ok:
        await each("solve", range(8), solve, parallel=True)
    return proposal.output["answer"]
