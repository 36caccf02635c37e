"""The program `unitymas`: its commands and what they share."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from unitymas.cli.errors import Reporting
from unitymas.cli.evaluate import evaluate
from unitymas.cli.export import export
from unitymas.cli.logs import LogFormat, LogLevel, configure
from unitymas.cli.run import resume, run
from unitymas.cli.traces import traces
from unitymas.cli.validate import validate

app = typer.Typer(
    cls=Reporting,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unitymas {version('unitymas')}")
        raise typer.Exit


@app.callback()
def shared(
    log_format: Annotated[LogFormat, typer.Option(help="Lines for people, or one JSON object a line.")] = "console",
    log_level: Annotated[LogLevel, typer.Option(help="Least level of what is logged.")] = "warning",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Train teams of LLM agents by reinforcement learning, from four manifests.

    \b
    A first run, and what to do with it:
      unitymas validate -f examples/quickstart
      unitymas run -f examples/quickstart
      unitymas traces runs/quickstart
      unitymas export runs/quickstart --to models

    Exit codes: 0 ok, 1 failed, 2 bad input, 130 stopped by Ctrl-C or SIGTERM after saving.
    """
    configure(log_format, log_level)


for command, name in (
    (run, "run"),
    (validate, "validate"),
    (evaluate, "eval"),
    (export, "export"),
    (resume, "resume"),
    (traces, "traces"),
):
    app.command(name)(command)


def main() -> None:
    """Run the program."""
    app()
