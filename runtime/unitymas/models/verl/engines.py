"""verl's own FSDP2 engines, registered for the CPU. verl registers them for accelerators only."""

# verl is untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

from __future__ import annotations

from functools import cache
from typing import Any, cast

import torch
from verl.plugin.platform import get_platform
from verl.utils import tensordict_utils as tu
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithValueHead

DEVICE = "cpu"
BACKEND = "fsdp2"  # FSDP1 broadcasts through an accelerator


class CpuPolicyEngine(FSDPEngineWithLMHead):
    """A policy whose log-probabilities are taken at the trained tokens only, all at once.

    verl takes them at every token of prompts too, one by one: a third of an update of a small model on a CPU.
    """

    def prepare_model_outputs(
        self, output: Any, output_args: Any, micro_batch: Any, logits_processor_func: object
    ) -> dict[str, torch.Tensor]:
        """`log_probs`, and `entropy` where asked for: jagged (rows, length), 0 where nothing is trained."""
        offsets, trained = micro_batch["input_ids"].offsets(), micro_batch["loss_mask"].values().bool()
        sizes = offsets.diff()
        where = torch.arange(output.logits.shape[1]) < sizes[:, None]
        where[where.clone()] = trained
        temperatures = output_args["temperature"].repeat_interleave(sizes)[trained]
        scores = torch.log_softmax(output.logits[where] / temperatures[:, None], dim=-1)
        labels = output_args["input_ids_rmpad_rolled"][trained]
        found = {"log_probs": scores.gather(-1, labels[:, None]).squeeze(-1)}
        if tu.get_non_tensor_data(data=micro_batch, key="calculate_entropy", default=False):
            found["entropy"] = -(scores.exp() * scores).sum(-1)
        blank = scores.new_zeros(trained.shape)
        return {
            name: torch.nested.nested_tensor_from_jagged(blank.masked_scatter(trained, values), offsets=offsets)
            for name, values in found.items()
        }


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
    EngineRegistry.register(model_type="language_model", backend=BACKEND, device=DEVICE)(CpuPolicyEngine)
    EngineRegistry.register(model_type="value_model", backend=BACKEND, device=DEVICE)(CpuValueEngine)
