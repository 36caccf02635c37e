"""Readings of a metric at several visits, as the rewarded visit sees them: program order, `before` and `after`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from unitymas.api import shapes
from unitymas.api.records import Order

STATISTICS = ("first", "last", "max", "min", "mean", "sum", "count")
SERIES = shapes.Record(tuple((name, shapes.NUMBER) for name in STATISTICS))
"""What metrics see of a series."""
PLACED = shapes.Record((*SERIES.fields, ("before", shapes.NUMBER), ("after", shapes.NUMBER)))
"""What a rewarded visit sees of a series."""


def compare(a: Order, b: Order) -> int | None:
    """-1 when `a` comes before `b` in program order, 1 when after, 0 when they are the same place.

    None when they ran at once: the first levels that differ are both parallel.
    """
    for (a_parallel, a_position), (b_parallel, b_position) in zip(a, b, strict=False):
        if a_parallel != b_parallel or a_position != b_position:
            if a_parallel and b_parallel:
                return None
            return -1 if (a_position, a_parallel) < (b_position, b_parallel) else 1
    return (len(a) > len(b)) - (len(a) < len(b))


@dataclass(frozen=True)
class Series:
    """Readings with their places, in the trajectory's order. All values are doubles; an empty series is all 0."""

    orders: Sequence[Order]
    values: Sequence[float]

    @cached_property
    def statistics(self) -> dict[str, float]:
        """What metrics see: first, last, max, min, mean, sum, count."""
        if not self.values:
            return dict.fromkeys(STATISTICS, 0.0)
        total = float(sum(self.values))
        return {
            "first": self.values[0],
            "last": self.values[-1],
            "max": max(self.values),
            "min": min(self.values),
            "mean": total / len(self.values),
            "sum": total,
            "count": float(len(self.values)),
        }

    def for_visit(self, order: Order) -> dict[str, float]:
        """What a visit at that place sees: the statistics, `before` and `after`.

        `before` is the last reading strictly before it, else 0; `after` the first at it or after it, else `before`.
        Readings taken at once with the visit are neither.
        """
        before, after = 0.0, None
        for reading, value in zip(self.orders, self.values, strict=True):
            match compare(reading, order):
                case -1:
                    before = value
                case 0 | 1 if after is None:
                    after = value
                case _:
                    pass
        return {**self.statistics, "before": before, "after": before if after is None else after}
