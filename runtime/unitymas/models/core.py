"""One model group: engine, token buffer, tokenizer and trainer of one model, in one process. Blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psutil

from unitymas.api.algorithm import Algorithm
from unitymas.api.errors import Author, BadInput, Finding
from unitymas.api.mapping import Model
from unitymas.api.names import ENGINES, load
from unitymas.api.ports import Update
from unitymas.api.records import Reply, Request, Row
from unitymas.api.run import Placement
from unitymas.models.buffer import Sample, TokenBuffer
from unitymas.models.engines.port import Engine, Prompt
from unitymas.models.lessons import lesson
from unitymas.models.quiet import hush
from unitymas.models.tokens import Encoded, Tokens

if TYPE_CHECKING:
    from unitymas.models.verl.trainer import PolicyTrainer

UNTEMPERED = 1.0
"""The temperature at which a greedy call's log-probabilities are those of the model."""

DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What one model group is built from; picklable, for it may be built elsewhere."""

    model: Model
    path: Path
    """A Hugging Face folder: first weights and tokenizer."""
    placement: Placement
    engine: str
    """A name of `api.names.ENGINES`."""
    algorithm: Algorithm
    roles: tuple[str, ...]
    """The roles that train it; with none it is served only."""
    parity: float
    """`limits.parity`, in nats."""
    seed: int

    @property
    def trained(self) -> bool:
        """Whether there is a trainer."""
        return self.model.trained and bool(self.roles)


class GroupCore:
    """A point of the star: text, ids and numbers go in and out; token ids and tensors stay here.

    Every method blocks; one thread calls them. Raises BadInput when the folder cannot be used.
    """

    def __init__(self, spec: GroupSpec) -> None:
        hush()
        self._spec = spec
        try:
            self._tokens = Tokens.open(spec.path, model=spec.model.name)
            self._context = spec.model.context or _longest(spec.path)
            self._engine = _engine(spec, self._tokens)
        except (OSError, ValueError) as caught:
            raise BadInput([_unusable(spec, caught)]) from caught
        self._trainer = _trainer(spec) if spec.trained else None
        self._buffer = TokenBuffer()
        self._temperatures: dict[str, float] = {}
        self._version = 0

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer a batch, in the order given; keep the tokens where asked. Raises Author for a prompt too long."""
        encoded = [self._encode(request) for request in requests]
        asked = zip(requests, encoded, strict=True)
        prompts = [Prompt(found.ids, request.seed, request.sampling) for request, found in asked]
        version = self._version
        samples = self._engine.generate(prompts)
        answered = list(zip(requests, encoded, samples, strict=True))
        for request, _, sample in answered:
            if request.keep and self._trainer is not None:
                self._keep(request, sample)
        return [self._reply(request, found, sample, version) for request, found, sample in answered]

    def train(self, rows: Sequence[Row], step: int) -> Update:
        """One update from the kept tokens of the rows' calls. Raises ParityBroken before any change, and NotFinite."""
        trainer = self._training()
        samples = {call: self._buffer.take([call])[0] for row in rows for call in row.calls}
        held = {call: (sample, self._temperatures[call]) for call, sample in samples.items()}
        values = trainer.values if trainer.critic is not None else None
        found = lesson(rows, held, self._spec.algorithm, values=values)
        metrics = {**found.metrics, **trainer.update(found.rows, step=step)}
        if trainer.critic is not None and found.rows:
            metrics |= trainer.criticise(found.rows, found.values, found.returns, step=step)
        return Update(metrics)

    def publish(self, version: int) -> None:
        """Serve the trainer's weights from now on, stamped with the version; forget the kept tokens."""
        self._engine.load(self._training().parameters(), version)
        self._version = version
        self._buffer.forget()
        self._temperatures.clear()

    def save(self, folder: Path) -> None:
        """Write weights, optimiser, critic and random state into a folder that exists."""
        from unitymas.models.verl import checkpoint

        checkpoint.save(self._training(), folder)

    def load(self, folder: Path, version: int) -> None:
        """Read what `save` wrote and serve it."""
        from unitymas.models.verl import checkpoint

        checkpoint.load(self._training(), folder)
        self.publish(version)

    def export(self, folder: Path) -> None:
        """Write the trainer's weights and the tokenizer as a Hugging Face folder."""
        from unitymas.models.verl import checkpoint

        self._tokens.save(folder)
        checkpoint.export(self._training().parameters(), source=self._spec.path, folder=folder)

    def stat(self) -> Mapping[str, float]:
        """Gauges of this process and buffer."""
        return {
            "rss_bytes": float(psutil.Process().memory_info().rss),
            "version": float(self._version),
            "buffered_calls": float(len(self._buffer)),
            "buffered_tokens": float(self._buffer.tokens),
            "buffered_bytes": float(self._buffer.nbytes),
        }

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.close()

    def _encode(self, request: Request) -> Encoded:
        try:
            return self._tokens.encode(request.messages, budget=self._context - request.sampling.max_tokens)
        except ValueError as caught:
            raise Author(f"role {request.role}", str(caught)) from caught

    def _keep(self, request: Request, sample: Sample) -> None:
        call = str(request.id)
        self._buffer.put(call, sample)
        self._temperatures[call] = request.sampling.temperature or UNTEMPERED

    def _reply(self, request: Request, encoded: Encoded, sample: Sample, version: int) -> Reply:
        return Reply(
            text=self._tokens.decode(sample.output.tolist(), stop=request.sampling.stop),
            finish=sample.finish,
            prompt_tokens=sample.prompt.size,
            output_tokens=sample.output.size,
            truncated_tokens=encoded.truncated,
            version=version,
        )

    def _training(self) -> PolicyTrainer:
        if self._trainer is None:
            raise ValueError(f"model {self._spec.model.name} is served only; expected one that a role trains")
        return self._trainer


def _trainer(spec: GroupSpec) -> PolicyTrainer:
    from unitymas.models.verl.environment import prepare

    prepare()  # before the first import of verl
    from unitymas.models.verl.trainer import PolicyTrainer

    return PolicyTrainer(
        str(spec.path),
        spec.model,
        placement=spec.placement,
        algorithm=spec.algorithm,
        roles=spec.roles,
        seed=spec.seed,
        parity=spec.parity,
    )


def _engine(spec: GroupSpec, tokens: Tokens) -> Engine:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return cast(Any, load(ENGINES, spec.engine))(
        spec.path, tokens, dtype=DTYPES[spec.placement.precision], device=device
    )


def _unusable(spec: GroupSpec, caught: Exception) -> Finding:
    return Finding(
        "no-model",
        f"spec.models[{spec.model.name}].source",
        found=f"{spec.path}: {caught}",
        expected="a Hugging Face folder of a causal language model: config.json, safetensors, a fast tokenizer",
        kind="ModelMapping",
    )


def _longest(path: Path) -> int:
    """The context of a model by its configuration."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(str(path), local_files_only=True).max_position_embeddings)
