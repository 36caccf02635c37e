"""How commands end: exit codes, findings with their hints apart, failures with what to do."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import typer
from typer.core import TyperGroup

from unitymas.api.errors import (
    Author,
    BadInput,
    Deadline,
    Finding,
    Infrastructure,
    NotFinite,
    ParityBroken,
    UnityMASError,
)
from unitymas.cli.console import ERR, say
from unitymas.controller.stop import Stopped

FAILED, BAD_INPUT, STOPPED = 1, 2, 130
"""Exit codes beside 0: failed, bad input, and stopped by Ctrl-C or SIGTERM after saving, as shells have it."""
_ADVICE: tuple[tuple[type[UnityMASError], str], ...] = (
    (Infrastructure, "this broke outside the agents; when it works again, continue with `unitymas resume RUN`"),
    (Deadline, "raise the limit in spec.limits, or set limits.onDeadline to score or drop"),
    (Author, "this comes from the run's own code or manifests: mend it, then start again"),
    (ParityBroken, "the engine and the trainer disagree: compare their precision and versions, then resume the run"),
    (NotFinite, "lower optimizer.learningRate or the rewards' scale, then start again"),
)
_EXTRAS = frozenset({"torch", "verl", "ray", "transformers", "tensordict", "safetensors"})
"""Packages that only the extra `train` installs."""


class Reporting(TyperGroup):
    """The group of all commands: says what went wrong, and exits with the code that it means."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command. What nobody foresaw passes on, with its traceback and exit code 1."""
        try:
            return super().invoke(ctx)
        except BadInput as error:
            show_findings(error.findings)
            raise typer.Exit(BAD_INPUT) from None
        except Stopped as stopped:
            say(str(stopped), console=ERR)
            raise typer.Exit(STOPPED) from None
        except UnityMASError as error:
            show_failure(error)
            raise typer.Exit(FAILED) from None
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in _EXTRAS:
                raise
            say(f"{error.name} is not installed; this command needs it", console=ERR, style="red")
            show_hint("pip install 'unitymas[train]'")
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            say("ended at once; nothing was saved since the last checkpoint", console=ERR, style="red")
            raise typer.Exit(STOPPED) from None


def show_findings(findings: Sequence[Finding]) -> None:
    """All findings on standard error, resource by resource, hints apart."""
    by_resource: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        by_resource.setdefault((finding.file, finding.kind, finding.name), []).append(finding)
    for number, group in enumerate(by_resource.values()):
        apart = number > 0
        for finding in group:
            if apart:
                say(console=ERR)
            say(str(replace(finding, hint="")), console=ERR, style="red")
            if finding.hint:
                show_hint(finding.hint)
            apart = bool(finding.hint)


def show_failure(error: UnityMASError) -> None:
    """One message: the class of failure, where, what; then what to do about it, and the user's own traceback."""
    say(f"{type(error).__name__}: {error}", console=ERR, style="red")
    if isinstance(error, Author) and error.__cause__ is not None:
        say("".join(traceback.format_exception(error.__cause__)).rstrip(), console=ERR, style="dim")
    for kind, advice in _ADVICE:
        if isinstance(error, kind):
            show_hint(advice)


def show_hint(hint: str) -> None:
    """A hint, apart from the error before it."""
    say(f"\nhint: {hint}", console=ERR, style="cyan")
