"""One verl training worker: a model under FSDP2 with its optimiser, run forward pass by forward pass."""

# verl is untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig, TrainingWorkerConfig
from verl.workers.engine_workers_tinker import TinkerTrainingWorker

from unitymas.api.mapping import Optimizer
from unitymas.models.quiet import quiet
from unitymas.models.rows import F32, TokenRow, micro_batches
from unitymas.models.verl.batch import Extras, by_row, to_batch, trained
from unitymas.models.verl.losses import Metrics

Kind = Literal["language_model", "value_model"]
Objective = Callable[..., tuple[torch.Tensor, Metrics]]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What one training worker is built from."""

    path: str
    """A Hugging Face folder."""
    kind: Kind
    optimizer: Optimizer
    micro_batch: int
    """Most rows of one forward pass."""
    precision: Literal["fp32", "bf16"]
    seed: int
    """Of what the folder does not hold: a critic's head."""


class TrainingWorker:
    """A verl TrainingWorker, fed with rows. Only the one process of its group may hold several."""

    def __init__(self, settings: WorkerSettings) -> None:
        _join()
        self._settings = settings
        with quiet():
            torch.manual_seed(settings.seed)
            self.verl: Any = TinkerTrainingWorker(_configuration(settings))
            self.verl.reset()

    def infer(self, rows: Sequence[TokenRow]) -> list[F32]:
        """Log-probability, or value, of each row's trained tokens; no gradient."""
        name = "values" if self._settings.kind == "value_model" else "log_probs"
        found: dict[int, F32] = {}
        for indices in self._micro_batches(rows):
            chosen = [rows[index] for index in indices]
            batch = to_batch(chosen, roles=_roles(chosen), extras={}, compute_loss=False, calculate_entropy=False)
            values = trained(tu.get(self.verl.infer_batch(batch), name), batch)
            found.update(zip(indices, by_row(values, chosen), strict=True))
        return [found[index] for index in range(len(rows))]

    def accumulate(
        self, rows: Sequence[TokenRow], objective: Objective, *, roles: Sequence[str], extras: Extras, entropy: bool
    ) -> Metrics:
        """Gradients of one optimiser step, from every row once. Metrics are summed, those named `_max` maximised."""
        self.verl.set_loss_fn(objective)
        self.verl.optimizer_zero_grad()
        total: Metrics = {}
        for indices in self._micro_batches(rows):
            chosen = [rows[index] for index in indices]
            held = {name: [values[index] for index in indices] for name, values in extras.items()}
            batch = to_batch(chosen, roles=roles, extras=held, calculate_entropy=entropy)
            found = tu.get(self.verl.forward_backward(batch), "metrics")
            merge(total, {key: _single(value) for key, value in found.items() if not key.startswith("perf/")})
        return total

    def step(self) -> float:
        """One optimiser step, none where gradients are not finite; their norm before clipping."""
        return float(self.verl.optimizer_step()["grad_norm"])

    @property
    def learning_rate(self) -> float:
        """Of the next optimiser step."""
        return float(self.verl.engine.lr_scheduler.get_last_lr()[0])

    def advance(self) -> None:
        """Advance the learning rate schedule by one update."""
        self.verl.engine.lr_scheduler_step()

    def parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every weight, whole, by its Hugging Face name. Tensors may alias the trainer's: copy, never keep."""
        return self.verl.engine.get_per_tensor_param()[0]

    def _micro_batches(self, rows: Sequence[TokenRow]) -> list[list[int]]:
        return micro_batches([row.length for row in rows], most_rows=self._settings.micro_batch)


def _join() -> None:
    """Join the process group. A worker that is alone keeps its store in memory: no port, so nothing can clash."""
    if not dist.is_initialized():
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        alone: dict[str, Any] = {"store": HashStore()} if size == 1 else {}
        # verl itself would ask for gloo twice where there is no CUDA
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, rank=rank, world_size=size, **alone)


def _configuration(settings: WorkerSettings) -> TrainingWorkerConfig:
    optimizer = settings.optimizer
    precision = {"param_dtype": settings.precision, "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    return TrainingWorkerConfig(
        model_type=settings.kind,
        model_config=HFModelConfig(
            path=settings.path,
            use_remove_padding=False,
            enable_gradient_checkpointing=False,
            override_config={"attn_implementation": "sdpa"},
            load_tokenizer=False,
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2",
            model_dtype="fp32",
            mixed_precision=precision,
            use_torch_compile=False,
            use_dynamic_bsz=False,
            micro_batch_size_per_gpu=settings.micro_batch,
            infer_micro_batch_size_per_gpu=settings.micro_batch,
        ),
        optimizer_config=FSDPOptimizerConfig(
            lr=optimizer.learning_rate,
            betas=optimizer.betas,
            weight_decay=optimizer.weight_decay,
            clip_grad=optimizer.max_grad_norm,
            lr_warmup_steps=optimizer.warmup_steps,
            total_training_steps=1,  # read by schedules that end; ours is constant after the warmup
        ),
        checkpoint_config=CheckpointConfig(
            save_contents=["model", "optimizer", "extra"], load_contents=["model", "optimizer", "extra"]
        ),
    )


def _roles(rows: Sequence[TokenRow]) -> list[str]:
    return sorted({row.role for row in rows})


def _single(value: Any) -> float:
    """The one number in what verl gathered: a list per process, of a list per forward pass."""
    while isinstance(value, list):
        (value,) = value
    return float(value)


def merge(total: Metrics, part: Metrics) -> None:
    """Add one forward pass or step to the total: sums are added; of maxima, one that is no number stays."""
    for key, value in part.items():
        if key.endswith("_max"):
            total[key] = float(np.maximum(total.get(key, value), value))
        else:
            total[key] = total.get(key, 0.0) + value
