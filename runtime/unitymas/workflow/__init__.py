"""Workflows: the language of nodes, and the same as plain Python."""

from unitymas.workflow.agents import Agents, Tools
from unitymas.workflow.compile import Compiled, compile_workflow, seen_by_rewards
from unitymas.workflow.context import Answered, Dispatch, Value
from unitymas.workflow.play import Workflow, play, prepare
from unitymas.workflow.structure import each, together, turns, within

__all__ = [
    "Agents",
    "Answered",
    "Compiled",
    "Dispatch",
    "Tools",
    "Value",
    "Workflow",
    "compile_workflow",
    "each",
    "play",
    "prepare",
    "seen_by_rewards",
    "together",
    "turns",
    "within",
]
