"""Output formats: from a reply to a value of a shape. One file a format, one line in `api.names`."""

from unitymas.api.ports import Output, ParsesAside
from unitymas.workflow.outputs.build import build_output, parser

__all__ = ["Output", "ParsesAside", "build_output", "parser"]
