"""What the operator writes into `status`: shapes only, all fields optional, all sizes bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from unitymas.api.base import Label, Spec

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339, UTC."""
Phase = Literal[
    "Pending",
    "Queued",
    "Provisioning",
    "Running",
    "Restarting",
    "Suspending",
    "Suspended",
    "Succeeded",
    "Failed",
    "Cancelled",
]


class Condition(Spec):
    """One condition, as the Kubernetes API conventions have it."""

    type: str = Field(max_length=63)
    status: Literal["True", "False", "Unknown"]
    observed_generation: int | None = None
    last_transition_time: Time
    reason: str = Field(min_length=1, max_length=63)
    message: str = Field(default="", max_length=1024)


class Status(Spec):
    """What every kind reports."""

    observed_generation: int | None = None
    """Generation of the spec that this status is about."""
    conditions: list[Condition] = Field(default_factory=list[Condition], max_length=16)


class ConfigStatus(Status):
    """Status of the kinds that runs refer to."""

    used_by: int | None = Field(default=None, ge=0)
    """Number of runs that refer to it."""


class AttemptStatus(Spec):
    """One attempt that ended or runs."""

    name: Label
    start_time: Time | None = None
    end_time: Time | None = None
    failure: str | None = Field(default=None, max_length=63)
    """Class of its failure: `infrastructure`, `app`, `user`."""
    reason: str | None = Field(default=None, max_length=63)
    resumed_from_step: int | None = Field(default=None, ge=0)


class ModelStatus(Spec):
    """Workers of one model group."""

    name: Label
    ready: int = Field(default=0, ge=0)
    desired: int = Field(default=0, ge=0)


class TrainerStatus(Spec):
    """What the controller last reported; numbers that are not whole are strings."""

    step: int | None = Field(default=None, ge=0)
    epoch: int | None = Field(default=None, ge=0)
    percent: int | None = Field(default=None, ge=0, le=100)
    eta_seconds: int | None = Field(default=None, ge=0)
    score: str | None = Field(default=None, max_length=64)
    """Last value of the RewardSpec's score."""
    metrics: dict[str, Annotated[str, Field(max_length=64)]] = Field(default_factory=dict[str, str], max_length=256)
    """Last value of each metric."""
    checkpoint: str | None = Field(default=None, max_length=1024)
    """Newest complete checkpoint."""
    last_updated_time: Time | None = None


class TrainingRunStatus(Status):
    """Status of a run."""

    phase: Phase | None = None
    """Derived from the conditions, for display."""
    message: str | None = Field(default=None, max_length=1024)
    """Why it is in this phase."""
    attempt: int | None = Field(default=None, ge=0)
    """Number of the current attempt."""
    attempts: list[AttemptStatus] = Field(default_factory=list[AttemptStatus], max_length=10)
    """The last ten."""
    restarts: int | None = Field(default=None, ge=0)
    restarts_count_towards_limit: int | None = Field(default=None, ge=0)
    """Restarts that count against `runPolicy.backoffLimit`."""
    ray_job_name: str | None = Field(default=None, max_length=63)
    ray_cluster_name: str | None = Field(default=None, max_length=63)
    head_pod_uid: str | None = Field(default=None, alias="headPodUID", max_length=63)
    snapshot_digest: str | None = Field(default=None, max_length=128)
    """Digest of the resolved references, taken when the run was accepted."""
    start_time: Time | None = None
    completion_time: Time | None = None
    queued_seconds: int | None = Field(default=None, ge=0)
    models: list[ModelStatus] = Field(default_factory=list[ModelStatus], max_length=16)
    trainer: TrainerStatus | None = None


STATUS: Mapping[str, type[Status]] = {
    "MultiAgentWorkflow": ConfigStatus,
    "RewardSpec": ConfigStatus,
    "ModelMapping": ConfigStatus,
    "TrainingRun": TrainingRunStatus,
}
"""Class of each kind's status."""
