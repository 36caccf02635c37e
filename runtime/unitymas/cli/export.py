"""`unitymas export`: trained models as Hugging Face folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unitymas.cli.console import say
from unitymas.cli.options import Chosen, First, RunFolder, Step, folder_of
from unitymas.cli.weights import step_of


def export(
    folder: RunFolder,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="DIR", parser=folder_of, help="Where; one folder a model.", show_default=False),
    ],
    step: Step = None,
    first: First = False,
    chosen: Chosen = False,
) -> None:
    """Write each trained model of a run as a Hugging Face folder: weights, configuration, tokenizer.

    \b
    Examples:
      unitymas export runs/quickstart --to models
      unitymas export runs/quickstart --to models --step 40

    Each folder loads with transformers' AutoModelForCausalLM.from_pretrained, or is served by vLLM.
    """
    from unitymas.controller import session
    from unitymas.controller.folder import reopen
    from unitymas.controller.stop import Stop

    _, project = reopen(folder)
    wanted = step_of(folder, step=step, first=first, chosen=chosen)

    async def main(stop: Stop) -> dict[str, Path]:
        return await session.export(project, folder=folder, to=to, step=wanted)

    for model, path in session.run_async(main).items():
        say(f"{model}: {path}")
