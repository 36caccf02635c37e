"""`unitymas run` and `unitymas resume`: train here."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from unitymas.api.resources import Project
from unitymas.cli.console import OUT, say
from unitymas.cli.errors import STOPPED
from unitymas.cli.manifests import checked_project
from unitymas.cli.options import Files, Quiet, Ray, RayAddress, RunFolder, folder_of
from unitymas.cli.overrides import overrides_of

RUNS = Path("runs")
"""Where runs go when nothing else is said."""


def run(
    file: Files,
    name: Annotated[
        str | None, typer.Option("--name", metavar="RUN", help="Which TrainingRun, where there are several.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            parser=folder_of,
            help="The run's folder; by default the first free of runs/NAME, runs/NAME-2, ...",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="In place of spec.seed.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="In place of spec.schedule.steps.")] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="A field of the run; may be repeated.")
    ] = None,
    ray: Ray = False,
    ray_address: RayAddress = None,
    quiet: Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, show what would be trained, and stop.")] = False,
) -> None:
    """Train a run on this machine: checks everything, then trains, then compares before and after on test.

    \b
    Examples:
      unitymas run -f examples/quickstart
      unitymas run -f examples/quickstart --steps 10 --seed 1 --to runs/short
      unitymas run -f DIR --set algorithm.estimator=rloo
      unitymas run -f DIR --dry-run

    Ctrl-C saves and stops, twice stops at once; `unitymas resume RUN` continues exactly.
    """
    project = checked_project(file, run=name, overrides=overrides_of(seed=seed, steps=steps, assignments=assign or []))
    if dry_run or not quiet:
        _show_plan(project)
    if dry_run:
        return
    _train(project, to or _next_folder(project.run.name), ray=ray, ray_address=ray_address, quiet=quiet)


def resume(folder: RunFolder, ray: Ray = False, ray_address: RayAddress = None, quiet: Quiet = False) -> None:
    """Continue a run that was stopped or failed, from its last checkpoint, as if it had never stopped.

    \b
    Example:
      unitymas resume runs/quickstart
    """
    from unitymas.controller.folder import reopen

    _, project = reopen(folder)
    _train(project, folder, ray=ray, ray_address=ray_address, quiet=quiet, resume=True)


def _next_folder(name: str) -> Path:
    """The first of runs/NAME, runs/NAME-2, ... that is not there yet: an earlier run is never touched."""
    return next(folder for number in count(1) if not (folder := RUNS / _numbered(name, number)).exists())


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _show_plan(project: Project) -> None:
    from unitymas.cli.plan import plan_of, table_of

    say(f"TrainingRun/{project.run.name}", style="bold")
    OUT.print(table_of(plan_of(project)))
    say()


def _train(
    project: Project, folder: Path, *, ray: bool, ray_address: str | None, quiet: bool, resume: bool = False
) -> None:
    """Train, then show the outcome; where the user stops it, say how to go on."""
    from unitymas.cli.display import progress
    from unitymas.cli.outcome import show_outcome
    from unitymas.controller import session
    from unitymas.controller.stop import Stop, Stopped

    with progress(project.run.spec.schedule.steps, quiet=quiet) as observer:

        async def main(stop: Stop) -> session.Summary:
            return await session.train(
                project,
                folder=folder,
                observer=observer,
                stop=stop,
                backend="ray" if ray or ray_address else "local",
                ray_address=ray_address,
                resume=resume,
            )

        try:
            summary = session.run_async(main)
        except Stopped as stopped:
            say(f"saved after step {stopped.step}; continue with: unitymas resume {folder}")
            raise typer.Exit(STOPPED) from None
    show_outcome(summary)
