"""How a run went, as a curve: in one line of text, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unitymas.cli.display import role_rewards

_BARS = "▁▂▃▄▅▆▇█"
PICTURE = "curve.png"


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a curve; `low` and `high` bound it where there is an interval."""

    step: int
    value: float
    low: float
    high: float


def dev_curves(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Point]]:
    """Score on dev by step, for each kind of sampling; nothing where there was none."""
    curves: dict[str, list[Point]] = {}
    for record in records:
        split, _, sampling = record["phase"].partition("-")
        if split == "dev" and record["score"] is not None:
            point = Point(int(record["step"]), record["score"], record["low"], record["high"])
            curves.setdefault(sampling, []).append(point)
    return curves


def reward_curves(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Point]]:
    """Mean reward in training by step, for each role."""
    curves: dict[str, list[Point]] = {}
    for record in records:
        if record["phase"] == "train":
            told: dict[str, Any] = role_rewards(record)
            for role, value in told.items():
                if value is not None:
                    curves.setdefault(role, []).append(Point(int(record["step"]), value, value, value))
    return curves


def sparkline(values: Sequence[float], *, width: int = 40) -> str:
    """The values as bars of eight heights, lowest to highest; at most `width` of them, evenly chosen."""
    if not values:
        return ""
    if len(values) > width:
        values = [values[round(place * (len(values) - 1) / (width - 1))] for place in range(width)]
    low, high = min(values), max(values)
    if high == low:
        return _BARS[0] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


def text_curves(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line a curve: its name, first value, bars, last value."""
    named = {f"dev {sampling}": points for sampling, points in dev_curves(records).items()}
    named |= {f"reward {role}": points for role, points in reward_curves(records).items()}
    wide = max((len(name) for name in named), default=0)
    return [
        f"{name:<{wide}}  {values[0]:6.3f}  {sparkline(values)}  {values[-1]:.3f}"
        for name, points in named.items()
        if (values := [point.value for point in points])
    ]


def draw(records: Sequence[Mapping[str, Any]], path: Path, *, title: str) -> None:
    """Write the picture: score on dev, with its intervals, beside reward by role, by step."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # half a second: only at the end of a run
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    panels = (("score on dev", dev_curves(records)), ("mean reward in training", reward_curves(records)))
    for axes, (name, curves) in zip(figure.subplots(1, 2), panels, strict=True):
        for label, points in curves.items():
            steps = [point.step for point in points]
            axes.plot(steps, [point.value for point in points], label=label, marker="." if len(steps) < 30 else "")
            axes.fill_between(steps, [point.low for point in points], [point.high for point in points], alpha=0.2)
        axes.set(xlabel="step", ylabel=name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        if curves:
            axes.legend()
    figure.savefig(path, format="png", dpi=120)
