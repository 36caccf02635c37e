"""From `-f` to checked resources."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from unitymas.api.errors import BadInput, Finding
from unitymas.api.load import Loaded, read, resolve
from unitymas.api.resources import Project
from unitymas.cli.overrides import Override, override


def load(files: Sequence[str]) -> Loaded:
    """The resources of files, folders and `-`. Raises BadInput."""
    return read(files, sys.stdin)


def findings_in(subject: Loaded | Project, loaded: Loaded, needs: Collection[str] | None = None) -> list[Finding]:
    """What the checks of these needs find (all checks where None), with file and line."""
    from unitymas.check.run import NEEDS, check  # they load CEL: not for `--help`

    return [loaded.locate(finding) for finding in check(subject, needs=NEEDS if needs is None else needs)]


def checked_project(files: Sequence[str], *, run: str | None, overrides: Sequence[Override]) -> Project:
    """The run of a name, or the only one, found good by every check. Raises BadInput with every finding."""
    loaded = override(load(files), run, overrides)
    project = resolve(loaded, run)
    findings = findings_in(project, loaded)
    if findings:
        raise BadInput(findings)
    return project
