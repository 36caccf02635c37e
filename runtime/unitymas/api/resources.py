"""The four kinds as whole resources, and a run with everything that it refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from unitymas.api.base import API_VERSION, Metadata
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.reward import RewardSpecSpec
from unitymas.api.run import TrainingRunSpec
from unitymas.api.workflow import WorkflowSpec


class Resource(BaseModel):
    """A Kubernetes object of ours: `status` is the operator's and passes through."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True)

    api_version: Literal["unitymas.io/v1alpha1"] = API_VERSION
    metadata: Metadata
    status: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.metadata.name


class MultiAgentWorkflow(Resource):
    """Roles, prompts, tools, the graph they run in."""

    kind: Literal["MultiAgentWorkflow"] = "MultiAgentWorkflow"
    spec: WorkflowSpec


class RewardSpec(Resource):
    """Rewards per role, turn and trajectory."""

    kind: Literal["RewardSpec"] = "RewardSpec"
    spec: RewardSpecSpec


class ModelMapping(Resource):
    """Which weights play which role."""

    kind: Literal["ModelMapping"] = "ModelMapping"
    spec: ModelMappingSpec


class TrainingRun(Resource):
    """One training run."""

    kind: Literal["TrainingRun"] = "TrainingRun"
    spec: TrainingRunSpec = Field(default_factory=TrainingRunSpec)

    @model_validator(mode="after")
    def _short_name(self) -> TrainingRun:
        if len(self.name) > 42:
            raise ValueError(f"a run's name has at most 42 characters; found {len(self.name)}")
        return self


KINDS: dict[str, type[MultiAgentWorkflow] | type[RewardSpec] | type[ModelMapping] | type[TrainingRun]] = {
    "MultiAgentWorkflow": MultiAgentWorkflow,
    "RewardSpec": RewardSpec,
    "ModelMapping": ModelMapping,
    "TrainingRun": TrainingRun,
}


@dataclass(frozen=True, slots=True)
class Project:
    """A run with the resources that it refers to, resolved."""

    run: TrainingRun
    workflow: MultiAgentWorkflow
    mapping: ModelMapping
    reward: RewardSpec
    folder: str = "."
    """Where relative paths of sources start: the run manifest's folder."""
