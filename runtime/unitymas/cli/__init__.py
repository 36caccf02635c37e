"""The command line: `unitymas run`, `validate`, `eval`, `export`, `resume`, `traces`."""

from unitymas.cli.app import main

__all__ = ["main"]
