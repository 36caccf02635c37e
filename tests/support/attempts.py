"""Attempts of a run in processes of their own, which can be killed. Imports, most of their start, are paid for once.

Run as a script it is the process that the attempts are forked from.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__)


class Attempts:
    """Attempts of one run, one after the other. A context: leave it to end the process that they are forked from."""

    def __init__(self, manifests: Path, folder: Path) -> None:
        paths = [str(HERE.parents[1]), *(path for path in sys.path if path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(HERE), str(manifests), str(folder)]
        self._mother = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.folder = folder
        self.pid = 0
        """Of the attempt under way."""
        assert self._hear() == "ready"

    def __enter__(self) -> Attempts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self.pid:
            self.kill()
            self.end()
        self._mother.communicate()

    def start(self, *, log: Path) -> None:
        """Start the run, or continue it where it has been started; what it prints goes to the log."""
        assert not self.pid
        assert self._mother.stdin is not None
        self._mother.stdin.write(f"{log}\n")
        self._mother.stdin.flush()
        self.pid = int(self._hear())

    def kill(self) -> None:
        """SIGKILL the attempt, wherever it is. Nothing happens when it has ended: it waits to be collected."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Wait for the attempt's end: its exit code, or minus the signal that ended it."""
        assert self._mother.stdin is not None
        self._mother.stdin.write("collect\n")
        self._mother.stdin.flush()
        self.pid = 0
        return int(self._hear())

    def _hear(self) -> str:
        assert self._mother.stdout is not None
        return self._mother.stdout.readline().strip()


def _attempt(manifests: Path, folder: Path, log: str) -> int:
    """Runs in the fork."""
    from support.runs import train_here
    from unitymas.api.errors import UnityMASError
    from unitymas.api.load import read, resolve
    from unitymas.controller.folder import RESOURCES, reopen

    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    resume = (folder / RESOURCES).exists()
    project = reopen(folder)[1] if resume else resolve(read([manifests]))
    try:
        train_here(project, folder, resume=resume)
    except UnityMASError as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
        return 1
    return 0


def main() -> None:
    """Import everything, then fork an attempt for every line of stdin, a log's path."""
    manifests, folder = Path(sys.argv[1]), Path(sys.argv[2])
    from unitymas.models.verl.environment import prepare

    prepare()
    for module in ("support.runs", "unitymas.models.verl.trainer", "unitymas.models.engines.hf"):
        import_module(module)
    _say("ready")
    child: Any = None
    for line in map(str.strip, sys.stdin):
        if line == "collect":
            _say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            continue
        child = os.fork()
        if child == 0:
            os._exit(_attempt(manifests, folder, line))
        _say(child)


def _say(what: object) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    main()
