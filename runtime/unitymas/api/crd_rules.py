"""CEL rules and printer columns of the CRDs: what the API server itself can refuse and show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unitymas.api.base import DNS_LABEL
from unitymas.api.reward import METRIC_KINDS
from unitymas.api.tool import TOOL_KINDS

Rules = list[dict[str, str]]


def _rule(rule: str, message: str) -> dict[str, str]:
    return {"rule": rule, "message": message}


def _count(*fields: str) -> str:
    return " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)


def _exactly_one(*fields: str) -> dict[str, str]:
    return _rule(f"{_count(*fields)} == 1", f"exactly one of {', '.join(fields)}")


def _kept(field: str, same: str) -> dict[str, str]:
    """`field` may change only where the old object was suspended; `same` compares two present values."""
    unchanged = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || ({same}))"
    suspended = "has(oldSelf.suspend) && oldSelf.suspend"
    return _rule(f"({suspended}) || ({unchanged})", f"{field} changes only while the run is suspended")


def _node(properties: Mapping[str, Any]) -> Rules:
    bodies = [body for body in ("role", "tool", "nodes") if body in properties]
    any_body = " || ".join(f"has(self.{body})" for body in bodies)
    return [
        _rule(f"({any_body}) ? {_count(*bodies)} == 1 : has(self.set)", "one body: role, tool, nodes, or only set"),
        _rule("!(has(self.__loop__) && has(self.forEach))", "loop or forEach, not both; nest them"),
    ]


def _run_spec(_: Mapping[str, Any]) -> Rules:
    whole = {field: f"self.{field} == oldSelf.{field}" for field in ("workflowRef", "mappingRef", "rewardRef", "image")}
    names = "self.placement.size() == oldSelf.placement.size() && self.placement.all(model, model in oldSelf.placement)"
    return [
        _rule(
            "!(has(oldSelf.cancel) && oldSelf.cancel) || (has(self.cancel) && self.cancel)",
            "cancel is one-way: make a new run",
        ),
        *(_kept(field, same) for field, same in whole.items()),
        _kept("placement", names) | {"message": "the models in placement change only while the run is suspended"},
    ]


RULES: Mapping[str, Callable[[Mapping[str, Any]], Rules]] = {
    "WorkflowSpec": lambda _: [
        _exactly_one("nodes", "python"),
        _rule("!(has(self.python) && has(self.result))", "python replaces state, nodes and result"),
    ],
    "Tool": lambda _: [_exactly_one(*TOOL_KINDS)],
    "Node": _node,
    "ForEach": lambda _: [_exactly_one("items", "times")],
    "RewardSpecSpec": lambda _: [
        _rule(
            "(has(self.rewards) && self.rewards.size() > 0) != has(self.python)", "exactly one of rewards and python"
        ),
    ],
    "Metric": lambda _: [_exactly_one(*METRIC_KINDS.values())],
    "Model": lambda _: [
        _rule("has(self.adapterOf) == has(self.lora)", "adapterOf and lora go together"),
        _rule(
            "!(has(self.endpoint) && has(self.trainable) && self.trainable)",
            "a model behind an endpoint cannot be trained",
        ),
    ],
    "Source": lambda _: [_exactly_one("path", "claim", "configMap", "uri")],
    "TrainingRunSpec": _run_spec,
}
"""Rules of each class, given the properties that its schema has there."""
REQUIRED: Mapping[str, tuple[str, ...]] = {"Model": ("source", "adapterOf", "endpoint")}
"""Exactly one of these is present: said by `oneOf`, because CEL sees no field without a type, such as `source`."""
NAME_LIMIT: Mapping[str, int] = {"TrainingRun": 42}
"""KubeRay allows a RayJob's name 47 characters, and an attempt adds up to five. 63 for the other kinds."""


def root_rules(kind: str) -> Rules:
    """Rules of a whole object: only there is the name seen."""
    limit = NAME_LIMIT.get(kind, 63)
    return [
        _rule(f"self.metadata.name.size() <= {limit}", f"a name of at most {limit} characters"),
        _rule(f"self.metadata.name.matches('{DNS_LABEL}')", "a name that is a DNS label: no dots"),
    ]


def _column(name: str, path: str, kind: str = "string", priority: int = 0) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path} | ({"priority": priority} if priority else {})


_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_CONFIG_COLUMNS = [_column("Ready", '.status.conditions[?(@.type=="Ready")].status'), _AGE]
COLUMNS: Mapping[str, list[dict[str, Any]]] = {
    "MultiAgentWorkflow": _CONFIG_COLUMNS,
    "RewardSpec": _CONFIG_COLUMNS,
    "ModelMapping": _CONFIG_COLUMNS,
    "TrainingRun": [
        _column("Phase", ".status.phase"),
        _column("Attempt", ".status.attempt", "integer"),
        _column("Step", ".status.trainer.step", "integer"),
        _column("Progress", ".status.trainer.percent", "integer"),
        _column("Reward", ".status.trainer.score"),
        _column("Queue", ".spec.queueName"),
        _AGE,
        _column("RayJob", ".status.rayJobName", priority=1),
        _column("Message", ".status.message", priority=1),
    ],
}
"""What `kubectl get` shows; priority 1 with `-o wide`."""
SHORT_NAMES: Mapping[str, str] = {
    "MultiAgentWorkflow": "maw",
    "RewardSpec": "rwd",
    "ModelMapping": "mmap",
    "TrainingRun": "trun",  # `tr` is Tekton's
}
