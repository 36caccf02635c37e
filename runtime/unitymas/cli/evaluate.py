"""`unitymas eval`: the score of some weights of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table

from unitymas.api.resources import Project
from unitymas.cli.console import OUT, say
from unitymas.cli.display import told
from unitymas.cli.options import Chosen, First, Quiet, RunFolder, Step
from unitymas.cli.weights import step_of

if TYPE_CHECKING:
    from unitymas.controller.report import EvaluationReport

_SAMPLINGS: Mapping[str, Sequence[str]] = {"greedy": ["greedy"], "sampled": ["sampled"], "both": ["greedy", "sampled"]}


def evaluate(
    folder: RunFolder,
    step: Step = None,
    first: First = False,
    chosen: Chosen = False,
    split: Annotated[Literal["train", "dev", "test"], typer.Option(help="Which rows.")] = "test",
    sampling: Annotated[
        Literal["greedy", "sampled", "both"] | None, typer.Option(help="How; as in the run by default.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Trajectories a task when sampled.")] = None,
    output: Annotated[Literal["table", "json"], typer.Option(help="How the scores are printed.")] = "table",
    quiet: Quiet = False,
) -> None:
    """Evaluate weights of a run, with 95 % bootstrap intervals over tasks.

    \b
    Examples:
      unitymas eval runs/quickstart
      unitymas eval runs/quickstart --first --split dev
      unitymas eval runs/quickstart --step 40 --sampling sampled --repeats 4

    Trajectories go to RUN/evaluations: unitymas traces RUN/evaluations
    """
    from unitymas.cli.display import progress
    from unitymas.controller import session
    from unitymas.controller.folder import reopen
    from unitymas.controller.stop import Stop

    _, project = reopen(folder)
    asked = _asking(project, sampling=_SAMPLINGS.get(sampling or ""), repeats=repeats)
    wanted = step_of(folder, step=step, first=first, chosen=chosen)
    with progress(0, quiet=quiet or output == "json") as observer:

        async def main(stop: Stop) -> EvaluationReport:
            return await session.evaluate(asked, folder=folder, split=split, step=wanted, observer=observer, stop=stop)

        report = session.run_async(main)
    _show(report, as_json=output == "json")


def _asking(project: Project, *, sampling: Sequence[str] | None, repeats: int | None) -> Project:
    """The project, evaluated otherwise."""
    changes: Mapping[str, Any] = {"sampling": sampling, "repeats": repeats}
    given = {name: value for name, value in changes.items() if value}
    spec = project.run.spec
    evaluation = spec.evaluation.model_copy(update=given)
    changed = project.run.model_copy(update={"spec": spec.model_copy(update={"evaluation": evaluation})})
    return replace(project, run=changed)


def _show(report: EvaluationReport, *, as_json: bool) -> None:
    if as_json:
        from unitymas.controller.store import plain  # loads pyarrow: not for `--help`

        scores = {name: asdict(found) for name, found in report.scores.items()}
        say(json.dumps(plain({"split": report.split, "step": report.step, "scores": scores}), indent=2))
        return
    table = Table(f"{report.split}, after step {report.step}", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("score", "95 % interval", "tasks", "lost"):
        table.add_column(column, justify="right")
    for sampling, found in report.scores.items():
        interval = f"{told(found.low)} to {told(found.high)}"
        table.add_row(sampling, told(found.mean), interval, str(found.tasks), str(found.lost))
    OUT.print(table)
