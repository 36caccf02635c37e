"""Findings about manifests, and the failure taxonomy of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with what the user gave: which resource, which field, what was found, what would be right."""

    check: str
    """Name of the check, a word such as `hidden-in-prompt`."""
    path: str
    """Field path within the resource, such as `spec.nodes[2].with.passages`; for data, `file:line`."""
    found: str
    expected: str
    hint: str = ""
    kind: str = ""
    name: str = ""
    file: str = ""
    line: int = 0

    def at(self, *, kind: str = "", name: str = "", file: str = "", line: int = 0) -> Finding:
        """The same finding, with its place filled in where it was empty."""
        return replace(
            self,
            kind=self.kind or kind,
            name=self.name or name,
            file=self.file or file,
            line=self.line or line,
        )

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        resource = f"{self.kind}/{self.name}: " if self.kind else ""
        text = f"{place}{resource}{self.path}: found {self.found}; expected {self.expected}"
        return f"{text}\n\nhint: {self.hint}" if self.hint else text


class UnityMASError(Exception):
    """Root of every error that UnityMAS raises on purpose."""


class BadInput(UnityMASError):
    """The manifests, data or arguments are wrong; carries every finding (exit code 2)."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: Sequence[Finding] = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))

    def __reduce__(self) -> tuple[type[BadInput], tuple[Sequence[Finding]]]:
        return type(self), (self.findings,)  # so that it crosses processes


class Failure(Enum):
    """Why a visit or a trajectory did not end well; decides retry, loss and baseline (design, section 4)."""

    POLICY = "policy"
    """The model's own doing: trained on, with its reward."""
    INFRASTRUCTURE = "infrastructure"
    """Engine, tool or sandbox broke: retried, then out of loss and baseline."""
    DEADLINE = "deadline"
    """A limit of the run passed: as `limits.onDeadline` says."""
    AUTHOR = "author"
    """The user's own code raised, or an unknown error: the run fails at once."""


class Failed(UnityMASError):
    """A failure of a class of the taxonomy. `where` names the boundary crossed, such as `tool wiki`."""

    failure: Failure = Failure.AUTHOR

    def __init__(self, where: str, message: str) -> None:
        self.where = where
        self.message = message
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[type[Failed], tuple[str, str]]:
        return type(self), (self.where, self.message)  # so that it crosses processes


class Infrastructure(Failed):
    """Engine, tool or sandbox broke; worth another try."""

    failure = Failure.INFRASTRUCTURE


class Deadline(Failed):
    """A time limit of the run passed."""

    failure = Failure.DEADLINE


class Author(Failed):
    """The user's own code or manifest raised; never retried."""

    failure = Failure.AUTHOR


class ParityBroken(UnityMASError):
    """Rollout and trainer disagree about log-probabilities; the run stops before the update is applied."""


class NotFinite(UnityMASError):
    """A loss or gradient is no finite number; the run stops before the optimiser steps with it."""


@asynccontextmanager
async def boundary(error: type[Failed], where: str) -> AsyncGenerator[None]:
    """Classify whatever is raised inside as `error`, once; an error already classified passes unchanged."""
    try:
        yield
    except UnityMASError:
        raise
    except Exception as caught:
        raise error(where, f"{type(caught).__name__}: {caught}") from caught


@dataclass(slots=True)
class Findings:
    """Collects findings so that all are reported at once."""

    items: list[Finding] = field(default_factory=list[Finding])

    def add(self, check: str, path: str, *, found: str, expected: str, hint: str = "", kind: str = "") -> None:
        """Record one finding."""
        self.items.append(Finding(check, path, found, expected, hint, kind))

    def raise_if_any(self) -> None:
        """Raise BadInput when anything was found."""
        if self.items:
            raise BadInput(self.items)
