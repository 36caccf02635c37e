"""YAML files, folders and standard input to resources, lines kept; and a run with all that it refers to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from pydantic import ValidationError

from unitymas.api.base import API_VERSION
from unitymas.api.documents import Document, documents, parts_of
from unitymas.api.errors import BadInput, Finding, Findings
from unitymas.api.load_errors import describe, did_you_mean, findings_of
from unitymas.api.resources import (
    KINDS,
    ModelMapping,
    MultiAgentWorkflow,
    Project,
    RewardSpec,
    TrainingRun,
)
from unitymas.api.run import ref_name

AnyResource = MultiAgentWorkflow | RewardSpec | ModelMapping | TrainingRun
Key = tuple[str, str]
"""Kind and name."""
_R = TypeVar("_R", MultiAgentWorkflow, RewardSpec, ModelMapping)
_GROUP = API_VERSION.partition("/")[0]
STDIN = "<stdin>"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The resources of some manifests, and where each of their fields is written."""

    resources: Mapping[Key, AnyResource]
    documents: Mapping[Key, Document]
    ignored: tuple[str, ...] = ()
    """One note for each document of somebody else's kind."""

    def names(self, kind: str) -> list[str]:
        """Names of the resources of a kind, in the order read."""
        return [name for of_kind, name in self.resources if of_kind == kind]

    def line_of(self, resource: AnyResource, path: str) -> int:
        """Line of a field such as `spec.nodes[2].with`, or of the nearest one around it that is written."""
        return self.documents[resource.kind, resource.name].line_of(parts_of(path))

    def locate(self, finding: Finding) -> Finding:
        """The finding with its file and line, when it names a resource of these; else unchanged."""
        document = self.documents.get((finding.kind, finding.name))
        if document is None:
            return finding
        return finding.at(file=document.file, line=document.line_of(parts_of(finding.path)))


def read(sources: Sequence[str | Path], stdin: TextIO | None = None) -> Loaded:
    """Read manifests: files, folders (their `*.yaml` and `*.yml`, not deeper) and `-` for `stdin`.

    Raises BadInput with every finding in every document.
    """
    findings = Findings()
    resources: dict[Key, AnyResource] = {}
    places: dict[Key, Document] = {}
    ignored: list[str] = []
    for file, text in _texts(sources, stdin, findings):
        try:
            found = [item for document in documents(text, file=file) for item in _unpacked(document)]
        except BadInput as error:
            findings.items += error.findings
            continue
        for document in found:
            if not _ours(document):
                ignored.append(_note(document))
            elif resource := _resource(document, findings):
                _keep(resource, document, resources, places, findings)
    findings.raise_if_any()
    return Loaded(resources, places, tuple(ignored))


def resolve(loaded: Loaded, run_name: str | None = None) -> Project:
    """The run of a name, or the only one, with what its references lead to. Raises BadInput."""
    run = _run(loaded, run_name)
    findings = Findings()
    workflow = _referred(loaded, run, "workflow_ref", MultiAgentWorkflow, findings)
    mapping = _referred(loaded, run, "mapping_ref", ModelMapping, findings)
    reward = _referred(loaded, run, "reward_ref", RewardSpec, findings)
    if workflow is None or mapping is None or reward is None:
        raise BadInput(findings.items)
    file = loaded.documents["TrainingRun", run.name].file
    return Project(run, workflow, mapping, reward, "." if file == STDIN else str(Path(file).parent))


def _texts(sources: Sequence[str | Path], stdin: TextIO | None, findings: Findings) -> Iterator[tuple[str, str]]:
    """File name and text of each source, each file once."""
    seen: set[Path] = set()
    for source in sources:
        if str(source) == "-":
            yield STDIN, stdin.read() if stdin else ""
            continue
        for file in _files(Path(source), findings):
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            try:
                yield str(file), file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                findings.add("manifest", str(file), found=str(error), expected="a readable file of UTF-8 text")


def _files(source: Path, findings: Findings) -> list[Path]:
    if not source.exists():
        findings.add("manifest", str(source), found="no such file or folder", expected="manifests")
        return []
    if not source.is_dir():
        return [source]
    files = sorted(file for file in source.iterdir() if file.suffix in (".yaml", ".yml") and file.is_file())
    if not files:
        findings.add("manifest", str(source), found="no *.yaml file in the folder", expected="manifests")
    return files


def _unpacked(document: Document) -> list[Document]:
    """The items of a `List`, or the document itself."""
    kind = _identity(document)[1]
    items = cast(dict[str, Any], document.data).get("items") if kind.endswith("List") else None
    if not isinstance(items, list):
        return [document]
    return [document.within("items", index) for index in range(len(cast(list[Any], items)))]


def _identity(document: Document) -> tuple[str, str, str]:
    """API version, kind and name, each empty where it cannot be read."""
    data: Any = document.data
    if not isinstance(data, dict):
        return "", "", ""
    data = cast(dict[str, Any], data)
    metadata = data.get("metadata")
    name = cast(dict[str, Any], metadata).get("name") if isinstance(metadata, dict) else ""
    return str(data.get("apiVersion") or ""), str(data.get("kind") or ""), str(name or "")


def _ours(document: Document) -> bool:
    version, kind, _ = _identity(document)
    return version.partition("/")[0] == _GROUP or (not version and kind in KINDS)


def _note(document: Document) -> str:
    version, kind, name = _identity(document)
    what = f"{version} {kind} {name}".strip() or "no Kubernetes object"
    return f"{document.file}:{document.line_of(())}: ignored: {what}"


def _resource(document: Document, findings: Findings) -> AnyResource | None:
    version, kind, name = _identity(document)
    place = {"kind": kind, "name": name, "file": document.file}
    if kind not in KINDS:
        known = ", ".join(KINDS)
        finding = Finding("unknown-kind", "kind", f"`{kind}`", f"one of {known}", did_you_mean(kind, KINDS))
        findings.items.append(finding.at(**place, line=document.line_of(("kind",))))
        return None
    if version != API_VERSION:
        finding = Finding("unknown-kind", "apiVersion", describe(version) if version else "nothing", API_VERSION)
        findings.items.append(finding.at(**place, line=document.line_of(("apiVersion",))))
        return None
    try:  # strict, as the API server is: "3" is no number, and names are camelCase only
        return KINDS[kind].model_validate_json(json.dumps(document.data), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        findings.items += findings_of(error, document, kind=kind, name=name)
        return None


def _keep(
    resource: AnyResource,
    document: Document,
    resources: dict[Key, AnyResource],
    places: dict[Key, Document],
    findings: Findings,
) -> None:
    key = (resource.kind, resource.name)
    if key not in resources:
        resources[key], places[key] = resource, document
        return
    first = places[key]
    found = f"a second {resource.kind} of this name; the first is at {first.file}:{first.line_of(('metadata', 'name'))}"
    finding = Finding("duplicate-resource", "metadata.name", found, "each kind and name once")
    line = document.line_of(("metadata", "name"))
    findings.items.append(finding.at(kind=resource.kind, name=resource.name, file=document.file, line=line))


def _run(loaded: Loaded, name: str | None) -> TrainingRun:
    names = loaded.names("TrainingRun")
    wanted = names[0] if name is None and len(names) == 1 else name
    run = loaded.resources.get(("TrainingRun", wanted or ""))
    if isinstance(run, TrainingRun):
        return run
    given = ", ".join(names) or "no TrainingRun"
    if name is None:
        hint = "name one of them" if names else ""
        raise BadInput([Finding("one-run", "kind", given, "exactly one TrainingRun", hint)])
    finding = Finding("one-run", "metadata.name", f"`{name}`", f"the name of a TrainingRun: {given}")
    raise BadInput([finding.at(kind="TrainingRun")])


def _referred(loaded: Loaded, run: TrainingRun, field: str, kind: type[_R], findings: Findings) -> _R | None:
    """What a reference leads to, or None and a finding."""
    name = ref_name(run.spec, field, run.name)
    resource = loaded.resources.get((kind.__name__, name))
    if isinstance(resource, kind):
        return resource
    known = loaded.names(kind.__name__)
    path = f"spec.{field.removesuffix('_ref')}Ref.name"
    expected = f"a {kind.__name__} of these manifests: {', '.join(known) or 'there is none'}"
    finding = Finding("missing-ref", path, f"`{name}`", expected, did_you_mean(name, known))
    findings.items.append(loaded.locate(finding.at(kind="TrainingRun", name=run.name)))
    return None
