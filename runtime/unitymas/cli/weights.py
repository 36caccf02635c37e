"""Which weights of a run a command means."""

from __future__ import annotations

import json
from pathlib import Path

from unitymas.api.errors import BadInput, Finding


def step_of(folder: Path, *, step: int | None, first: bool = False, chosen: bool = False) -> int | None:
    """The step whose weights are meant: a given one, the first, the chosen; else the chosen where there are.

    None means the newest, of a run that has not finished. Raises BadInput.
    """
    if (step is not None) + first + chosen > 1:
        raise BadInput([Finding("options", "--step, --first, --chosen", "several of them", "one at most")])
    if step is not None or first:
        return step or 0
    from unitymas.controller.folder import SUMMARY  # loads pyarrow: not for `--help`

    summary = folder / SUMMARY
    if summary.exists():
        return int(json.loads(summary.read_text("utf-8"))["chosen_step"])
    if chosen:
        finding = Finding("run-folder", str(folder), "a run that has not finished", "one that has chosen its weights")
        raise BadInput([finding])
    return None
