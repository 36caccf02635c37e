"""A trainer on disk: checkpoints by verl's own manager, exports as Hugging Face folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from unitymas.models.quiet import quiet
from unitymas.models.verl.trainer import PolicyTrainer

POLICY, CRITIC = "policy", "critic"
"""Sub-folders. Each holds weights, optimiser, learning rate schedule and random state of one worker."""
READABLE = 0o644


def save(trainer: PolicyTrainer, folder: Path) -> None:
    """Write all that a later `load` needs to go on bit for bit; on disk when this returns.

    The reference is not written: it is the model's first weights.
    """
    with quiet():
        trainer.policy.verl.save_checkpoint(str(folder / POLICY))
        if trainer.critic is not None:
            trainer.critic.verl.save_checkpoint(str(folder / CRITIC))
    settle(folder)


def load(trainer: PolicyTrainer, folder: Path) -> None:
    """Read what `save` wrote. Raises FileNotFoundError when a part is missing."""
    with quiet():
        if trainer.critic is not None:
            trainer.critic.verl.load_checkpoint(str(folder / CRITIC))
        trainer.policy.verl.load_checkpoint(str(folder / POLICY))


def export(weights: Iterable[tuple[str, torch.Tensor]], *, source: Path, folder: Path) -> None:
    """Write weights as a Hugging Face folder with the source's configuration; the tokenizer is the caller's."""
    held = {name: weight.detach().to("cpu") for name, weight in weights}
    dtype = next(iter(held.values())).dtype
    with quiet():
        config = AutoConfig.from_pretrained(str(source), local_files_only=True)
        with torch.device("meta"):
            shell = cast(Any, AutoModelForCausalLM).from_config(config, dtype=dtype)
        shell.save_pretrained(str(folder), state_dict=held)
    generation = source / "generation_config.json"
    if generation.exists():
        shutil.copyfile(generation, folder / generation.name)
    for path in folder.iterdir():
        path.chmod(READABLE)  # safetensors writes for its own user only; exported weights are for others too
    settle(folder)


def settle(folder: Path) -> None:
    """Make every file and folder below reach the disk, so that a rename afterwards publishes whole contents."""
    for root, _, names in os.walk(folder):
        for path in (*(Path(root) / name for name in names), Path(root)):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
