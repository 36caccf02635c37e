"""verl's own FSDP2 engines, registered for the CPU. verl registers them for accelerators only."""

# verl is untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

from __future__ import annotations

from functools import cache
from typing import Any, cast

from verl.plugin.platform import get_platform
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithValueHead

DEVICE = "cpu"
BACKEND = "fsdp2"  # FSDP1 broadcasts through an accelerator


class CpuValueEngine(FSDPEngineWithValueHead):
    """A critic whose attention is sdpa: verl's loader asks for flash attention by name."""

    def _build_module(self) -> Any:
        from transformers import AutoModelForTokenClassification
        from verl.utils.torch_dtypes import PrecisionType

        model, engine = cast(Any, self).model_config, cast(Any, self).engine_config
        config: Any = model.hf_config
        config.num_labels, config.classifier_dropout = 1, 0.0
        dtype = PrecisionType.to_dtype(engine.model_dtype)
        module = AutoModelForTokenClassification.from_pretrained(
            model.local_path, config=config, dtype=dtype, attn_implementation="sdpa"
        )
        return module.to(dtype)


@cache
def register() -> None:
    """Register the engines, once, and make sure that verl is on the CPU. Raises RuntimeError when it is not."""
    found = get_platform().device_name
    if found != DEVICE:
        raise RuntimeError(
            f"verl runs on platform {found}; expected {DEVICE}, as there is no CUDA here. "
            "Unset VERL_PLATFORM, and import verl only through unitymas.models.verl"
        )
    EngineRegistry.register(model_type="language_model", backend=BACKEND, device=DEVICE)(FSDPEngineWithLMHead)
    EngineRegistry.register(model_type="value_model", backend=BACKEND, device=DEVICE)(CpuValueEngine)
