"""Rollout by Hugging Face models: a batched decode loop for CPUs and small GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from unitymas.models.buffer import F32, Ids, Sample
from unitymas.models.engines.port import Prompt
from unitymas.models.engines.sampling import Sampler, StopStrings
from unitymas.models.tokens import Tokens

COMPACT = 0.5
"""Rows that are done leave the batch once so few of it are left: moving the cache costs about one step."""


class HfEngine:
    """Serves one Hugging Face folder.

    `dtype`: of the weights, such as `float32`. `batch_tokens`: most tokens of one batch, padding and room for the
    replies included. Equal prompts of a batch are read once; each call draws from its own seed, so that what it
    samples does not depend on its company, up to floating point.
    """

    def __init__(
        self, folder: Path, tokens: Tokens, *, dtype: str = "float32", device: str = "cpu", batch_tokens: int = 32_768
    ) -> None:
        loader = cast(Any, AutoModelForCausalLM)
        model = loader.from_pretrained(str(folder), dtype=getattr(torch, dtype), local_files_only=True)
        self.model = model.to(device).eval().requires_grad_(False)
        self.version = 0
        """Weight version that new samples are stamped with."""
        self._tokens = tokens
        self._batch_tokens = batch_tokens
        self._device = torch.device(device)

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """See `port.Engine`. Log-probs of greedy calls are those at temperature 1."""
        samples: dict[int, Sample] = {}
        for rows in batches(prompts, batch_tokens=self._batch_tokens):
            found = self._decode([prompts[row] for row in rows])
            samples.update(zip(rows, found, strict=True))
        return [samples[row] for row in range(len(prompts))]

    @torch.no_grad()
    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """See `port.Engine`. A tied weight may be left out when its twin is given."""
        own = cast("dict[str, Tensor]", self.model.state_dict())
        given: set[str] = set()
        for name, weight in weights:
            if name not in own:
                raise ValueError(f"weight {name}: the model has none of that name, but for instance {min(own)}")
            if own[name].shape != weight.shape:
                raise ValueError(f"weight {name}: found shape {tuple(weight.shape)}; expected {tuple(own[name].shape)}")
            own[name].copy_(weight)
            given.add(name)
        filled = {own[name].data_ptr() for name in given}
        missing = sorted(name for name, weight in own.items() if weight.data_ptr() not in filled)
        if missing:
            raise ValueError(f"weights missing: {', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}")
        self.version = version

    def close(self) -> None:
        """See `port.Engine`."""
        del self.model

    def _decode(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """Prefill, then one token a row and step until all rows are done."""
        batch = Batch(self.model, prompts, pad=self._tokens.pad, device=self._device)
        sampler = Sampler(prompts, device=self._device)
        stops = StopStrings(prompts, self._tokens)
        ends = torch.tensor(sorted(self._tokens.eos), device=self._device)
        room = torch.tensor([prompt.sampling.max_tokens for prompt in prompts], device=self._device)
        ids = torch.full((len(prompts), int(room.max())), self._tokens.pad, device=self._device)
        logprobs = torch.zeros(ids.shape, device=self._device)
        lengths = room.clone()
        stopped = torch.zeros_like(room, dtype=torch.bool)
        logits, rows, step = batch.prefill(ids.shape[1]), torch.arange(len(prompts), device=self._device), 0
        while True:
            token, logprob = sampler.draw(logits, rows, step)
            ids[rows, step], logprobs[rows, step] = token, logprob
            step += 1
            ended = torch.isin(token, ends) | stops.matched(ids, rows, step)
            done = rows[ended & (lengths[rows] >= step)]
            stopped[done], lengths[done] = True, step
            live = lengths[rows] > step
            alive = int(live.sum())
            if not alive:
                break
            if alive <= COMPACT * len(rows):
                token, rows = token[live], rows[live]
                batch.keep(live)
            logits = batch.advance(token)
        rows_of = zip(prompts, ids.cpu(), logprobs.cpu(), lengths.tolist(), stopped.tolist(), strict=True)
        return [self._sample(*row) for row in rows_of]

    def _sample(self, prompt: Prompt, ids: Tensor, logprobs: Tensor, length: int, stopped: bool) -> Sample:
        output: Ids = ids[:length].numpy().copy()
        kept: F32 = logprobs[:length].numpy().copy()
        return Sample(np.array(prompt.ids), output, kept, self.version, "stop" if stopped else "length")


class Batch:
    """The rows being decoded, with their key-value cache."""

    def __init__(self, model: Any, prompts: Sequence[Prompt], *, pad: int, device: torch.device) -> None:
        distinct: dict[tuple[int, ...], int] = {}
        of = [distinct.setdefault(prompt.ids, len(distinct)) for prompt in prompts]
        self._model = model
        self._of = torch.tensor(of, device=device)
        self._width = max(map(len, distinct))
        padded = [(pad,) * (self._width - len(ids)) + ids for ids in distinct]
        self._ids = torch.tensor(padded, device=device)
        sizes = torch.tensor([len(ids) for ids in distinct], device=device)
        columns = torch.arange(self._width, device=device)
        self._mask = (columns >= self._width - sizes[:, None]).long()
        self._position = sizes
        self._cache: Any = None

    def prefill(self, room: int) -> Tensor:
        """Read each distinct prompt once, and give each row its copy; `room`: most tokens to come.

        Returns the next token's logits, (rows, vocabulary).
        """
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        out = self._model(
            input_ids=self._ids, attention_mask=self._mask, position_ids=positions, use_cache=True, logits_to_keep=1
        )
        self._cache = out.past_key_values
        grown = torch.ones((len(self._mask), room), dtype=self._mask.dtype, device=self._mask.device)
        self._mask = torch.cat([self._mask, grown], 1)
        if len(self._of) > len(self._ids):
            self.keep(self._of)
        return out.logits[self._of, -1]

    def advance(self, token: Tensor) -> Tensor:
        """Append one token a row, (rows,); the next token's logits, (rows, vocabulary)."""
        self._width += 1
        out = self._model(
            input_ids=token[:, None],
            attention_mask=self._mask[:, : self._width],
            position_ids=self._position[:, None],
            past_key_values=self._cache,
            use_cache=True,
        )
        self._position = self._position + 1
        return out.logits[:, -1]

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows only: indices, or a mask of the present ones."""
        index = rows.nonzero().squeeze(1) if rows.dtype == torch.bool else rows
        self._cache.batch_select_indices(index)
        self._mask, self._position = self._mask[index], self._position[index]


def batches(prompts: Sequence[Prompt], *, batch_tokens: int) -> Iterator[list[int]]:
    """Rows of `prompts` for one batch after another: like lengths together, and equal prompts where they fit."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, prompt in enumerate(prompts):
        groups.setdefault(prompt.ids, []).append(row)
    room = max((prompt.sampling.max_tokens for prompt in prompts), default=0)
    batch: list[int] = []
    for ids in sorted(groups, key=lambda ids: (len(ids), ids)):
        most = max(1, batch_tokens // (len(ids) + room))
        for rows in _pieces(groups[ids], most):
            if len(batch) + len(rows) > most:
                yield batch
                batch = []
            batch = [*batch, *rows]
    if batch:
        yield batch


def _pieces(rows: list[int], most: int) -> Iterator[list[int]]:
    return (rows[start : start + most] for start in range(0, len(rows), most))
