"""Tools that nodes call: one file a tool, one line in `api.names`."""

from unitymas.tools.build import build_tools, check_tools
from unitymas.tools.guarded import Guarded

__all__ = ["Guarded", "build_tools", "check_tools"]
