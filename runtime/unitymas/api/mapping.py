"""ModelMapping: which weights play which role."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from unitymas.api.base import Duration, Label, Name, Spec

Decay = Annotated[float, Field(ge=0, lt=1)]
"""Of a running mean."""


def _bare(url: object) -> object:
    # never echoes the address: what is wrong with it may be a secret
    if found := [f"`{mark}`" for mark in "@?#" if isinstance(url, str) and mark in url]:
        raise ValueError(f"an address alone, its key in endpoint.secretRef; found {' and '.join(found)} in it")
    return url


class Hub(Spec):
    """Weights on the Hugging Face hub."""

    hub: str = Field(pattern=r"^[\w.-]+(/[\w.-]+)?$")
    revision: str | None = None


class Optimizer(Spec):
    """AdamW of one model."""

    learning_rate: float = Field(default=1.0e-6, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the running means of gradient and squared gradient."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are clipped to this norm."""
    warmup_steps: int = Field(default=0, ge=0)


class Critic(Spec):
    """The value model of a model, for gae; starts from the same weights."""

    learning_rate: float = Field(default=1.0e-5, gt=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    clip: float = Field(default=0.5, gt=0)
    """Values move at most so far from the old ones, in reward units."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps in which only the critic is trained."""


class Lora(Spec):
    """A low-rank adapter."""

    rank: int = Field(gt=0)
    alpha: float = Field(gt=0)


class SecretRef(Spec):
    """A key of a Secret; locally the environment variable of that key's name."""

    name: Label
    key: str


class Endpoint(Spec):
    """A frozen model behind an OpenAI-compatible server."""

    url: Annotated[str, BeforeValidator(_bare)] = Field(
        pattern=r"^https?://", json_schema_extra={"pattern": r"^https?://[^@?#]+$"}
    )
    """Without user, password or query: keys belong in `secretRef`."""
    model: str
    secret_ref: SecretRef | None = None
    requests_per_second: float | None = Field(default=None, gt=0)
    max_concurrency: int = Field(default=16, ge=1)
    timeout_s: Duration = Field(default=60.0, alias="timeout")
    retries: int = Field(default=5, ge=0)


class Model(Spec):
    """A set of weights. Exactly one of `source`, `adapterOf`, `endpoint`."""

    name: Label
    source: Hub | Label | None = None
    """On the hub, or the name of a source of the run."""
    adapter_of: Label | None = None
    """The base whose group it shares."""
    lora: Lora | None = None
    endpoint: Endpoint | None = None
    trainable: bool = True
    """False: served only."""
    optimizer: Optimizer = Field(default_factory=Optimizer)
    critic: Critic | None = None
    """For gae; its defaults where absent."""
    context: int | None = Field(default=None, gt=0)
    """Most tokens of prompt and reply together; the model's own where absent."""

    @model_validator(mode="after")
    def _one_origin(self) -> Model:
        given = [field for field in ("source", "adapter_of", "endpoint") if getattr(self, field) is not None]
        if len(given) != 1:
            raise ValueError("exactly one of source, adapterOf and endpoint")
        if (self.adapter_of is None) != (self.lora is None):
            raise ValueError("adapterOf and lora go together")
        if self.endpoint is not None and "trainable" in self.model_fields_set and self.trainable:
            raise ValueError("a model behind an endpoint cannot be trained")
        return self

    @property
    def trained(self) -> bool:
        """Whether its weights may change."""
        return self.trainable and self.endpoint is None


class RoleModel(Spec):
    """A role's model, with whether the role trains it."""

    model: Label
    train: bool = True
    """False freezes one role: its visits are not trained on."""


class ModelMappingSpec(Spec):
    """Full sharing, full separation, anything between."""

    models: list[Model] = Field(min_length=1, max_length=16)
    roles: dict[Name, Label | RoleModel] = Field(min_length=1)

    def model(self, name: str) -> Model:
        """The model of a name. Raises KeyError."""
        return {model.name: model for model in self.models}[name]

    def model_of(self, role: str) -> str:
        """Name of the model that plays a role. Raises KeyError."""
        given = self.roles[role]
        return given if isinstance(given, str) else given.model

    def trains(self, role: str) -> bool:
        """Whether a role's visits are trained on."""
        given = self.roles[role]
        return (isinstance(given, str) or given.train) and self.model(self.model_of(role)).trained
