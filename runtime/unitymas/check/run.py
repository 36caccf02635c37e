"""The checks: a table of what is proved, each with what it needs, and the function that goes through it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from unitymas.api.errors import Finding
from unitymas.api.load import Loaded
from unitymas.api.resources import Project
from unitymas.check import code, groups, later, leaks, lengths, mapping, names, rewards, rows, settings, tools
from unitymas.check.subject import Kind, Part, Subject, subjects_of

Need = Literal["spec", "code", "data", "tokenizer", "run"]
"""`spec`: the manifests alone. `code`: the user's modules, imported in a process of their own. `data`: rows and
corpora. `tokenizer`: configuration and tokenizer of local models. `run`: what this release can run; no files."""
NEEDS: tuple[str, ...] = get_args(Need)


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `find` gets the parts of the subject, by position, when all of them are there."""

    needs: Need
    about: Kind
    """The kind of resource that its findings are about, where they do not say."""
    of: tuple[Part, ...]
    find: Callable[..., Iterable[Finding]]


CHECKS: Mapping[str, Check] = {
    "names-once": Check("spec", "MultiAgentWorkflow", ("workflow",), names.once),
    "shapes": Check("spec", "MultiAgentWorkflow", ("workflow",), names.shapes_and_patterns),
    "expressions": Check("spec", "MultiAgentWorkflow", ("compilation",), names.expressions),
    "prompts": Check("spec", "MultiAgentWorkflow", ("compilation",), leaks.prompts),
    "output-checks": Check("spec", "MultiAgentWorkflow", ("compilation",), names.output_checks),
    "used": Check("spec", "MultiAgentWorkflow", ("workflow",), names.used),
    "tool-calls": Check("spec", "MultiAgentWorkflow", ("workflow", "compilation"), tools.calls),
    "sessions": Check("spec", "MultiAgentWorkflow", ("compilation",), tools.opens),
    "rewards": Check("spec", "RewardSpec", ("reward", "seen"), rewards.expressions),
    "rewarded": Check("spec", "RewardSpec", ("reward", "mapping"), rewards.every_trained_role),
    "models": Check("spec", "ModelMapping", ("mapping",), mapping.models),
    "mapped": Check("spec", "ModelMapping", ("mapping", "workflow"), mapping.every_role),
    "trained": Check("spec", "ModelMapping", ("mapping", "run"), mapping.trained),
    "sampling": Check("spec", "MultiAgentWorkflow", ("workflow", "mapping"), mapping.unbiased_sampling),
    "context": Check("spec", "MultiAgentWorkflow", ("workflow", "mapping"), lengths.declared),
    "compare": Check("spec", "TrainingRun", ("run", "workflow"), groups.compare_parts),
    "group-size": Check("spec", "TrainingRun", ("run", "workflow", "mapping"), groups.sizes),
    "batch": Check("spec", "TrainingRun", ("run", "workflow", "mapping"), groups.batches),
    "sources": Check("spec", "TrainingRun", ("run",), settings.own_sources),
    "corpora": Check("spec", "MultiAgentWorkflow", ("workflow", "run"), settings.corpora),
    "weights": Check("spec", "ModelMapping", ("mapping", "run"), settings.weights),
    "settings": Check("spec", "TrainingRun", ("run", "workflow"), settings.names_of_workflow),
    "placement": Check("spec", "TrainingRun", ("run", "mapping"), settings.placement),
    "selection": Check("spec", "TrainingRun", ("run",), settings.selection),
    "score": Check("spec", "RewardSpec", ("run", "reward"), settings.scored),
    "workflow-code": Check("code", "MultiAgentWorkflow", ("workflow", "sources"), code.of_workflow),
    "reward-code": Check("code", "RewardSpec", ("reward", "sources"), code.of_rewards),
    "rows": Check("data", "TrainingRun", ("workflow", "sources"), rows.tasks),
    "passages": Check("data", "TrainingRun", ("workflow", "sources"), rows.passages),
    "model-folders": Check("tokenizer", "ModelMapping", ("workflow", "mapping", "sources"), lengths.model_folders),
    "later-workflow": Check("run", "MultiAgentWorkflow", ("workflow",), later.of_workflow),
    "later-rewards": Check("run", "RewardSpec", ("reward", "seen"), later.of_rewards),
    "later-mapping": Check("run", "ModelMapping", ("mapping",), later.of_mapping),
    "later-run": Check("run", "TrainingRun", ("run",), later.of_run),
}


def check(given: Loaded | Project, *, needs: Collection[str] = ("spec",)) -> list[Finding]:
    """Everything that the checks of these needs find in any part of the four kinds; each finding once.

    Findings name their resource and, for `Loaded`, their file and line. Loads no model. Runs an event loop of its own
    for `code`, so it is not to be called from within one. Raises ValueError for a need that there is not.
    """
    if unknown := set(needs) - set(NEEDS):
        raise ValueError(f"found {', '.join(sorted(unknown))}; expected some of {', '.join(NEEDS)}")
    subjects, findings = subjects_of(given)
    findings += [finding for subject in subjects for finding in _found(subject, needs)]
    if isinstance(given, Loaded):
        findings = [given.locate(finding) for finding in findings]
    return list(dict.fromkeys(findings))


def _found(subject: Subject, needs: Collection[str]) -> Iterator[Finding]:
    for entry in CHECKS.values():
        parts = [getattr(subject, part) for part in entry.of] if entry.needs in needs else [None]
        if any(part is None for part in parts):
            continue
        for finding in entry.find(*parts):
            kind = finding.kind or entry.about
            yield finding.at(kind=kind, name=subject.names.get(kind, ""))
