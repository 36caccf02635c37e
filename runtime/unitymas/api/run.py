"""TrainingRun: the only job-like kind. Data, placement, algorithm, schedule, evaluation, checkpoints, limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from unitymas.api.algorithm import Algorithm
from unitymas.api.base import Duration, Free, Label, Name, Once, Spec


class Ref(Spec):
    """Another resource in the same namespace."""

    name: Label


class Claim(Spec):
    """A PersistentVolumeClaim."""

    name: Label
    path: str = ""


class ConfigMapRef(Spec):
    """A ConfigMap, mounted as a folder."""

    name: str


class Source(Spec):
    """A place that holds something. Exactly one of path, claim, configMap, uri."""

    name: Label
    path: str | None = None
    """A file or folder; on a cluster in the image; locally relative to the manifest."""
    claim: Claim | None = None
    config_map: ConfigMapRef | None = None
    uri: str | None = None
    """Anything that fsspec reads."""
    python: bool = False
    """Importable: entry points are looked up here."""

    @model_validator(mode="after")
    def _one_place(self) -> Source:
        given = [field for field in ("path", "claim", "config_map", "uri") if getattr(self, field) is not None]
        if len(given) != 1:
            raise ValueError("exactly one of path, claim, configMap and uri")
        return self


class Dataset(Spec):
    """Rows of one file: flat JSON objects with the input fields by name and an optional id."""

    source: Label
    file: str | None = None
    """Within the source; absent when the source is the file."""
    weight: float = Field(default=1.0, gt=0)
    """Share of the tasks drawn, relative to the other files."""


class Data(Spec):
    """Which rows are trained on, chosen on, reported on."""

    train: list[Dataset] = Field(default_factory=list[Dataset])
    dev: list[Dataset] = Field(default_factory=list[Dataset])
    test: list[Dataset] = Field(default_factory=list[Dataset])


class Placement(Spec):
    """Where a model group runs."""

    engine: Literal["auto", "hf", "vllm", "endpoint", "scripted"] = "auto"
    tensor_parallel: int = Field(default=1, ge=1)
    nodes: int = Field(default=1, ge=1)
    per_node: dict[str, int | float | str] = Field(default_factory=dict[str, int | float | str])
    """Resources of each node, as Kubernetes names them."""
    micro_batch: int = Field(default=64, ge=1)
    """Most rows of one forward pass of the trainer."""
    precision: Literal["fp32", "bf16"] = "fp32"
    pod_template: Free | None = None


class Schedule(Spec):
    """How long, and how much at a time."""

    steps: int = Field(default=100, ge=1)
    tasks_per_step: int = Field(default=16, ge=1)
    max_staleness: int = Field(default=0, ge=0)
    """Steps that a trajectory's weights may lag behind; 0 is strictly on-policy."""
    max_trajectories: int = Field(default=256, ge=1)
    """Most trajectories in flight."""


class Evaluation(Spec):
    """The curve on dev; first and chosen weights on test, once, at the end."""

    every: int = Field(default=20, ge=1)
    sampling: Annotated[list[Literal["greedy", "sampled"]], Once] = Field(
        default_factory=lambda: ["greedy"], min_length=1
    )
    """The first one decides `select`."""
    repeats: int = Field(default=1, ge=1)
    """Trajectories per task when sampled."""
    tasks: int | None = Field(default=None, ge=1)
    """Most dev tasks per point of the curve; all where absent. Test is always whole."""
    select: Literal["best", "last"] = "best"


class Checkpoint(Spec):
    """One atomic manifest at a step barrier."""

    every: int = Field(default=20, ge=1)
    keep: int = Field(default=3, ge=1)
    """Newest ones kept; the best by dev is kept beside them."""
    source: Label | None = None
    """Where; the run's folder where absent."""


class SessionSpec(Spec):
    """How a tool's sessions are provided, and how many at once."""

    provider: str = "auto"
    max: int = Field(default=64, ge=1)


class Limits(Spec):
    """Time limits, and what a passed one means."""

    call_s: Duration = Field(default=60.0, alias="call")
    """One generation; a batch may take that for each of its calls. An endpoint has its own."""
    tool_s: Duration = Field(default=30.0, alias="tool")
    metric_s: Duration = Field(default=60.0, alias="metric")
    trajectory_s: Duration = Field(default=300.0, alias="trajectory")
    on_deadline: Literal["score", "drop", "fail"] = "score"
    """A trajectory past its limit is scored as it stands, left out of loss and baseline, or fails the run."""
    retries: int = Field(default=3, ge=0)
    """Tries again after an infrastructure failure, of a tool or of a whole trajectory."""
    failed_share: float = Field(default=0.5, gt=0, le=1)
    """A step with more of its trajectories than this lost to infrastructure, or late and dropped, fails the attempt."""
    parity: float = Field(default=1e-3, gt=0)
    """Largest gap between rollout and trainer log-probability, in nats; a larger one stops the run."""


class RunPolicy(Spec):
    """How an attempt is retried, and for how long."""

    backoff_limit: int = Field(default=1, ge=0)
    infra_restart_limit: int = Field(default=5, ge=0)
    active_deadline_seconds: int | None = Field(default=None, gt=0)
    startup_deadline_seconds: int | None = Field(default=None, gt=0)
    progress_deadline_seconds: int | None = Field(default=None, gt=0)


class Cleanup(Spec):
    """What stays how long after the end."""

    cluster_ttl_seconds: int = Field(default=60, ge=0)
    self_ttl_seconds: int | None = Field(default=None, ge=0)


class TrainingRunSpec(Spec):
    """One run: what is trained, on what, how."""

    workflow_ref: Ref | None = None
    """The run's own name where absent."""
    mapping_ref: Ref | None = None
    """The run's own name where absent."""
    reward_ref: Ref | None = None
    """The run's own name where absent."""
    sources: list[Source] = Field(default_factory=list[Source], max_length=64)
    data: Data = Field(default_factory=Data)
    """Needed to run, not to validate."""
    placement: dict[Label, Placement] = Field(default_factory=dict[Label, Placement])
    algorithm: Algorithm = Field(default_factory=Algorithm)
    schedule: Schedule = Field(default_factory=Schedule)
    evaluation: Evaluation = Field(default_factory=Evaluation)
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    sessions: dict[Name, SessionSpec] = Field(default_factory=dict[Name, SessionSpec])
    limits: Limits = Field(default_factory=Limits)
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    image: str | None = None
    """Runtime image, on a cluster."""
    ray_version: str | None = None
    queue_name: str | None = None
    """Kueue queue; the label goes on the child only."""
    suspend: bool = False
    cancel: bool = False
    """One-way."""
    run_policy: RunPolicy = Field(default_factory=RunPolicy)
    cleanup: Cleanup = Field(default_factory=Cleanup)
    controller_template: Free | None = None
    """Pod template of the head."""

    def place(self, model: str) -> Placement:
        """Placement of a model; the defaults where none is given."""
        return self.placement.get(model) or Placement()

    def source(self, name: str) -> Source:
        """The source of a name. Raises KeyError."""
        return {source.name: source for source in self.sources}[name]


def ref_name(spec: TrainingRunSpec, field: str, own: str) -> str:
    """The name that `workflow_ref`, `mapping_ref` or `reward_ref` stands for: `own` where absent."""
    given: Any = getattr(spec, field)
    return own if given is None else given.name
