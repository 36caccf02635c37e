"""A run that is stopped, wherever it is: saved, and resumed as if it had never stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.runs import Heard
from support.scripted import Learner, run_scripted, small_project, yes
from unitymas.api.ports import Update
from unitymas.api.records import Request, Row
from unitymas.controller.barrier import Barrier, read_manifest
from unitymas.controller.stop import Stopped
from unitymas.controller.store import Store


class Signalled(Learner):
    """Has this process signalled once, by the request that `during` says, which is never answered; or in an update."""

    def __init__(self, during: Callable[[Request], bool], *, in_update: bool = False) -> None:
        self.sent = False
        super().__init__("m", yes, delay_s=self.delay_s)
        self.during = during
        self.in_update = in_update

    def delay_s(self, request: Request) -> float:
        return NEVER_S if self.send(self.during(request)) else 0.0

    def send(self, due: bool) -> bool:
        due = due and not self.sent
        if due:
            self.sent = True
            signal.raise_signal(signal.SIGTERM)
        return due

    async def train(self, rows: Sequence[Row], *, step: int) -> Update:
        self.send(self.in_update and step == 1)
        return await super().train(rows, step=step)


NEVER_S = 3600.0


@dataclass(frozen=True)
class Case:
    """Where the signal comes, and what is saved then."""

    group: Callable[[], Signalled]
    step: int
    dev_due: bool = False


def of(phase: str, step: int) -> Callable[[Request], bool]:
    return lambda request: (request.id.phase, request.id.step) == (phase, step)


CASES: Mapping[str, Case] = {
    "first evaluation": Case(lambda: Signalled(of("dev-greedy", 0)), 0, dev_due=True),
    "first rollout": Case(lambda: Signalled(of("train", 0)), 0),
    "rollout": Case(lambda: Signalled(of("train", 2)), 2),
    "update": Case(lambda: Signalled(lambda _: False, in_update=True), 2, dev_due=True),  # the update is finished first
    "evaluation": Case(lambda: Signalled(of("dev-greedy", 2)), 2, dev_due=True),
    "test": Case(lambda: Signalled(of("test-greedy", 0)), 4),
}


def alone(tmp_path: Path) -> tuple[Learner, list[dict[str, object]]]:
    """What comes of the same run left alone."""
    group = Learner("m", yes)
    run_scripted(small_project(tmp_path / "p"), tmp_path / "alone", {"m": group})
    return group, [timeless(record) for record in Store(tmp_path / "alone").read_metrics()]


def timeless(record: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value
        for name, value in record.items()
        if not name.startswith(("time/", "group/")) and name != "tokens_per_s"
    }


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_run_is_saved_and_resumed_as_if_it_had_never_stopped(tmp_path: Path, name: str) -> None:
    case, folder = CASES[name], tmp_path / "run"
    expected, metrics = alone(tmp_path)
    project = small_project(tmp_path / "p")
    with pytest.raises(Stopped) as stopped:
        run_scripted(project, folder, {"m": case.group()})
    assert stopped.value.step == case.step
    found = Barrier(folder / "checkpoints").latest()
    assert found is not None
    assert (found[1].step, found[1].dev_due) == (case.step, case.dev_due)
    resumed: Any = Learner("m", yes)
    run_scripted(project, folder, {"m": resumed})
    assert read_manifest(folder / "checkpoints" / "step-4").step == 4
    assert resumed.lessons == expected.lessons
    assert [timeless(record) for record in Store(folder).read_metrics()] == metrics


def test_a_stopped_run_hears_of_no_step_that_was_not_done(tmp_path: Path) -> None:
    heard = Heard()
    with pytest.raises(Stopped):
        run_scripted(small_project(tmp_path / "p"), tmp_path / "run", {"m": CASES["rollout"].group()}, observer=heard)
    assert [report.step for report in heard.steps] == [1, 2]
    assert heard.checkpoints == [0, 1, 2]
