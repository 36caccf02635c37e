"""Sources of a run as paths on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import fsspec  # pyright: ignore[reportMissingTypeStubs]

from unitymas.api.errors import BadInput, Finding
from unitymas.api.load_errors import did_you_mean
from unitymas.api.run import Source, TrainingRunSpec

SOURCE_ROOT = Path("/unitymas/sources")
"""Where a cluster mounts claims and ConfigMaps, each in a folder of the source's name."""
CACHE = Path.home() / ".cache" / "unitymas" / "sources"
"""Where copies of `uri` sources are kept, each in a folder of its own."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a run. `folder` is where relative paths start; `run` names the run in findings."""

    spec: TrainingRunSpec
    folder: Path
    run: str = ""
    mounts: Path = SOURCE_ROOT
    cache: Path = CACHE
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of fsspec for `uri` sources, by protocol."""

    def path(self, name: str, file: str | None = None) -> Path:
        """Where a source, or a file within it, is on this machine: it exists.

        A `uri` is fetched once and then kept. Raises BadInput where there is no such source or file, and for a claim
        or ConfigMap outside a cluster.
        """
        index, source = self._source(name)
        where = f"spec.sources[{index}]"
        if source.uri is not None:
            return self._fetched(source.uri.rstrip("/") + (f"/{file}" if file else ""), f"{where}.uri")
        found = self._base(source, where)
        found = found / file if file else found
        if not found.exists():
            raise self._bad(where, f"no file or folder {found}", "one that exists")
        return found

    def writable(self, name: str) -> Path:
        """Where a source is that a run writes to: a folder, which need not be there yet.

        Raises BadInput where there is no such source, or it is a file, a ConfigMap or a `uri`.
        """
        index, source = self._source(name)
        where = f"spec.sources[{index}]"
        expected = "a path or a claim, which can be written to"
        if source.path is None and source.claim is None:
            raise self._bad(where, "a ConfigMap" if source.uri is None else "a `uri`", expected)
        found = self._base(source, where)
        if found.exists() and not found.is_dir():
            raise self._bad(where, f"a file {found}", "a folder, which can be written to")
        return found

    def python_paths(self) -> list[Path]:
        """Folders to import from: the sources with `python: true`, in order. Raises BadInput as `path` does."""
        found = [self.path(source.name) for source in self.spec.sources if source.python]
        return [path if path.is_dir() else path.parent for path in found]

    def _source(self, name: str) -> tuple[int, Source]:
        for index, source in enumerate(self.spec.sources):
            if source.name == name:
                return index, source
        known = [source.name for source in self.spec.sources]
        expected = f"the name of a source: {', '.join(known) or 'the run has none'}"
        raise self._bad("spec.sources", f"no source `{name}`", expected, did_you_mean(name, known))

    def _base(self, source: Source, where: str) -> Path:
        if source.path is not None:
            return self.folder / source.path
        mounted = self.mounts / source.name
        if not mounted.is_dir():
            kind = "configMap" if source.claim is None else "claim"
            hint = "give a `path` to run on this machine"
            raise self._bad(f"{where}.{kind}", f"no folder {mounted}", "a cluster, which mounts it there", hint)
        return mounted / source.claim.path if source.claim is not None else mounted

    def _fetched(self, uri: str, where: str) -> Path:
        """The kept copy of a URI, under its own file name: `.gz` tells how it is read."""
        folder = self.cache / sha256(uri.encode()).hexdigest()[:16]
        settings = {**self.options, "filecache": {"cache_storage": str(folder), "same_names": True}}
        open_local: Any = fsspec.open_local  # pyright: ignore[reportUnknownMemberType]
        try:
            return Path(open_local(f"filecache::{uri}", **settings))
        except (OSError, ValueError, ImportError) as error:  # ValueError: no such protocol
            raise self._bad(
                where, f"`{uri}` ({error or type(error).__name__})", "something that fsspec reads"
            ) from error

    def _bad(self, path: str, found: str, expected: str, hint: str = "") -> BadInput:
        return BadInput([Finding("sources", path, found, expected, hint, "TrainingRun", self.run)])
