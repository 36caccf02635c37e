"""The estimator port: what an estimator is given for one update of one model, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Batch:
    """The visits of one update of one model, as columns of shape (visits,). Raises ValueError for a reward not finite.

    Numbers name things: visits with equal numbers belong together; the numbers themselves mean nothing.
    """

    rewards: F64
    """Return of each visit, in reward units."""
    groups: I64
    """Number of the comparison group."""
    tokens: I64
    """Trained tokens of the visit's calls; 0 when foreign."""
    units: I64
    """Number of the unit of `scale`: the visits whose spread divides them."""
    divided: Bools
    """False: `scale` is none for the visit."""
    counted: Bools
    """False: takes part in nothing and gets 0."""
    foreign: Bools
    """True: another model's visit, which forms the baseline and gets 0."""
    names: Sequence[str] = ()
    """Of the visits, for messages."""

    def __post_init__(self) -> None:
        broken = np.flatnonzero(~np.isfinite(self.rewards))
        if broken.size:
            first = int(broken[0])
            name = self.names[first] if self.names else f"number {first}"
            raise ValueError(f"visit {name}: found reward {self.rewards[first]}; expected a finite number")

    @property
    def trained(self) -> Bools:
        """The visits that get an advantage."""
        return self.counted & ~self.foreign


@runtime_checkable
class Estimator(Protocol):
    """From the rewards of visits to their advantages. A newcomer is one file and one line of `api.names`."""

    def advantages(self, batch: Batch) -> F64:
        """Advantage of each visit, shape (visits,); exactly 0 where `batch.trained` is false or rewards are equal."""
        ...


@runtime_checkable
class TokenEstimator(Protocol):
    """An estimator that needs a critic, and so works on tokens."""

    def token_advantages(self, rewards: F64, values: F64, mask: Bools, units: I64 | None) -> tuple[F64, F64]:
        """Advantages and returns of each token, each of shape (sequences, tokens); 0 outside the mask."""
        ...
