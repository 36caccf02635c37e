"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def folder_of(given: str) -> Path:
    """A folder that is written to. Raises BadParameter, which is bad input, for an empty text."""
    if not given.strip():
        raise typer.BadParameter("found nothing; expected a folder")
    return Path(given)


Output = Literal["table", "json", "csv"]

Files = Annotated[
    list[str],
    typer.Option(
        "-f", "--file", metavar="FILE", help="A manifest, a folder of them, or - for standard input; may be repeated."
    ),
]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a run, such as runs/quickstart.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; results and errors only.")]
Ray = Annotated[bool, typer.Option("--ray", help="Train on Ray, one worker group a model; started here by default.")]
RayAddress = Annotated[
    str | None, typer.Option("--ray-address", metavar="ADDRESS", help="A running Ray: auto, or HOST:PORT. Means --ray.")
]
Step = Annotated[int | None, typer.Option("--step", min=0, help="The weights after so many steps.")]
First = Annotated[bool, typer.Option("--first", help="The weights that the run started from.")]
Chosen = Annotated[bool, typer.Option("--chosen", help="The weights chosen on dev; the default of a finished run.")]
