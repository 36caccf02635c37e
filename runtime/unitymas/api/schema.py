"""`python -m unitymas.api.schema [--check] [DIR]`: CRDs, JSON Schemas and the reference page from the classes.

Writes DIR/crds/*.yaml, DIR/crds/schemas/*.json and DIR/docs/90-reference.md (DIR is `.` when absent); with `--check`
writes nothing and fails when one of them is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from unitymas.api.base import API_VERSION
from unitymas.api.crds import DURATION, Schema, crd, plural_of
from unitymas.api.reference import docs_tables
from unitymas.api.resources import KINDS

__all__ = ["docs_tables", "files", "json_schema", "main"]

_GROUP = API_VERSION.partition("/")[0]
_MADE = "Made by `python -m unitymas.api.schema` from `unitymas.api`; do not edit."


def json_schema(kind: str) -> Schema:
    """The JSON Schema (draft 2020-12) of a kind, for editors and validators of YAML."""
    made = _tidy(KINDS[kind].model_json_schema(by_alias=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": _MADE,
        **made,
        "required": ["apiVersion", "kind", "metadata", "spec"],
    }


def files() -> dict[str, str]:
    """Every generated file's text, by its path from the repository's root."""
    crds = {f"crds/{_GROUP}_{plural_of(kind)}.yaml": f"# {_MADE}\n{_yaml(crd(kind))}" for kind in KINDS}
    schemas = {f"crds/schemas/{kind}.json": json.dumps(json_schema(kind), indent=1) + "\n" for kind in KINDS}
    return {**crds, **schemas, "docs/90-reference.md": f"<!-- {_MADE} -->\n\n{docs_tables()}"}


def main(arguments: Sequence[str]) -> int:
    """The command. Returns the exit code: 1 when `--check` found stale files."""
    check = "--check" in arguments
    root = Path(next((argument for argument in arguments if argument != "--check"), "."))
    made = files()
    stale = [path for path, text in made.items() if _written(root / path) != text]
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path}")
        if not check:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(made[path], encoding="utf-8")
    return 1 if check and stale else 0


def _written(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _yaml(value: Schema) -> str:
    yaml: Any = YAML()
    yaml.width = 120
    yaml.representer.ignore_aliases = _never
    text = StringIO()
    yaml.dump(value, text)
    return text.getvalue()


def _never(_: object) -> bool:
    return True


def _tidy(node: Any) -> Any:
    """Plain JSON Schema: durations as text, no marks of ours or of Kubernetes, no generated titles."""
    if isinstance(node, list):
        return [_tidy(item) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    given = cast(dict[str, Any], node)
    if "x-duration" in given:
        default = {"default": f"{given['default']:g}s"} if "default" in given else {}
        return {**DURATION, **default, **{key: given[key] for key in ("description",) if key in given}}
    made = {key: _tidy(value) for key, value in given.items() if not key.startswith("x-") and not _title(key, value)}
    if "patternProperties" in made:
        made["additionalProperties"] = False
    return made


def _title(key: str, value: object) -> bool:
    """Whether this is pydantic's title of a node, not a field called `title`."""
    return key == "title" and isinstance(value, str)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
