"""From the `output` of a role to the object that parses its replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from unitymas.api import names, shapes
from unitymas.api.errors import BadInput, Finding
from unitymas.api.ports import Output, ParsesAside, Workers
from unitymas.api.workflow import Output as OutputSpec
from unitymas.workflow.outputs.python import Python


def build_output(
    spec: OutputSpec, *, path: str = "output", workers: Workers | None = None, timeout_s: float = 30.0
) -> Output | ParsesAside:
    """The parser of an output format. `workers` and `timeout_s` (of one reply) serve the format `python` only.

    Raises BadInput, with a field path under `path`, for a pattern or a shape that cannot be read.
    """
    try:
        if spec.format == "python":
            return Python(spec, workers=workers, timeout_s=timeout_s)
        build = cast(Callable[[OutputSpec], Output], names.load(names.OUTPUTS, spec.format))
        return build(spec)
    except shapes.ShapeError as error:
        raise BadInput([Finding("shape", f"{path}.shape{error.path}", error.found, error.expected)]) from error
    except ValueError as error:
        raise BadInput([Finding("pattern", f"{path}.pattern", f"`{spec.pattern}`", str(error))]) from error


def parser(output: Output | ParsesAside) -> Callable[[str], Awaitable[object]]:
    """What turns a reply into the value, wherever it runs. It raises ValueError when the reply does not parse."""
    if isinstance(output, ParsesAside):
        return output.parse_aside

    async def parse(text: str) -> object:
        return output.parse(text)

    return parse
