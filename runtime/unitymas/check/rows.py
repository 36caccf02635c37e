"""Rows and passages: every file that the run reads is there, and every row of it is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from unitymas.api.errors import BadInput, Finding
from unitymas.api.shapes import ShapeError
from unitymas.api.workflow import WorkflowSpec
from unitymas.check.settings import datasets
from unitymas.data import Sources, read_corpus, scan_rows


def tasks(workflow: WorkflowSpec, sources: Sources) -> Iterator[Finding]:
    """Every row carries the input fields; a step finds tasks enough that none is drawn twice."""
    counts: dict[tuple[str, str | None], int] = {}
    for path, part in datasets(sources.spec):
        place = (part.source, part.file)
        if place in counts or part.source not in _known(sources):
            continue
        counts[place] = 0
        try:
            file = sources.path(*place)
            counts[place] = sum(1 for _ in scan_rows(file, workflow.input, label=str(file)))
        except BadInput as error:
            yield from _placed(error.findings, path)
            continue
        except ShapeError:  # of the input: has its own finding
            return
        if counts[place] == 0:
            yield Finding("rows", path, f"no row in {file}", "at least one")
    read = [counts.get((part.source, part.file), 0) for part in sources.spec.data.train]
    trained_on, wanted = sum(read), sources.spec.schedule.tasks_per_step
    if all(read) and 0 < trained_on < wanted:
        expected = f"at most {trained_on}, the rows of spec.data.train: else a step trains on a task twice"
        yield Finding("batch", "spec.schedule.tasksPerStep", f"{wanted}", expected)


def passages(workflow: WorkflowSpec, sources: Sources) -> Iterator[Finding]:
    """Every corpus can be read."""
    named = {tool.retriever.corpus for tool in workflow.tools if tool.retriever is not None}
    for name in sorted(named & _known(sources)):
        index = [source.name for source in sources.spec.sources].index(name)
        try:
            found = read_corpus(sources.path(name))
        except BadInput as error:
            yield from _placed(error.findings, f"spec.sources[{index}]")
            continue
        if not found:
            yield Finding("corpus", f"spec.sources[{index}]", f"no passage in source `{name}`", "at least one")


def _known(sources: Sources) -> set[str]:
    return {source.name for source in sources.spec.sources}


def _placed(findings: Iterable[Finding], path: str) -> Iterator[Finding]:
    """Findings about a line of a file, at the field that names the file; those about a source are placed already."""
    for finding in findings:
        if finding.kind:
            yield finding
        else:
            yield replace(finding, path=path, found=f"{finding.path}: {finding.found}")
