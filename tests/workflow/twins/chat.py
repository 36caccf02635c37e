"""Workflow 12 as plain Python."""

from __future__ import annotations

from collections.abc import Mapping

from unitymas.workflow import Agents, Tools, turns, within

SPEAKERS = ("coder", "critic", "tester")


async def run(task: Mapping[str, object], agents: Agents, tools: Tools) -> object:
    """Up to ten turns, in which the manager names who speaks; the coder does where the name is none."""
    chat: list[dict[str, str]] = []
    for _ in turns("turns", 10):
        choice = (await agents.manager.at("pick")(state={"chat": chat})).output
        if choice == "done":
            break
        who = choice if choice in SPEAKERS else "default"
        with within("speak"):
            said = await agents["coder" if who == "default" else who].at(who)(state={"chat": chat})
        chat = [*chat, {"who": who, "text": said.text}]
    return chat[-1]["text"] if chat else ""
