"""Where the commands write: what was asked for on standard output, errors and logs on standard error."""

from __future__ import annotations

from rich.console import Console

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)


def say(text: str = "", *, console: Console = OUT, style: str = "") -> None:
    """One line as it is: no markup read, never folded, so that it can be searched and copied."""
    console.print(text, style=style or None, markup=False, soft_wrap=True)
