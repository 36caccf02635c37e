"""How one token is drawn for each row of a batch: from the row's own seed, whatever its company."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unitymas.models.engines.port import Prompt
from unitymas.models.tokens import Tokens

SEED_BITS = 128


class Sampler:
    """Draws by inverse distribution function: step t of a call uses the t-th uniform number of its seed."""

    def __init__(self, prompts: Sequence[Prompt], *, device: torch.device) -> None:
        asked = [prompt.sampling for prompt in prompts]
        room = max(sampling.max_tokens for sampling in asked)
        greedy = [sampling.temperature == 0 for sampling in asked]
        self._uniforms = torch.from_numpy(np.stack([uniforms(p.seed, room) for p in prompts])).to(device)
        self._greedy = torch.tensor(greedy, device=device)
        self._any_greedy, self._all_greedy = any(greedy), all(greedy)
        self._temperature = torch.tensor([sampling.temperature or 1.0 for sampling in asked], device=device)
        self._filters = any(sampling.top_k > 0 or sampling.top_p < 1 for sampling in asked) and not self._all_greedy
        self._top_k = torch.tensor([sampling.top_k or 2**62 for sampling in asked], device=device)
        self._top_p = torch.tensor([s.top_p if s.top_p < 1 else math.inf for s in asked], device=device)

    def draw(self, logits: Tensor, rows: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The next token of each row and its log-prob, (rows,) each.

        `logits`: (rows, vocabulary). `rows`: which prompts, (rows,). A greedy row takes the likeliest token, with
        its log-prob at temperature 1.
        """
        scaled = logits.float() / self._temperature[rows, None]
        if self._filters:
            scaled = filtered(scaled, self._top_k[rows, None], self._top_p[rows, None])
        logprobs = scaled.log_softmax(-1)
        token = logprobs.argmax(-1) if self._any_greedy else None
        if not self._all_greedy:
            drawn = inverse(logprobs.exp(), self._uniforms[rows, step, None])
            token = drawn if token is None else torch.where(self._greedy[rows], token, drawn)
        assert token is not None
        return token, logprobs.gather(1, token[:, None]).squeeze(1)


class StopStrings:
    """Which rows have just said one of their stop strings."""

    def __init__(self, prompts: Sequence[Prompt], tokens: Tokens) -> None:
        self._stops = [prompt.sampling.stop for prompt in prompts]
        self._tokens = tokens
        # A token says at least a byte, so the end of the reply is enough to look at; one more for a leading space.
        self._tail = [1 + max((len(stop.encode()) for stop in stops), default=0) for stops in self._stops]

    def matched(self, ids: Tensor, rows: Tensor, step: int) -> Tensor:
        """Whether a stop string is in the last tokens, (rows,) bool. `ids`: (prompts, steps), `step` of them said."""
        if not any(self._stops):
            return torch.zeros_like(rows, dtype=torch.bool)
        return torch.tensor([self._says(ids[row, :step], row) for row in rows.tolist()], device=rows.device)

    def _says(self, ids: Tensor, row: int) -> bool:
        if not self._stops[row]:
            return False
        text = self._tokens.decode(ids[-self._tail[row] :].tolist())
        return any(stop in text for stop in self._stops[row])


def uniforms(seed: int, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The first `n` numbers in [0, 1) of a seed's own stream."""
    return np.random.Generator(np.random.Philox(key=seed % 2**SEED_BITS)).random(n)


def inverse(probs: Tensor, uniform: Tensor) -> Tensor:
    """The token at which the cumulative probability passes `uniform`, (rows,). `probs` (rows, vocabulary)."""
    cumulated = probs.cumsum(-1, dtype=torch.float64)  # float32 loses tokens of large vocabularies
    mark = uniform * cumulated[:, -1:]
    return torch.searchsorted(cumulated, mark, right=True).squeeze(1).clamp(max=probs.shape[1] - 1)


def filtered(logits: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """Logits with -inf outside the `top_k` likeliest, then outside the fewest that hold `top_p` of what is left.

    `logits` (rows, vocabulary); `top_k`, `top_p` (rows, 1). The likeliest token always stays.
    """
    ordered, order = logits.sort(-1, descending=True)
    beyond = torch.arange(logits.shape[1], device=logits.device) >= top_k
    probs = ordered.masked_fill(beyond, -math.inf).softmax(-1)
    beyond = beyond | (probs.cumsum(-1) - probs >= top_p)
    beyond[:, 0] = False
    return logits.masked_fill(torch.zeros_like(beyond).scatter(1, order, beyond), -math.inf)
