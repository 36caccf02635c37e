"""Locks between processes, held on an open file: the system frees them when a process ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from unitymas.api.errors import BadInput, Finding

LOCK = ".lock"


@contextmanager
def training(folder: Path) -> Generator[None]:
    """Hold a folder, made where it is missing, for one process that trains in it; what stays empty is removed again.

    Raises BadInput when another process holds it, or it cannot be written.
    """
    path = folder / LOCK
    make(folder)
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with file:
        if not exclusive(file) or not _still(file, path):
            file.seek(0)
            by = file.read().strip() or "unknown"
            found = f"a run that is being trained by another process (pid {by})"
            raise BadInput([Finding("run-folder", str(folder), found, "one that no other process trains in")])
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            if not any(other != path for other in folder.iterdir()):
                path.unlink()
                with suppress(OSError):  # something has come meanwhile
                    folder.rmdir()


def exclusive(file: IO[str] | IO[bytes]) -> bool:
    """Lock an open file against all others, now; False when another holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # the second is what NFS says; a file system without locks keeps nobody out
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def shared(file: IO[bytes]) -> None:
    """Lock an open file together with other readers; waits for a writer."""
    fcntl.flock(file, fcntl.LOCK_SH)


def make(folder: Path) -> None:
    """Make a folder that the user chose. Raises BadInput when it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> BadInput:
    found, expected = f"a place that cannot be written ({error.strerror})", "a folder that can be written"
    return BadInput([Finding("run-folder", str(folder), found, expected, "give another folder with --to")])


def _still(file: IO[str], path: Path) -> bool:
    """Whether the path is this file: who held it may have removed it at its end."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
