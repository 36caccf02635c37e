"""Fields of a run given on the command line: laid over the manifest, then validated like the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from unitymas.api.documents import Parts, parts_of, spell
from unitymas.api.errors import BadInput, Finding
from unitymas.api.load import Loaded
from unitymas.api.load_errors import findings_of
from unitymas.api.resources import TrainingRun


@dataclass(frozen=True, slots=True)
class Override:
    """One field's new value; `option` is how the user said it."""

    parts: Parts
    value: object
    option: str


def parse_override(text: str) -> Override:
    """`path=value`: the path as in YAML, `spec.` left out or not; the value is YAML. Raises BadInput."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        finding = Finding("override", "--set", f"`{text}`", "path=value, such as schedule.steps=20")
        raise BadInput([finding])
    parts = parts_of(path.strip())
    try:
        parsed: object = YAML(typ="safe", pure=True).load(value)
        parsed = json.loads(json.dumps(parsed, allow_nan=False))
    except (YAMLError, ValueError, TypeError, RecursionError) as error:  # JSON lacks dates, sets, bytes, loops, nan
        found = f"`{value}` ({' '.join(str(error).split())})"
        raise BadInput([Finding("override", f"--set {path}", found, "a value in YAML that JSON has too")]) from None
    return Override(parts if parts[:1] == ("spec",) else ("spec", *parts), parsed, f"--set {text}")


def overrides_of(*, seed: int | None, steps: int | None, assignments: Sequence[str]) -> list[Override]:
    """What `--seed`, `--steps` and `--set` say, in this order: a later one wins."""
    found: list[Override] = []
    if seed is not None:
        found.append(Override(("spec", "seed"), seed, f"--seed {seed}"))
    if steps is not None:
        found.append(Override(("spec", "schedule", "steps"), steps, f"--steps {steps}"))
    return [*found, *(parse_override(text) for text in assignments)]


def override(loaded: Loaded, run: str | None, overrides: Sequence[Override]) -> Loaded:
    """The resources with fields of a run (the only one where None) replaced. Raises BadInput naming the option."""
    names = loaded.names("TrainingRun")
    name = names[0] if run is None and len(names) == 1 else run
    key = ("TrainingRun", name or "")
    if not overrides or key not in loaded.resources:
        return loaded
    document = loaded.documents[key]
    data: Any = document.data
    for each in overrides:
        try:
            data = _replaced(data, each.parts, each.value)
        except LookupError:
            found = Finding("override", spell(each.parts), "no such place", "a field, or an item that its list has")
            raise BadInput([replace(found, file=each.option)]) from None
    changed = replace(document, data=data)
    try:  # strict and by alias, as manifests are read
        resource = TrainingRun.model_validate_json(json.dumps(data), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        findings = findings_of(error, changed, kind="TrainingRun", name=key[1])
        raise BadInput([_blamed(finding, overrides) for finding in findings]) from None
    return replace(loaded, resources={**loaded.resources, key: resource}, documents={**loaded.documents, key: changed})


def _replaced(value: Any, parts: Parts, new: object) -> Any:
    """The value with one field replaced, mappings made on the way. Raises LookupError where there is no such place."""
    if not parts:
        return new
    part, rest = parts[0], parts[1:]
    if isinstance(part, str) and (value is None or isinstance(value, dict)):
        fields = cast(dict[str, Any], value or {})
        return {**fields, part: _replaced(fields.get(part), rest, new)}
    if isinstance(part, int) and isinstance(value, list):
        items = list(cast(list[Any], value))
        items[part] = _replaced(items[part], rest, new)
        return items
    raise LookupError


def _blamed(finding: Finding, overrides: Sequence[Override]) -> Finding:
    """The finding with the option that caused it in the file's place."""
    parts = parts_of(finding.path)
    for each in reversed(overrides):
        common = min(len(parts), len(each.parts))
        if parts[:common] == each.parts[:common]:
            return replace(finding, file=each.option, line=0)
    return finding
