"""Checkpoints at a step barrier: one atomic manifest for all models, so that a resumed run continues bit for bit.

A checkpoint is a folder `step-<N>` holding one folder a model and `manifest.json`, written last. It is made under
another name and renamed when whole; whatever is not whole is passed over, and said so.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import structlog

from unitymas.api.errors import Infrastructure
from unitymas.api.ports import ModelGroup, Trains
from unitymas.controller.lock import exclusive, shared
from unitymas.controller.store import flush

log = structlog.get_logger()
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint is of. The data cursor is `step`: tasks are a function of seed and step."""

    step: int
    """Steps done; also the weight version."""
    digest: str
    """Of the resolved resources: another one may not resume."""
    seed: int
    best: Mapping[str, float] = field(default_factory=dict[str, float])
    """`step` and `score` of the best weights on dev so far."""
    dev_due: bool = False
    """Stopped before these weights were looked at on dev: the resumed run does that first."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Size and digest by path, within the checkpoint's folder."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Writes and finds checkpoints in one folder."""

    folder: Path
    keep: int = 3

    async def save(self, manifest: Manifest, groups: Mapping[str, ModelGroup]) -> Path:
        """Write a checkpoint of all trained groups, then drop the oldest. Raises Infrastructure when it cannot."""
        final, part = self._path(manifest.step), self.folder / f".step-{manifest.step}.part"
        for left in self._parts():
            shutil.rmtree(left, ignore_errors=True)
        try:
            part.mkdir(parents=True)
            for name, group in sorted(groups.items()):
                if isinstance(group, Trains):
                    (part / name).mkdir()
                    await group.save(part / name)
            await asyncio.to_thread(self._seal, part, manifest)
            shutil.rmtree(final, ignore_errors=True)
            os.replace(part, final)
            flush(self.folder)
        except (OSError, Infrastructure) as error:
            shutil.rmtree(part, ignore_errors=True)
            raise Infrastructure(
                f"checkpoint {final}", f"{error}; the run's last checkpoint is untouched: free space, then resume"
            ) from error
        self._prune(manifest)
        return final

    def latest(self) -> tuple[Path, Manifest] | None:
        """The newest whole checkpoint. One that is not whole is passed over, with a warning."""
        for part in self._parts():
            log.warning("checkpoint.passed_over", path=str(part), reason="half-written")
        with self.pinned() as found:
            return found

    @contextmanager
    def pinned(self, step: int | None = None) -> Generator[tuple[Path, Manifest] | None]:
        """The whole checkpoint of a step, or the newest, if there is one: no save drops it inside the block."""
        passed: set[Path] = set()
        while left := [path for path in self._all() if path not in passed and step in (None, _step_of(path))]:
            path = max(left, key=_step_of)  # looked for anew each time: a run may be saving
            with _reading(path):
                broken = _broken(path)
                if not broken:
                    yield path, read_manifest(path)
                    return
            log.warning("checkpoint.passed_over", path=str(path), reason=broken)
            passed.add(path)
        yield None

    def at(self, step: int) -> Path | None:
        """The whole checkpoint of a step, if it is there."""
        path = self._path(step)
        return path if path.exists() and not _broken(path) else None

    def steps(self) -> list[int]:
        """Steps that there are checkpoints of."""
        return sorted(_step_of(path) for path in self._all())

    def _seal(self, part: Path, manifest: Manifest) -> None:
        files: dict[str, str] = {}
        for path in sorted(part.rglob("*")):
            flush(path)
            if path.is_file():
                files[path.relative_to(part).as_posix()] = _digest(path)
        content = asdict(replace(manifest, files=files))
        sealed = {"manifest": content, "seal": _seal_of(content)}
        (part / MANIFEST).write_text(json.dumps(sealed, indent=2), "utf-8")
        flush(part / MANIFEST)
        flush(part)

    def _prune(self, manifest: Manifest) -> None:
        # The first weights are wanted once more: on test, at the end.
        kept = {0, int(manifest.best.get("step", 0))}
        # A later one was passed over: it is written anew when its step is done again.
        steps = [path for path in self._all() if _step_of(path) <= manifest.step]
        for path in sorted(steps, key=_step_of, reverse=True)[self.keep :]:
            if _step_of(path) not in kept:
                _drop(path)

    def _all(self) -> list[Path]:
        return [path for path in self.folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)]

    def _parts(self) -> list[Path]:
        """What a save that was cut short has left."""
        return sorted(self.folder.glob(".step-*.part"))

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step}"


@contextmanager
def _reading(path: Path) -> Generator[None]:
    """Hold a checkpoint's folder against `_drop`; one without a manifest is not held, nor whole."""
    with ExitStack() as stack:
        with suppress(OSError):
            shared(stack.enter_context((path / MANIFEST).open("rb")))
        yield


def _drop(path: Path) -> None:
    """Remove a checkpoint, but not while it is being read: then one of the next saves does."""
    with ExitStack() as stack:
        with suppress(FileNotFoundError):
            if not exclusive(stack.enter_context((path / MANIFEST).open("r+b"))):
                return
        shutil.rmtree(path)


def read_manifest(path: Path) -> Manifest:
    """The manifest of a checkpoint's folder. Raises OSError, and ValueError when it is not what was written."""
    read: object = json.loads((path / MANIFEST).read_text("utf-8"))
    match read:
        case {"manifest": dict() as content, "seal": str(seal)} if seal == _seal_of(cast("dict[str, Any]", content)):
            return Manifest(**cast("dict[str, Any]", content))
        case _:
            raise ValueError(f"{MANIFEST} is not what was written")


def _step_of(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def _seal_of(content: Mapping[str, object]) -> str:
    """Digest of a manifest: the one file that no other one holds the digest of."""
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"{path.stat().st_size}:{digest.hexdigest()}"


def _broken(path: Path) -> str:
    """Why a checkpoint is not whole; empty when it is."""
    try:
        manifest = read_manifest(path)
    except (OSError, ValueError) as error:
        return f"no readable manifest: {error}"
    for name, digest in manifest.files.items():
        if not (path / name).is_file():
            return f"{name} is missing"
        if _digest(path / name) != digest:
            return f"{name} is not what was written"
    return ""
