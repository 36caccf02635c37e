"""Sources as paths: relative ones, mounted ones, fetched ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unitymas.api.errors import BadInput, Finding
from unitymas.api.run import TrainingRunSpec
from unitymas.data import Sources


def sources(folder: Path, *given: dict[str, Any]) -> Sources:
    spec = TrainingRunSpec.model_validate({"sources": list(given)})
    return Sources(spec, folder, run="rag", mounts=folder / "mounts", cache=folder / "cache")


def finding(made: Sources, name: str, file: str | None = None) -> Finding:
    with pytest.raises(BadInput) as caught:
        made.path(name, file)
    (found,) = caught.value.findings
    assert (found.kind, found.name) == ("TrainingRun", "rag")
    return found


def test_a_path_is_relative_to_the_manifests_folder(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").touch()
    made = sources(tmp_path, {"name": "a", "path": "data"}, {"name": "b", "path": str(tmp_path / "data")})
    assert made.path("a") == made.path("b") == tmp_path / "data"
    assert made.path("a", "train.jsonl") == tmp_path / "data" / "train.jsonl"


def test_what_is_not_there_is_a_finding_at_its_source(tmp_path: Path):
    made = sources(tmp_path, {"name": "a", "path": "."}, {"name": "wiki", "path": "none"})
    assert finding(made, "wiki").path == "spec.sources[1]"
    assert "none.jsonl" in finding(made, "a", "none.jsonl").found
    unknown = finding(made, "wikis")
    assert (unknown.path, unknown.expected) == ("spec.sources", "the name of a source: a, wiki")
    assert unknown.hint == "did you mean `wiki`?"


def test_claims_and_config_maps_exist_where_a_cluster_mounts_them(tmp_path: Path):
    made = sources(
        tmp_path,
        {"name": "wiki", "claim": {"name": "c", "path": "w.jsonl"}},
        {"name": "code", "configMap": {"name": "m"}},
    )
    assert finding(made, "wiki").path == "spec.sources[0].claim"
    assert finding(made, "code").path == "spec.sources[1].configMap"
    for file in ("wiki/w.jsonl", "code/rewards.py"):
        (tmp_path / "mounts" / file).parent.mkdir(parents=True)
        (tmp_path / "mounts" / file).touch()
    assert made.path("wiki") == tmp_path / "mounts" / "wiki" / "w.jsonl"
    assert made.path("code", "rewards.py").is_file()


def test_a_uri_is_fetched_once_and_kept_under_its_own_name(tmp_path: Path):
    remote = tmp_path / "remote" / "train.jsonl"
    remote.parent.mkdir()
    remote.write_text("first")
    made = sources(tmp_path, {"name": "a", "uri": f"file://{remote.parent}/"}, {"name": "b", "uri": f"file://{remote}"})
    copy = made.path("a", "train.jsonl")
    remote.write_text("second")
    assert copy.name == "train.jsonl"
    assert copy.is_relative_to(tmp_path / "cache")
    assert made.path("a", "train.jsonl").read_text() == made.path("b").read_text() == "first"


@pytest.mark.parametrize("uri", ["file:///none/train.jsonl", "nonsense://x"])
def test_a_uri_that_cannot_be_fetched_is_a_finding(tmp_path: Path, uri: str):
    assert finding(sources(tmp_path, {"name": "a", "uri": uri}), "a").path == "spec.sources[0].uri"


def test_python_is_imported_from_the_folders_that_say_so(tmp_path: Path):
    (tmp_path / "code").mkdir()
    (tmp_path / "one.py").touch()
    made = sources(
        tmp_path,
        {"name": "a", "path": "code", "python": True},
        {"name": "b", "path": "."},
        {"name": "c", "path": "one.py", "python": True},
    )
    assert made.python_paths() == [tmp_path / "code", tmp_path]


def test_a_source_to_write_to_need_not_be_there_but_is_a_folder(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "mounts" / "claimed").mkdir(parents=True)
    given = [
        {"name": "new", "path": "runs/new"},
        {"name": "claimed", "claim": {"name": "c", "path": "new"}},
        {"name": "file", "path": "file"},
        {"name": "far", "uri": "memory://runs"},
        {"name": "packed", "configMap": {"name": "c"}},
    ]
    made = sources(tmp_path, *given)
    assert made.writable("new") == tmp_path / "runs" / "new"
    assert made.writable("claimed") == tmp_path / "mounts" / "claimed" / "new"
    for number, name in enumerate(("file", "far", "packed"), start=2):
        with pytest.raises(BadInput, match=rf"spec\.sources\[{number}\]: .*can be written to"):
            made.writable(name)
