"""Checkpoints: whole or passed over, and those that are still wanted are kept."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from support.scripted import Learner, yes
from unitymas.api.errors import Infrastructure
from unitymas.controller.barrier import MANIFEST, Barrier, Manifest, read_manifest


class FullDisk(Learner):
    """Fails half-way through a save: as Python does, or as what the trainer's library says becomes on the way."""

    def __init__(self, error: Exception) -> None:
        super().__init__("b", yes)
        self.error = error

    async def save(self, folder: Path) -> None:
        (folder / "half").write_text("half")
        raise self.error


def groups() -> dict[str, Learner]:
    return {"a": Learner("a", yes), "b": Learner("b", yes)}


def save(folder: Path, step: int, *, keep: int = 2, best: int = 0, dev_due: bool = False) -> Path:
    manifest = Manifest(step, "digest", seed=1, best={"step": best, "score": 0.5}, dev_due=dev_due)
    return asyncio.run(Barrier(folder, keep).save(manifest, groups()))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_reads_back_with_every_file_told(tmp_path: Path) -> None:
    path = save(tmp_path, 3, best=2, dev_due=True)
    found = read_manifest(path)
    assert (found.step, found.digest, found.seed, found.dev_due) == (3, "digest", 1, True)
    assert found.best == {"step": 2, "score": 0.5}
    assert set(found.files) == {"a/lessons.json", "b/lessons.json"}
    assert Barrier(tmp_path).latest() == (path, found)


def test_the_newest_the_first_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in range(7):
        save(tmp_path, step, best=min(step, 2))
    assert names(tmp_path) == ["step-0", "step-2", "step-5", "step-6"]


def test_a_checkpoint_that_was_passed_over_does_not_push_out_a_whole_one(tmp_path: Path) -> None:
    for step in (0, 1, 2, 3):
        save(tmp_path, step, keep=1)
    (tmp_path / "step-3" / "a" / "lessons.json").write_text("broken")
    save(tmp_path, 1, keep=1)  # done again, from an older one
    assert Barrier(tmp_path).at(1) is not None


@pytest.mark.parametrize("error", [OSError("disk full"), Infrastructure("model b", "RuntimeError: file write failed")])
def test_a_disk_that_is_full_leaves_the_last_checkpoint_as_it_was(tmp_path: Path, error: Exception) -> None:
    save(tmp_path, 1)
    before = read_manifest(tmp_path / "step-1")
    with pytest.raises(Infrastructure, match=r"checkpoint .*step-2: .*; the run's last checkpoint is untouched"):
        asyncio.run(Barrier(tmp_path).save(Manifest(2, "digest", 1), {"a": Learner("a", yes), "b": FullDisk(error)}))
    assert names(tmp_path) == ["step-1"]
    assert Barrier(tmp_path).latest() == (tmp_path / "step-1", before)


def test_a_half_written_checkpoint_is_passed_over_and_said_so(tmp_path: Path) -> None:
    save(tmp_path, 1)
    shutil.copytree(tmp_path / "step-1", tmp_path / ".step-2.part")
    (tmp_path / ".step-2.part" / MANIFEST).unlink()
    with structlog.testing.capture_logs() as logs:
        found = Barrier(tmp_path).latest()
    assert found is not None and found[1].step == 1
    (told,) = logs
    assert (told["event"], told["log_level"], told["reason"]) == ("checkpoint.passed_over", "warning", "half-written")
    assert told["path"].endswith(".step-2.part")
    save(tmp_path, 2)
    assert names(tmp_path) == ["step-1", "step-2"]


def test_looking_for_the_newest_touches_nothing_of_a_run_that_is_saving(tmp_path: Path) -> None:
    save(tmp_path, 1)
    (tmp_path / ".step-2.part" / "a").mkdir(parents=True)
    Barrier(tmp_path).latest()
    assert names(tmp_path) == [".step-2.part", "step-1"]


def test_where_nothing_is_whole_there_is_none(tmp_path: Path) -> None:
    assert Barrier(tmp_path / "missing").latest() is None
    (tmp_path / "step-1").mkdir()
    (tmp_path / "step-notes").mkdir()
    assert Barrier(tmp_path).latest() is None
    assert Barrier(tmp_path).steps() == [1]


@given(
    file=st.sampled_from([MANIFEST, "a/lessons.json", "b/lessons.json"]),
    cut=st.one_of(st.none(), st.integers(0, 10_000)),
    place=st.integers(0, 10_000),
    flip=st.integers(1, 255),
)
def test_whatever_happened_to_the_newest_the_one_before_is_found(
    file: str, cut: int | None, place: int, flip: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        save(folder, 1)
        damaged = save(folder, 2) / file
        content = bytearray(damaged.read_bytes())
        if cut is None:
            content[place % len(content)] ^= flip
        else:
            del content[cut % len(content) :]
        damaged.write_bytes(content)
        with structlog.testing.capture_logs() as logs:
            found = Barrier(folder).latest()
        assert found is not None
        assert found[1].step == 1
        assert [told["path"] for told in logs] == [str(folder / "step-2")]


@pytest.mark.parametrize("content", ["[]", "3", "{}", '{"manifest": {"step": 9}, "seal": "x"}', "null"])
def test_a_manifest_of_another_kind_is_no_manifest(tmp_path: Path, content: str) -> None:
    (tmp_path / "step-9").mkdir()
    (tmp_path / "step-9" / MANIFEST).write_text(content)
    with structlog.testing.capture_logs() as logs:
        assert Barrier(tmp_path).latest() is None
    assert "not what was written" in logs[0]["reason"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    assert json.loads((path / MANIFEST).read_text())["manifest"]["step"] == 1
    (path / "a" / "lessons.json").unlink()
    with structlog.testing.capture_logs() as logs:
        assert Barrier(tmp_path).latest() is None
    assert logs[0]["reason"] == "a/lessons.json is missing"


def test_a_checkpoint_that_is_being_read_outlives_the_saves_meanwhile(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    with Barrier(tmp_path).pinned() as newest, Barrier(tmp_path).pinned(1) as first:
        for step in (3, 4, 5):
            save(tmp_path, step, keep=1)
        assert newest is not None and first is not None
        assert names(tmp_path) == ["step-1", "step-2", "step-5"]
        assert (newest[0] / "a" / "lessons.json").exists()
    save(tmp_path, 6, keep=1)
    assert names(tmp_path) == ["step-6"]
    with Barrier(tmp_path).pinned(5) as gone:
        assert gone is None
