"""What a run leaves: read back as it was written, whole or not there, rewound to a checkpoint."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from unitymas.api.errors import Failure, Infrastructure
from unitymas.api.records import Call, TaskRow, Trajectory, Visit
from unitymas.controller.store import Store, aside


def trajectory() -> Trajectory:
    call = Call("train/2/q1/0/turns[1].search/0", "m", "length", 7, 5, 1, 2, 0.25, 0.5, retries=1)
    search = Visit(
        key="turns[1].search",
        node="search",
        order=((False, 0), (True, 1)),
        parents=("turns[0].search",),
        role="searcher",
        model="m",
        turns={"turns": 1},
        items={"each": 3},
        prompt="where? é",
        text="<q>there</q>",
        value={"output": {"q": ["there"]}, "ok": True, "ran": True, "text": "<q>there</q>", "calls": 1},
        calls=(call,),
        rewards={"f1": 0.5, "hit": -0.25},
    )
    tool = Visit("retrieve", "retrieve", ((False, 2),), ("turns[1].search",), tool="wiki", failure=Failure.POLICY)
    return Trajectory(
        TaskRow("q1", {}), 2, 0, visits=[search, tool], result=["a"], metrics={"f1": 0.5, "hits": [0.0, 1.0]}, score=0.5
    )


def test_a_trajectory_reads_back_a_row_a_visit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.trajectories("step-000002", [trajectory()])
    rows: list[dict[str, Any]] = pq.read_table(tmp_path / "trajectories" / "step-000002.parquet").to_pylist()
    first, second = rows
    assert (first["trajectory"], first["task"], first["score"]) == ("train/2/q1/0", "q1", 0.5)
    assert (first["position"], second["position"]) == (0, 1)
    assert first["parents"] == ["turns[0].search"]
    assert (first["turns"], first["items"]) == ([("turns", 1)], [("each", 3)])
    assert json.loads(first["output"]) == {"q": ["there"]}
    assert (first["prompt"], first["text"], first["ok"]) == ("where? é", "<q>there</q>", True)
    assert first["reward"] == 0.25
    assert dict(first["rewards"]) == {"f1": 0.5, "hit": -0.25}
    call = trajectory().visits[0].calls[0]
    assert first["calls"] == [{name: getattr(call, name) for name in call.__slots__}]
    assert (second["tool"], second["failure"], second["calls"]) == ("wiki", "policy", [])
    assert json.loads(first["metrics"]) == {"f1": 0.5, "hits": [0.0, 1.0]}


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text("before")
    with pytest.raises(KeyError), aside(path) as part:
        part.write_text("half")
        raise KeyError
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["some.json"]


def test_a_folder_that_takes_nothing_is_an_infrastructure_failure(tmp_path: Path) -> None:
    (tmp_path / "trajectories").write_text("a file where a folder should be")
    with pytest.raises(Infrastructure, match="run folder"):
        Store(tmp_path).trajectories("step-000001", [trajectory()])


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.metrics({"step": 1, "phase": "train"})
    with store.metrics_path.open("a") as file:
        file.write('{"step": 2, "pha')
    assert store.read_metrics() == [{"step": 1, "phase": "train"}]


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.metrics({"step": 1, "phase": "train", "score": math.nan, "grad_norm": math.inf})
    assert store.read_metrics() == [{"step": 1, "phase": "train", "score": None, "grad_norm": None}]


def records() -> list[dict[str, Any]]:
    return [
        {"step": 0, "phase": "dev-greedy"},
        {"step": 1, "phase": "train"},
        {"step": 1, "phase": "dev-greedy"},
        {"step": 2, "phase": "train"},
        {"step": 0, "phase": "test-greedy"},
    ]


@pytest.mark.parametrize(("again", "kept"), [(False, [0, 1, 2]), (True, [0, 1])])
def test_rewinding_forgets_what_will_be_recorded_again(tmp_path: Path, again: bool, kept: list[int]) -> None:
    store = Store(tmp_path)
    names = ["dev-greedy-000000", "step-000001", "dev-greedy-000001", "step-000002", "test-greedy-000000"]
    for record, name in zip(records(), names, strict=True):
        store.metrics(record)
        store.trajectories(name, [trajectory()])
    (tmp_path / "trajectories" / ".step-000003.parquet.part").write_text("killed here")
    store.rewind(1, again=again)
    assert store.read_metrics() == [records()[index] for index in kept]
    left = sorted(path.name for path in (tmp_path / "trajectories").iterdir())
    assert left == sorted(f"{names[index]}.parquet" for index in kept)
