"""Rows as verl's engines read them: jagged tensors, aligned with the position that predicts each token."""

# verl and torch.nested are untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu

from unitymas.models.rows import F32, TokenRow

Extras = Mapping[str, Sequence[F32]]
"""More values of each trained token, by name: one array of shape (tokens,) for each row."""


def to_batch(rows: Sequence[TokenRow], *, roles: Sequence[str], extras: Extras, **settings: object) -> TensorDict:
    """One forward pass.

    Jagged (rows, length): `input_ids`, `position_ids`; `loss_mask` is 1 where a trained token is predicted, and
    `rollout_log_probs, advantages, weights, roles` and the extras hold its values there, 0 elsewhere. `roles` are
    places in the given list. A temperature that all rows share is a number, as verl then need not scale logits.
    """
    data: dict[str, Any] = {
        "input_ids": _jagged([np.concatenate([row.prompt, row.output]) for row in rows]),
        "position_ids": _jagged([np.arange(row.length) for row in rows]),
        "loss_mask": _placed(rows, [np.ones(row.output.size, dtype=np.int64) for row in rows]),
        "roles": _placed(rows, [np.full(row.output.size, roles.index(row.role)) for row in rows]),
        "rollout_log_probs": _placed(rows, [row.log_probs for row in rows]),
        "advantages": _placed(rows, [row.advantages for row in rows]),
        "weights": _placed(rows, [np.full(row.output.size, row.weight, dtype=np.float32) for row in rows]),
        **{name: _placed(rows, values) for name, values in extras.items()},
    }
    temperatures = [row.temperature for row in rows]
    shared = len(set(temperatures)) == 1
    if not shared:
        data["temperature"] = torch.tensor(temperatures, dtype=torch.float32)
    batch = tu.get_tensordict(data, non_tensor_dict={})
    tu.assign_non_tensor(batch, micro_batch_size_per_gpu=len(rows), use_dynamic_bsz=False, **settings)
    if shared:
        tu.assign_non_tensor(batch, temperature=temperatures[0])
    return batch


def trained(values: torch.Tensor, data: TensorDict) -> torch.Tensor:
    """Values of the trained tokens, row after row: jagged (rows, length) to (tokens,)."""
    mask: Any = data["loss_mask"]
    return values.values()[mask.values().bool()]


def by_row(values: torch.Tensor, rows: Sequence[TokenRow]) -> list[F32]:
    """Values (tokens,) cut into one array for each row."""
    flat: F32 = values.float().cpu().numpy()
    return np.split(flat, np.cumsum([row.output.size for row in rows])[:-1])


def _jagged(arrays: Sequence[NDArray[np.generic]]) -> torch.Tensor:
    offsets = torch.tensor(np.cumsum([0, *(array.size for array in arrays)]))
    return torch.nested.nested_tensor_from_jagged(torch.from_numpy(np.concatenate(arrays)), offsets=offsets)


def _placed(rows: Sequence[TokenRow], values: Sequence[NDArray[np.generic]]) -> torch.Tensor:
    """Put a value of each trained token on the position before the token: it predicts it."""
    return _jagged([np.pad(value, (row.prompt.size - 1, 1)) for row, value in zip(rows, values, strict=True)])
