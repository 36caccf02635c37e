"""From the controller's rows to what the trainer trains on: each token with its advantage and weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unitymas.api.algorithm import Algorithm, Scale
from unitymas.api.records import Row
from unitymas.credit.advantage import advantages, loss_weights
from unitymas.credit.estimators.gae import Gae, at_last_token
from unitymas.credit.port import F64, Bools
from unitymas.credit.stats import numbered
from unitymas.models.buffer import Sample
from unitymas.models.rows import F32, TokenRow

Held = Mapping[str, tuple[Sample, float]]
"""By call: what was sampled, and at which temperature."""
Values = Callable[[Sequence[TokenRow]], list[F32]]
"""A critic's value of each trained token, (tokens,) for each row."""
NO_UNIT = ("none", "")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one update trains on: one row per call."""

    rows: Sequence[TokenRow]
    metrics: Mapping[str, float]
    values: Sequence[F32] = ()
    """The critic's, where there is one."""
    returns: Sequence[F32] = ()
    """What it should have said."""


def lesson(rows: Sequence[Row], held: Held, algorithm: Algorithm, *, values: Values | None) -> Lesson:
    """The lesson of one update of one model; by tokens where there is a critic, else by visits.

    Raises ValueError for a reward that is not finite.
    """
    if not any(row.calls for row in rows):
        return Lesson([], {})
    tokens = [sum(held[call][0].output.size for call in row.calls) for row in rows]
    if values is not None:
        return _of_tokens(rows, held, loss_weights(rows, tokens, algorithm), algorithm, values)
    found = advantages(rows, tokens, algorithm)
    of_visits = zip(rows, found.values.tolist(), found.token_weights.tolist(), strict=True)
    own = [each for row, advantage, weight in of_visits for each in _calls(row, held, weight, advantage)]
    counts = {"groups": found.groups, "small_groups": found.small_groups, "equal_groups": found.equal_groups}
    return Lesson(own, {name: float(count) for name, count in counts.items()})


def _of_tokens(rows: Sequence[Row], held: Held, weights: F64, algorithm: Algorithm, values: Values) -> Lesson:
    """Each call is an episode of its own, which ends with the visit's reward on its last token."""
    weighed = zip(rows, weights.tolist(), strict=True)
    pairs = [(row, each) for row, weight in weighed for each in _calls(row, held, weight, 0.0)]
    visits, plain = [row for row, _ in pairs], [each for _, each in pairs]
    said = values(plain)
    sizes = np.asarray([each.output.size for each in plain], dtype=np.int64)
    mask = np.arange(sizes.max(initial=0)) < sizes[:, None]
    rewards = at_last_token(np.asarray([row.reward for row in visits], dtype=np.float64), mask)
    told = np.zeros(mask.shape)
    told[mask] = np.concatenate(said)
    rules = {role: algorithm.for_role(role) for role in {row.role for row in visits}}
    gamma = np.asarray([rules[row.role].gamma for row in visits], dtype=np.float64)
    gae, units = Gae(gamma, algorithm.lam), [_unit(row, rules[row.role].divisor) for row in visits]
    raw, returns = gae.token_advantages(rewards, told, mask)
    whitened, _ = gae.token_advantages(rewards, told, mask, numbered(units))
    divided = np.asarray([unit != NO_UNIT for unit in units], dtype=np.bool_)
    chosen = np.where(divided[:, None], whitened, raw)
    own = [replace(each, advantages=part) for each, part in zip(plain, _cut(chosen, mask), strict=True)]
    return Lesson(own, {}, said, _cut(returns, mask))


def _unit(row: Row, scale: Scale) -> tuple[str, str]:
    """What the tokens of a row are whitened with."""
    return scale, {"none": "", "group": row.group, "role": row.role, "model": ""}[scale]


def _calls(row: Row, held: Held, weight: float, advantage: float) -> Iterator[TokenRow]:
    for sample, temperature in (held[call] for call in row.calls):
        yield TokenRow(
            prompt=sample.prompt,
            output=sample.output,
            log_probs=sample.logprobs,
            advantages=np.full(sample.output.size, advantage, dtype=np.float32),
            weight=weight,
            role=row.role,
            temperature=temperature,
        )


def _cut(table: F64, mask: Bools) -> list[F32]:
    return [row[here].astype(np.float32) for row, here in zip(table, mask, strict=True)]
