"""The rows of a run's splits, read once, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unitymas.api.errors import BadInput, Finding
from unitymas.api.resources import Project
from unitymas.api.run import Dataset
from unitymas.controller.schedule import Pool
from unitymas.data import Sources, read_rows

SPLITS = ("train", "dev", "test")


def read_pools(project: Project, sources: Sources) -> dict[str, list[Pool]]:
    """The rows of every split, one pool a file. A row without an id is named after source, file and line.

    Raises BadInput with every bad row, file without a row, and id that two files of a split share.
    """
    data, fields = project.run.spec.data, project.workflow.spec.input
    pools: dict[str, list[Pool]] = {}
    findings: list[Finding] = []
    for split in SPLITS:
        parts: list[Dataset] = getattr(data, split)
        pools[split] = []
        for part in parts:
            try:
                rows = read_rows(sources.path(part.source, part.file), fields, label=_label(part))
                pools[split].append(Pool(rows, part.weight))
            except BadInput as error:
                findings += error.findings
    if not findings:
        findings = [*_empty(data.train, pools["train"]), *_repeated(pools)]
    if findings:
        raise BadInput([finding.at(kind="TrainingRun", name=project.run.name) for finding in findings])
    return pools


def _label(part: Dataset) -> str:
    return f"{part.source}/{part.file}" if part.file else part.source


def _empty(parts: Sequence[Dataset], pools: Sequence[Pool]) -> Iterator[Finding]:
    if not parts:
        yield Finding("data", "spec.data.train", "no file", "tasks to train on")
    for number, (part, pool) in enumerate(zip(parts, pools, strict=True)):
        if not pool.rows:
            yield Finding("data", f"spec.data.train[{number}]", f"no row in {_label(part)}", "at least one")


def _repeated(pools: Mapping[str, Sequence[Pool]]) -> Iterator[Finding]:
    """Within a file ids are unique already: what two files share would be taken for one task."""
    for split, files in pools.items():
        first: dict[str, int] = {}
        for number, pool in enumerate(files):
            for row in pool.rows:
                if (before := first.setdefault(row.id, number)) != number:
                    found = f"the id `{row.id}`, which spec.data.{split}[{before}] has too"
                    yield Finding("data", f"spec.data.{split}[{number}]", found, "each id once in a split")
                    break
