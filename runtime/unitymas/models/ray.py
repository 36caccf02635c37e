"""Model groups on Ray: one worker group per model, on an embedded cluster or a given one."""

# Ray is untyped
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError, RayTaskError

from unitymas.api.errors import BadInput, Finding, Infrastructure, UnityMASError
from unitymas.models.core import GroupSpec

if TYPE_CHECKING:
    from unitymas.models.verl.actors import Placed

OBJECT_STORE_BYTES = 200_000_000
"""Of an embedded cluster: requests and replies are text."""
CONNECT_S = 5.0
"""A Ray that is there answers sooner."""
GPU = "nvidia.com/gpu"
"""What a placement's `perNode` asks for where its workers have CUDA; this process need not."""


class Cluster:
    """The Ray cluster of this process. `users` of it are counted; the last one to leave ends what `start` started."""

    def __init__(self) -> None:
        self._users = 0
        self._ours = False

    def start(self, address: str | None, *, groups: int) -> None:
        """Join the cluster at an address, or start one here with a logical CPU a group. Blocking; prints nothing."""
        if ray.is_initialized():
            return
        if address is not None:
            _require_somebody(address)
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its default warns that it will change
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        embedded: dict[str, Any] = {"num_cpus": groups, "object_store_memory": OBJECT_STORE_BYTES}
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **({} if address else embedded),
        )
        self._ours = True

    def join(self) -> None:
        """Count one more group."""
        self._users += 1

    def leave(self) -> None:
        """Count one less."""
        self._users -= 1
        if not self._users and self._ours:
            ray.shutdown()
            self._ours = False


class RayLink:
    """The way to a GroupCore in a Ray worker."""

    def __init__(self, name: str, placed: Placed, cluster: Cluster) -> None:
        self._name = name
        self._placed = placed
        self._cluster = cluster
        self.pid = 0
        """Of the worker's process, on its node."""

    @classmethod
    async def open(cls, spec: GroupSpec, cluster: Cluster, *, run: str) -> RayLink:
        """Start the worker and build the core in it. Raises what GroupCore raises; Infrastructure when Ray broke."""
        cluster.join()
        try:
            cuda = float(spec.placement.per_node.get(GPU, 0)) > 0
            placed = await asyncio.to_thread(_placed, f"{run}-{spec.model.name}-", cuda=cuda)
        except BaseException:
            cluster.leave()
            raise
        link = cls(spec.model.name, placed, cluster)
        try:
            link.pid = await link._answer(link._placed.submit("build", spec))
        except BaseException:
            await link.close()
            raise
        return link

    async def call(self, method: str, *arguments: object) -> Any:
        """See `group.Link`."""
        return await self._answer(self._placed.submit("call", method, arguments))

    async def close(self) -> None:
        """See `group.Link`."""
        await asyncio.to_thread(self._placed.kill)
        self._cluster.leave()

    async def _answer(self, reference: Any) -> Any:
        where = f"model {self._name}"
        try:
            return await reference
        except RayTaskError as caught:
            cause: BaseException = caught.cause
            if isinstance(cause, UnityMASError):
                raise cause from None
            raise Infrastructure(where, f"{type(cause).__name__}: {cause}") from caught
        except RayError as caught:
            raise Infrastructure(where, f"its Ray worker broke: {type(caught).__name__}: {caught}") from caught


def _require_somebody(address: str) -> None:
    """Raise BadInput where nothing answers at HOST:PORT: Ray itself would try for many minutes, deaf to Ctrl-C."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # `auto` and the like: Ray tells at once
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        finding = Finding(
            "ray-address", "--ray-address", f"{address}, where nothing answers ({error})", "a running Ray"
        )
        raise BadInput([finding]) from error


def _placed(name: str, *, cuda: bool) -> Placed:
    from unitymas.models.quiet import quiet
    from unitymas.models.verl.environment import set_environment

    set_environment(cuda=cuda)  # before the first import of verl
    with quiet():
        from unitymas.models.verl.actors import Placed
    return Placed(name, cuda=cuda)
