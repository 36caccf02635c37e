"""`unitymas validate`: every mistake in the manifests, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from unitymas.api.errors import BadInput, Finding
from unitymas.api.load import AnyResource, Loaded
from unitymas.api.resources import ModelMapping, MultiAgentWorkflow, RewardSpec, TrainingRun
from unitymas.cli.console import ERR, OUT, say
from unitymas.cli.errors import BAD_INPUT, show_findings
from unitymas.cli.manifests import findings_in, load
from unitymas.cli.options import Files

Needs = Annotated[
    str,
    typer.Option(
        metavar="LIST", help="Which checks, by what they need: spec (always), code, data, tokenizer, run; or all."
    ),
]


def validate(
    file: Files,
    needs: Needs = "spec",
    output: Annotated[Literal["text", "json"], typer.Option(help="How findings are printed.")] = "text",
) -> None:
    """Check manifests: any of the four kinds, alone or together; nothing is run.

    \b
    Examples:
      unitymas validate -f examples/quickstart
      unitymas validate -f workflow.yaml -f reward.yaml
      kubectl get trainingrun rag -o yaml | unitymas validate -f -
      unitymas validate -f DIR --needs spec,data
      unitymas validate -f DIR --needs all      # what `run` checks before it starts

    Exits 2 when something was found.
    """
    wanted = _needs(needs)
    loaded, findings = Loaded({}, {}), list[Finding]()
    try:
        loaded = load(file)
        findings = findings_in(loaded, loaded, wanted)
    except BadInput as error:
        findings = list(error.findings)
    if output == "json":
        say(json.dumps(_document(loaded, findings), indent=2))
    else:
        _show(loaded, findings)
    if findings:
        raise typer.Exit(BAD_INPUT)


def _needs(text: str) -> frozenset[str] | None:
    """The needs that the user lists; None for all."""
    from unitymas.check.run import NEEDS

    if text == "all":
        return None
    wanted = frozenset(word.strip() for word in text.split(",")) - {""}
    if not wanted or wanted - set(NEEDS):
        raise BadInput([Finding("options", "--needs", f"`{text}`", f"some of {', '.join(NEEDS)}, or all")])
    return wanted | {"spec"}  # else a name that is nowhere would come as a surprise below


def _document(loaded: Loaded, findings: Sequence[Finding]) -> dict[str, Any]:
    bad = {(finding.kind, finding.name) for finding in findings}
    resources = [
        {"kind": key[0], "name": key[1], "file": loaded.documents[key].file, "ok": key not in bad}
        | ({} if key in bad else _numbers(resource))
        for key, resource in loaded.resources.items()
    ]
    return {"findings": [asdict(finding) for finding in findings], "resources": resources}


def _numbers(resource: AnyResource) -> dict[str, int]:
    """What a resource without findings holds, in numbers."""
    match resource:
        case MultiAgentWorkflow(spec=spec):
            from unitymas.workflow.bound import most_calls

            return {
                "roles": len(spec.roles),
                "tools": len(spec.tools),
                "nodes": len(spec.nodes or []),
                "mostCalls": most_calls(spec),
            }
        case RewardSpec(spec=spec):
            return {"metrics": len(spec.metrics), "rewards": len(spec.rewards)}
        case ModelMapping(spec=spec):
            trained = {spec.model_of(role) for role in spec.roles if spec.trains(role)}
            return {"models": len(spec.models), "trained": len(trained)}
        case TrainingRun(spec=spec):
            return {"sources": len(spec.sources), "steps": spec.schedule.steps}


def _show(loaded: Loaded, findings: Sequence[Finding]) -> None:
    show_findings(findings)
    if findings and loaded.resources:
        say(console=ERR)
    for key, resource in loaded.resources.items():
        count = sum((finding.kind, finding.name) == key for finding in findings)
        verdict = f"[red]{_count(count, 'findings')}[/]" if count else f"[green]ok[/]; {_line(resource)}"
        place = escape(f"({loaded.documents[key].file})")
        OUT.print(f"{resource.kind}/{resource.name}: {verdict} [dim]{place}[/]", soft_wrap=True)
    for note in loaded.ignored:
        say(note, console=ERR, style="yellow")
    if findings:
        say(f"\n{_count(len(findings), 'findings')}", console=ERR, style="red")


def _line(resource: AnyResource) -> str:
    numbers = _numbers(resource)
    calls = numbers.pop("mostCalls", None)
    text = ", ".join(_count(count, name) for name, count in numbers.items())
    return text if calls is None else f"{text}; at most {_count(calls, 'calls')} a trajectory"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun.removesuffix('s') if count == 1 else noun}"
