"""Silence about things that are no trouble: what libraries print when they start."""

from __future__ import annotations

import io
import logging
import sys
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def quiet() -> Generator[None]:
    """Drop what this thread prints to stdout, and warnings, inside; other threads, stderr and exceptions pass.

    verl and transformers announce missing optional back ends, model sizes and schedules on every start.
    """
    mute = _Mute(sys.stdout, threading.get_ident())
    before, sys.stdout = sys.stdout, mute
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        mute.thread = None
        if sys.stdout is mute:
            sys.stdout = before


def hush() -> None:
    """Turn off progress bars and chatter of transformers and torch for good; errors still show."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    for name in ("torch.fx._symbolic_trace", "torch.distributed"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # a critic's head of one output; nothing here writes into what a model returns
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")


class _Mute(io.TextIOBase):
    """A stdout that drops the writes of one thread, so that a progress bar of another goes on.

    Libraries that keep it when they are imported write through it afterwards: then `thread` is None.
    """

    def __init__(self, out: TextIO, thread: int) -> None:
        self._out = out
        self.thread: int | None = thread

    def write(self, text: str, /) -> int:
        return len(text) if threading.get_ident() == self.thread else self._out.write(text)

    def flush(self) -> None:
        if not self._out.closed:
            self._out.flush()

    def isatty(self) -> bool:
        return not self._out.closed and self._out.isatty()

    def fileno(self) -> int:
        return self._out.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._out.encoding
