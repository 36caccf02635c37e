"""Comparison groups and batches: what is compared exists, and there is enough of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from unitymas.api import shapes
from unitymas.api.algorithm import UNGROUPED
from unitymas.api.errors import Finding
from unitymas.api.mapping import ModelMappingSpec
from unitymas.api.names import ESTIMATORS
from unitymas.api.run import TrainingRunSpec
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.mapping import trained_roles
from unitymas.check.names import named
from unitymas.check.walk import placed
from unitymas.expr.cel import Environment
from unitymas.expr.errors import ExpressionError

WORDS = ("task", "trajectory", "role", "node", "visit")
VISIT = shapes.record(
    prompt=shapes.STRING,
    output=shapes.ANY,
    text=shapes.STRING,
    ok=shapes.BOOL,
    ran=shapes.BOOL,
    calls=shapes.INT,
    turn=shapes.INT,
    index=shapes.INT,
)
"""What an expression of `compare.by` sees of a role's visit."""


def compare_parts(run: TrainingRunSpec, workflow: WorkflowSpec) -> Iterator[Finding]:
    """Every part of `compare.by` is a word, the name of a loop or forEach, or an expression over `visit`."""
    given = {"spec.algorithm.compare": run.algorithm.compare}
    for role, own in run.algorithm.roles.items():
        if own.compare is not None:
            given[f"spec.algorithm.roles.{role}.compare"] = own.compare
    repeats = [place.node.name for place in placed(workflow) if place.node.name in place.repeats]
    for path, compare in given.items():
        for number, part in enumerate(compare.by):
            yield from _part(part, f"{path}.by[{number}]", repeats, known=workflow.python is None)


def _part(part: str, path: str, repeats: Sequence[str], *, known: bool) -> Iterator[Finding]:
    if part.isidentifier():
        if known and part not in (*WORDS, *repeats):
            found, _, hint = named(part, [*WORDS, *repeats], "")
            loops = f"a loop or forEach ({', '.join(repeats) or 'there are none'})"
            yield Finding("compare", path, found, f"{', '.join(WORDS)}, {loops}, or CEL over `visit`", hint)
        return
    try:
        Environment.of({"visit": VISIT}).compile(part)
    except ExpressionError as error:
        yield Finding("compare", path, error.found, error.expected, error.hint)


def sizes(run: TrainingRunSpec, workflow: WorkflowSpec, mapping: ModelMappingSpec) -> Iterator[Finding]:
    """The largest group that each trained role can have is big enough to be compared."""
    algorithm = run.algorithm
    if algorithm.estimator in UNGROUPED:
        return
    trained = trained_roles(mapping)
    for role in trained:
        compare = algorithm.for_role(role).compare
        most = most_in_group(workflow, run, roles=[role] if "role" in compare.by else trained, by=compare.by)
        if most >= compare.min_group:
            continue
        own = algorithm.roles.get(role)
        place = f"spec.algorithm.roles.{role}" if own is not None and own.compare is not None else "spec.algorithm"
        said = f"{', '.join(compare.by)}; rolloutsPerTask {algorithm.rollouts_per_task}"
        ungrouped = ", ".join(name for name in ESTIMATORS if name in UNGROUPED)
        yield Finding(
            "group-size",
            f"{place}.compare.by",
            f"groups of at most {most} for role `{role}` ({said})",
            f"at least minGroup {compare.min_group}: a smaller group has no baseline and trains nothing",
            f"raise rolloutsPerTask, compare by less, or use an estimator without groups: {ungrouped}",
        )


def most_in_group(workflow: WorkflowSpec, run: TrainingRunSpec, *, roles: Sequence[str], by: Sequence[str]) -> int:
    """Upper bound on the visits of these roles that share one comparison group in a step."""
    algorithm = run.algorithm
    trajectories = algorithm.rollouts_per_task * run.schedule.tasks_per_step
    if "trajectory" in by:
        trajectories = 1
    elif "task" in by:
        trajectories = algorithm.rollouts_per_task
    return trajectories * (1 if "visit" in by else _most_visits(workflow, roles, by))


def _most_visits(workflow: WorkflowSpec, roles: Sequence[str], by: Sequence[str]) -> int:
    """Upper bound on such visits of one trajectory."""
    if workflow.python is not None:
        return workflow.python.max_calls
    counts = [
        prod(most for name, most in place.repeats.items() if name not in by)
        for place in placed(workflow)
        if place.node.role in roles
    ]
    return max(counts, default=0) if "node" in by else sum(counts)


def batches(run: TrainingRunSpec, workflow: WorkflowSpec, mapping: ModelMappingSpec) -> Iterator[Finding]:
    """Every mini-batch of every model gets at least one row."""
    count = run.algorithm.mini_batches
    trained = trained_roles(mapping)
    for model in dict.fromkeys(mapping.model_of(role) for role in trained):
        roles = [role for role in trained if mapping.model_of(role) == model]
        rows = most_in_group(workflow, run, roles=roles, by=[])
        if 0 < rows < count:
            found = f"{count}, and model `{model}` gets at most {rows} rows a step"
            yield Finding("batch", "spec.algorithm.miniBatches", found, f"at most {rows}")
