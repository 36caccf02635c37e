"""What must hold before verl is imported: its environment, and on CPUs our plug-in."""

from __future__ import annotations

import logging
import os

from unitymas.models.quiet import quiet

PLUGIN = "unitymas.models.verl.platform"
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
"""A worker that is the only one; a Ray worker group has set its own before."""
ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
"""verl's Worker insists on an address; one that is alone never uses it."""


def verl_environment(*, cuda: bool) -> dict[str, str]:
    """What verl and its workers read from the environment, with CUDA or without; nothing that a user would set."""
    common = {"VERL_LOGGING_LEVEL": "WARN", "TOKENIZERS_PARALLELISM": "false", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    return common if cuda else {**common, "VERL_PLATFORM": "cpu", "VERL_USE_EXTERNAL_MODULES": PLUGIN}


def set_environment(*, cuda: bool) -> None:
    """Set it where nothing else is set yet. Call before the first import of verl."""
    for key, value in verl_environment(cuda=cuda).items():
        os.environ.setdefault(key, value)


def prepare() -> None:
    """Make this process one in which trainers can be built: environment, engines, verl imported quietly. Idempotent.

    Raises RuntimeError when verl is not on the CPU where there is no CUDA: it was imported before, by something else.
    """
    import torch

    cuda = torch.cuda.is_available()
    set_environment(cuda=cuda)
    if "RANK" not in os.environ:
        os.environ.update(ALONE | ADDRESS)
    with quiet():
        import verl.workers.engine_workers_tinker  # pyright: ignore[reportUnusedImport]  # noqa: F401

        if not cuda:
            from unitymas.models.verl.engines import register

            register()
    logging.getLogger("verl").setLevel(logging.WARNING)
