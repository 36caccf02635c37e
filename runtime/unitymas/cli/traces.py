"""`unitymas traces`: what a run recorded, through SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unitymas.api.errors import BadInput, Finding
from unitymas.cli.options import Output, RunFolder


def traces(
    folder: RunFolder,
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="DuckDB SQL over visits and metrics.")] = None,
    trajectory: Annotated[
        str | None, typer.Option("--trajectory", metavar="ID", help="Tell one trajectory, visit by visit.")
    ] = None,
    output: Annotated[Output, typer.Option(help="How rows are printed.")] = "table",
) -> None:
    """Look into a run's trajectories: table `visits` holds a row a visit, `metrics` a row a step or evaluation.

    \b
    Examples:
      unitymas traces runs/quickstart
      unitymas traces runs/quickstart "SELECT step, avg(reward) FROM visits GROUP BY step ORDER BY step"
      unitymas traces runs/quickstart --trajectory train/0/q12/3
      unitymas traces runs/quickstart "FROM metrics" --output csv > metrics.csv

    Without SQL: an overview, the columns, and queries to start from.
    """
    from unitymas.cli import tables, telling

    if sql is not None and trajectory is not None:
        raise BadInput([Finding("options", "SQL, --trajectory", "both", "one of them")])
    with tables.opened(folder) as connection:
        if trajectory is not None:
            rows = tables.visits_of(connection, trajectory)
            telling.tell(rows, output=output)
        elif sql is not None:
            telling.show(tables.query(connection, sql), output=output)
        else:
            telling.overview(connection, _shown(folder))


def _shown(folder: Path) -> str:
    text = str(folder)
    return f"'{text}'" if " " in text else text
