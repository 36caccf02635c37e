"""The end of a run: before and after on test, the curve, where everything is, what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from unitymas.cli.console import OUT, say
from unitymas.cli.curve import PICTURE, draw, text_curves
from unitymas.cli.display import told
from unitymas.controller.evaluate import Estimate

if TYPE_CHECKING:
    from unitymas.controller.session import Summary


def show_outcome(summary: Summary) -> None:
    """Show how a run ended and draw its curve into its folder."""
    from unitymas.controller.store import Store, aside

    records = Store(summary.folder).read_metrics()
    with aside(summary.folder / PICTURE) as part:
        draw(records, part, title=summary.run)
    say()
    if summary.first:
        OUT.print(before_and_after(summary.first, summary.chosen, chosen_step=summary.chosen_step))
    if summary.first and summary.chosen_step == 0:
        say("the chosen weights are the first ones: no later ones were better on dev")
    for line in text_curves(records):
        say(line)
    tokens = sum(float(str(record.get("output_tokens", 0))) for record in records)
    say(
        f"\n{summary.steps} steps in {summary.seconds:.0f} s "
        f"({summary.train_cpu_s:.0f} CPU s of training); {tokens:,.0f} tokens sampled"
    )
    folder = summary.folder
    say(f"everything is in {folder}: summary.json, {PICTURE}, metrics.jsonl, trajectories/")
    say(f"next:  unitymas traces {folder}", style="cyan")
    say(f"       unitymas export {folder} --to models", style="cyan")


def before_and_after(first: Mapping[str, Estimate], chosen: Mapping[str, Estimate], *, chosen_step: int) -> Table:
    """Scores on test of first and chosen weights, with 95 % intervals."""
    table = Table("on test", "first weights", f"after step {chosen_step}", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("change", justify="right")
    for sampling, before in first.items():
        after = chosen[sampling]
        table.add_row(sampling, interval(before), interval(after), told(after.mean - before.mean, "+.3f"))
    return table


def interval(estimate: Estimate) -> str:
    """A mean with its interval; what was lost to infrastructure is told."""
    lost = f" ({estimate.lost} lost)" if estimate.lost else ""
    if math.isnan(estimate.mean):
        return f"none{lost}"
    return f"{estimate.mean:.3f}  {estimate.low:.3f} to {estimate.high:.3f}{lost}"
