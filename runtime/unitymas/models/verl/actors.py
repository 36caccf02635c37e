"""Model groups as Ray workers of verl: one worker group per model, each worker with a GroupCore.

Call `environment.set_environment` before this module is first imported: it imports verl.
"""

# verl and Ray are untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

import os
from typing import Any

import ray
import torch
from verl.single_controller.base import Worker
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from unitymas.models.core import GroupCore, GroupSpec
from unitymas.models.verl.environment import ADDRESS, verl_environment


class GroupWorker(Worker):
    """The process of one model group; does one call after another."""

    def __init__(self) -> None:
        super().__init__()
        torch.set_num_threads(1)
        self._core: GroupCore | None = None

    def build(self, spec: GroupSpec) -> int:
        """Build the core; the process's id. Raises what GroupCore raises."""
        self._core = GroupCore(spec)
        return os.getpid()

    def call(self, method: str, arguments: tuple[object, ...]) -> Any:
        """What the core's method returns. Raises what it raises."""
        return getattr(self._core, method)(*arguments)


class Placed:
    """A started worker group of one model."""

    def __init__(self, name: str, *, cuda: bool) -> None:
        """Blocks until Ray has room for it. name: a prefix of its actor, unique in the cluster."""
        pool = RayResourcePool([1], use_gpu=cuda, max_colocate_count=1, name_prefix=name)
        self._group = RayWorkerGroup(
            resource_pool=pool,
            ray_cls_with_init=RayClassWithInitArgs(ray.remote(GroupWorker)),
            name_prefix=name,
            device_name="cuda" if cuda else "cpu",
            worker_env={**verl_environment(cuda=cuda), "OMP_NUM_THREADS": "1"},
            # of a worker that is alone; found out, they would cost a process of their own
            master_addr=ADDRESS["MASTER_ADDR"],
            master_port=ADDRESS["MASTER_PORT"],
        )
        self._pool = pool

    def submit(self, method: str, *arguments: object) -> Any:
        """Start a method of GroupWorker; a reference to what it will return."""
        return self._group.execute_rank_zero_async(method, *arguments)

    def kill(self) -> None:
        """End the process and give its room back."""
        for worker in self._group.workers:
            ray.kill(worker)
        for group in self._pool.pgs or ():
            ray.util.remove_placement_group(group)
