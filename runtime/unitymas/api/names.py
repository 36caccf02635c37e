"""The registries: a newcomer (estimator, metric, tool, engine, output format) is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a named thing lives (`module:attribute`, imported on use) and one line that says when to use it."""

    target: str
    summary: str


ESTIMATORS: Mapping[str, Entry] = {
    "rloo": Entry("unitymas.credit.estimators.rloo:Rloo", "mean of the others; small groups"),
    "grpo": Entry("unitymas.credit.estimators.grpo:Grpo", "group mean, divided by the group's std"),
    "dr-grpo": Entry("unitymas.credit.estimators.grpo:DrGrpo", "group mean, not divided"),
    "reinforce++": Entry("unitymas.credit.estimators.reinforce:ReinforcePlusPlus", "batch mean; no groups needed"),
    "reinforce++-baseline": Entry(
        "unitymas.credit.estimators.reinforce:ReinforcePlusPlusBaseline", "group mean, whitened over the batch"
    ),
    "gae": Entry("unitymas.credit.estimators.gae:Gae", "a critic per model; PPO proper"),
}
METRICS: Mapping[str, Entry] = {
    "tokenF1": Entry("unitymas.rewards.metrics.token_f1:TokenF1", "overlap of words, best over the references"),
    "exactMatch": Entry("unitymas.rewards.metrics.exact_match:ExactMatch", "equal after normalisation"),
    "mathEqual": Entry("unitymas.rewards.metrics.math_equal:MathEqual", "the same mathematical answer"),
    "choice": Entry("unitymas.rewards.metrics.choice:Choice", "one of the references, verbatim"),
    "passRate": Entry("unitymas.rewards.metrics.pass_rate:PassRate", "share of tests that a program passes"),
}
TOOLS: Mapping[str, Entry] = {
    "retriever": Entry("unitymas.tools.retriever:Retriever", "passages of a corpus for a query"),
    "python": Entry("unitymas.tools.python:PythonTool", "a function of the user's own"),
}
ENGINES: Mapping[str, Entry] = {
    "hf": Entry("unitymas.models.engines.hf:HfEngine", "Hugging Face generation in the trainer's process"),
    "endpoint": Entry("unitymas.models.engines.endpoint:EndpointGroup", "an OpenAI-compatible server"),
    "scripted": Entry("unitymas.models.engines.scripted:ScriptedGroup", "replies given by a script, for tests"),
}
OUTPUTS: Mapping[str, Entry] = {
    "raw": Entry("unitymas.workflow.outputs.raw:Raw", "the whole reply"),
    "tag": Entry("unitymas.workflow.outputs.tag:Tag", "the text between <tag> and </tag>"),
    "tags": Entry("unitymas.workflow.outputs.tag:Tags", "several tags, a record of strings"),
    "json": Entry("unitymas.workflow.outputs.json:Json", "a JSON value of a shape"),
    "regex": Entry("unitymas.workflow.outputs.regex:Regex", "the first group of a pattern"),
    "choice": Entry("unitymas.workflow.outputs.choice:Choice", "one of the given words"),
    "python": Entry("unitymas.workflow.outputs.python:Python", "a function of the user's own"),
}
LATER: Mapping[str, str] = {
    "code": "the sandbox for model-written code",
    "sandbox": "sandboxes",
    "mcp": "MCP tools",
    "http": "HTTP tools",
    "remax": "the remax estimator",
    "ema": "the ema estimator",
}
"""Names of the language that this release reads but cannot run yet: refused with a message, never ignored."""


def load(registry: Mapping[str, Entry], name: str) -> type[object]:
    """Import what a name stands for. Raises KeyError for a name that is not in the registry."""
    module, _, attribute = registry[name].target.partition(":")
    return cast(type[object], getattr(import_module(module), attribute))
