"""What runs in a process for users' code: reads jobs from stdin, writes answers to stdout.

Started by name, not forked or spawned, so that neither the controller's main module nor its libraries are loaded again.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import BinaryIO, cast

from unitymas.api.errors import Infrastructure

HEADER = struct.Struct("<Q")
"""Length of the pickle that follows, in bytes."""
FRAMES = 3
"""Most places of a user's traceback that an error tells."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call of an entry point. With `setup`, the entry point is a class, built once with those keywords."""

    entrypoint: str
    arguments: Mapping[str, object] | Sequence[object]
    setup: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a job: its value, or what was raised and where."""

    value: object = None
    error: str = ""
    value_error: bool = False
    """What was raised is a ValueError."""
    broke: bool = False
    """What was raised is Infrastructure: the user's code says that something that it needs broke."""


def pack(message: object) -> bytes:
    """Header and pickle."""
    body = pickle.dumps(message)
    return HEADER.pack(len(body)) + body


def find(entrypoint: str, paths: Sequence[str]) -> Callable[..., object]:
    """The object that `module:name` stands for. Raises ImportError naming the folders that were searched."""
    module_name, _, name = entrypoint.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the user's module is there, and misses another one
        places = ", ".join(paths) or "no source of the run with `python: true`"
        raise ImportError(f"no module `{error.name}` in {places}, nor among the installed packages") from error
    if not hasattr(module, name):
        raise ImportError(f"no `{name}` in {module.__file__}")
    return cast(Callable[..., object], getattr(module, name))


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if frame.filename != __file__ and "importlib" not in frame.filename]
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in users[-FRAMES:]]
    return "\n  ".join([f"{type(error).__name__}: {error}", *places])


@dataclass(slots=True)
class Runner:
    """Answers jobs; `paths` are the folders of users' code, `built` keeps what earlier jobs imported."""

    paths: Sequence[str] = ()
    built: dict[str, Callable[..., object]] = field(default_factory=dict[str, Callable[..., object]])

    def run(self, job: Job) -> Answer:
        """The value, or what was raised."""
        try:
            function = self._function(job)
            given = job.arguments
            value = function(**given) if isinstance(given, Mapping) else function(*given)
            return Answer(list(cast(Iterator[object], value)) if isinstance(value, Iterator) else value)
        except BaseException as error:  # noqa: BLE001 - users' code may raise anything; the caller classifies
            broke = isinstance(error, Infrastructure)
            return Answer(error=_told(error), value_error=isinstance(error, ValueError), broke=broke)

    def _function(self, job: Job) -> Callable[..., object]:
        key = f"{job.entrypoint} {job.setup}"
        if key not in self.built:
            found = find(job.entrypoint, self.paths)
            self.built[key] = found if job.setup is None else cast(Callable[..., object], found(**job.setup))
        return self.built[key]


def serve(runner: Runner, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer jobs until the source ends."""
    while header := source.read(HEADER.size):
        answer = runner.run(pickle.loads(source.read(HEADER.unpack(header)[0])))
        try:
            packed = pack(answer)
        except Exception as error:  # noqa: BLE001 - users' objects may raise anything as they are sent
            packed = pack(Answer(error=f"returned what cannot be sent back, {type(answer.value).__name__}: {error}"))
        sink.write(packed)
        sink.flush()


def main() -> None:
    """Serve on stdin and stdout. Users' code finds stdin empty, and what it prints goes to stderr."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    paths = sys.argv[1:]
    sys.path[:0] = paths
    serve(Runner(paths), source, sink)
