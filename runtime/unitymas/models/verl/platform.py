"""verl on a machine without accelerators: its platform plug-in for the CPU.

verl finds it through the entry point group `verl.plugins`, or through VERL_USE_EXTERNAL_MODULES. It registers itself
only where CUDA is absent, so a GPU machine never sees it.
"""

# verl is untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUntypedBaseClass=false
# pyright: reportUnknownVariableType=false, reportUntypedClassDecorator=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import psutil
import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry


def _nothing(*_arguments: object, **_keywords: object) -> None:
    """Done: there is no device to do it on."""


def _zero(*_arguments: object) -> int:
    return 0


def _name(*_arguments: object) -> str:
    return "cpu"


def _random_state(*_arguments: object) -> torch.Tensor:
    return torch.get_rng_state()


def _set_random_state(state: torch.Tensor, *_arguments: object) -> None:
    torch.set_rng_state(state)


def _memory(*_arguments: object) -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.available, memory.total


def _device_module() -> ModuleType:
    """What verl expects of `torch.cuda`, for the CPU."""
    module = ModuleType("unitymas_cpu_device")
    for name in ("set_device", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats"):
        setattr(module, name, _nothing)
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"):
        setattr(module, name, _zero)
    own: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": _zero,
        "mem_get_info": _memory,
        "get_device_name": _name,
        "get_rng_state": _random_state,
        "set_rng_state": _set_random_state,
        "manual_seed": torch.manual_seed,
        "manual_seed_all": torch.manual_seed,
        "Stream": torch.cpu.Stream,
        "stream": torch.cpu.stream,
        "current_stream": torch.cpu.current_stream,
    }
    for name, value in own.items():
        setattr(module, name, value)
    return module


class PlatformCpu(PlatformBase):
    """One CPU device, gloo between processes, no inter-process device memory."""

    _module = _device_module()

    @property
    def device_name(self) -> str:
        return "cpu"

    @property
    def vendor_name(self) -> str:
        return "cpu"

    @property
    def device_module(self) -> ModuleType:
        return self._module

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return not torch.cuda.is_available()

    def current_device(self) -> Any:
        return torch.device("cpu")  # an index would mean an accelerator to `Tensor.to`

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "UNITYMAS_CPU_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Generator[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {}

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None


if not torch.cuda.is_available():
    PlatformRegistry.register(platform="cpu")(PlatformCpu)
