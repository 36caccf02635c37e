"""Progress on a terminal and without one."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

from unitymas.api.records import TaskRow, Trajectory
from unitymas.cli.display import progress, role_rewards
from unitymas.controller.evaluate import Estimate
from unitymas.controller.report import EvaluationReport, Observer, StepReport

NUMBERS = {
    "score": 0.5,
    "reward/searcher": 0.25,
    "reward/searcher/hit": 0.125,
    "reward/answerer": 0.75,
    "tokens_per_s": 1234.0,
    "time/step_s": 2.0,
}


def tell_a_run(observer: Observer) -> None:
    observer.phase("step 1", 2)
    for rollout in range(2):
        observer.trajectory(Trajectory(TaskRow("q", {}), 0, rollout))
    observer.step(StepReport(1, 2, NUMBERS))
    observer.saved(1, "checkpoints/step-1")
    observer.phase("dev greedy", 1)
    observer.evaluation(EvaluationReport("dev", 1, {"greedy": Estimate(0.5, 0.25, 0.75, 8, 0)}))
    observer.step(StepReport(2, 2, NUMBERS | {"failures/infrastructure": 3.0}))


def test_without_a_terminal_there_is_one_plain_line_a_step_and_evaluation() -> None:
    out = StringIO()
    with progress(2, console=Console(file=out)) as observer:
        tell_a_run(observer)
    assert out.getvalue().splitlines() == [
        "step 1/2  score 0.500  reward searcher 0.250 answerer 0.750  1,234 tokens/s  2.0 s",
        "dev after step 1: greedy 0.500 [0.250, 0.750] on 8 tasks",
        "step 2/2  score 0.500  reward searcher 0.250 answerer 0.750  1,234 tokens/s  2.0 s  3 failed",
    ]


def test_quiet_tells_nothing() -> None:
    out = StringIO()
    with progress(2, quiet=True, console=Console(file=out, force_terminal=True)) as observer:
        tell_a_run(observer)
    assert out.getvalue() == ""


def test_a_terminal_gets_bars_the_last_steps_numbers_and_lasting_evaluations() -> None:
    out = StringIO()
    with progress(2, console=Console(file=out, force_terminal=True)) as observer:
        tell_a_run(observer)
    shown = Text.from_ansi(out.getvalue()).plain
    assert "2/2" in shown
    assert "searcher 0.250  answerer 0.750  score 0.500  1,234 tokens/s  dev after step 1" in shown
    assert "dev after step 1: greedy 0.500 [0.250, 0.750] on 8 tasks" in shown


def test_a_roles_reward_is_told_apart_from_its_parts() -> None:
    assert role_rewards(NUMBERS) == {"searcher": 0.25, "answerer": 0.75}
