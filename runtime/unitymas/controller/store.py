"""What a run leaves in its folder: metrics as JSON lines, trajectories as one Parquet file a step.

Files are written aside and renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from unitymas.api.errors import Infrastructure
from unitymas.api.records import Trajectory, Visit

_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("model", pa.string()),
        ("finish", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("truncated_tokens", pa.int64()),
        ("version", pa.int64()),
        ("started_s", pa.float64()),
        ("ended_s", pa.float64()),
        ("retries", pa.int64()),
    ]
)
SCHEMA = pa.schema(
    [
        ("trajectory", pa.string()),
        ("phase", pa.string()),
        ("step", pa.int64()),
        ("task", pa.string()),
        ("rollout", pa.int64()),
        ("score", pa.float64()),
        ("result", pa.string()),
        ("metrics", pa.string()),
        ("trajectory_failure", pa.string()),
        ("trajectory_error", pa.string()),
        ("position", pa.int64()),
        ("visit", pa.string()),
        ("node", pa.string()),
        ("role", pa.string()),
        ("model", pa.string()),
        ("tool", pa.string()),
        ("parents", pa.list_(pa.string())),
        ("turns", pa.map_(pa.string(), pa.int64())),
        ("items", pa.map_(pa.string(), pa.int64())),
        ("prompt", pa.string()),
        ("text", pa.string()),
        ("output", pa.string()),
        ("ok", pa.bool_()),
        ("reward", pa.float64()),
        ("rewards", pa.map_(pa.string(), pa.float64())),
        ("failure", pa.string()),
        ("error", pa.string()),
        ("started_s", pa.float64()),
        ("ended_s", pa.float64()),
        ("calls", pa.list_(_CALL)),
    ]
)
"""One row a visit; the trajectory's own columns repeat."""


@contextmanager
def aside(path: Path) -> Generator[Path]:
    """A path to write to, which becomes `path` at the end: durable, whole, or not there at all.

    Raises Infrastructure when the disk does not take it.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        flush(part)
        os.replace(part, path)
        flush(path.parent)
    except OSError as error:
        raise Infrastructure(f"run folder {path.parent}", f"{path.name} could not be written: {error}") from error
    finally:
        with suppress(OSError):  # it is not there, or its folder is not
            part.unlink()


def flush(path: Path) -> None:
    """Have the disk hold what was written to a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def table(trajectories: Sequence[Trajectory]) -> pa.Table:
    """The trajectories as one table, a row a visit, in order."""
    rows = [
        _row(trajectory, position, visit)
        for trajectory in trajectories
        for position, visit in enumerate(trajectory.visits)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _row(trajectory: Trajectory, position: int, visit: Visit) -> dict[str, object]:
    return {
        "trajectory": trajectory.id,
        "phase": trajectory.phase,
        "step": trajectory.step,
        "task": trajectory.task.id,
        "rollout": trajectory.rollout,
        "score": trajectory.score,
        "result": _json(trajectory.result),
        "metrics": _json(trajectory.metrics),
        "trajectory_failure": trajectory.failure.value if trajectory.failure else None,
        "trajectory_error": trajectory.error,
        "position": position,
        "visit": visit.key,
        "node": visit.node,
        "role": visit.role,
        "model": visit.model,
        "tool": visit.tool,
        "parents": list(visit.parents),
        "turns": dict(visit.turns),
        "items": dict(visit.items),
        "prompt": visit.prompt,
        "text": visit.text,
        "output": _json(visit.output),
        "ok": visit.ok,
        "reward": visit.reward,
        "rewards": dict(visit.rewards),
        "failure": visit.failure.value if visit.failure else None,
        "error": visit.error,
        "started_s": visit.started_s,
        "ended_s": visit.ended_s,
        "calls": [{name: getattr(call, name) for name in call.__slots__} for call in visit.calls],
    }


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def plain(value: object) -> object:
    """The value with null in place of every number that is not finite: JSON has none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in cast("Sequence[object]", value)]
    return value


@dataclass(frozen=True, slots=True)
class Store:
    """A run's folder."""

    folder: Path

    @property
    def metrics_path(self) -> Path:
        """One JSON object a line: `step`, `phase` and numbers."""
        return self.folder / "metrics.jsonl"

    def trajectories(self, name: str, trajectories: Sequence[Trajectory]) -> None:
        """Write the trajectories of one step or evaluation. Raises Infrastructure when the disk does not take them."""
        with aside(self.folder / "trajectories" / f"{name}.parquet") as part:
            pq.write_table(table(trajectories), part, compression="zstd")

    def metrics(self, record: Mapping[str, object]) -> None:
        """Append one record; a number that is not finite becomes null, which JSON has. Raises Infrastructure."""
        try:
            with self.metrics_path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(plain(record)) + "\n")
        except OSError as error:
            raise Infrastructure(f"run folder {self.folder}", f"metrics could not be written: {error}") from error

    def read_metrics(self) -> list[dict[str, object]]:
        """All records; a last line cut short by a kill is left out."""
        if not self.metrics_path.exists():
            return []
        records: list[dict[str, object]] = []
        for line in self.metrics_path.read_text("utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return records

    def rewind(self, step: int, *, again: bool = False) -> None:
        """Forget what the resumed run records again: beyond a step, on test, and (`again`) the step's evaluations."""

        def kept(phase: str, of: int) -> bool:
            return not phase.startswith("test") and (of, again and phase != "train") <= (step, False)

        records = [record for record in self.read_metrics() if kept(str(record["phase"]), int(str(record["step"])))]
        with aside(self.metrics_path) as part:
            part.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        for path in self.folder.glob("trajectories/*"):
            name, _, number = path.stem.rpartition("-")
            if path.suffix == ".part" or not kept("train" if name == "step" else name, int(number)):
                path.unlink()

    def write_json(self, name: str, value: object) -> None:
        """Write one JSON document; a number that is not finite becomes null. Raises Infrastructure."""
        with aside(self.folder / name) as part:
            part.write_text(json.dumps(plain(value), indent=2) + "\n", "utf-8")
