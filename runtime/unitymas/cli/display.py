"""A run's progress: a live display on a terminal, else one line a step and an evaluation."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from unitymas.api.records import Trajectory
from unitymas.cli.console import OUT, say
from unitymas.controller.report import EvaluationReport, Observer, StepReport

log = structlog.get_logger()
REFRESHES_PER_SECOND = 4


@contextmanager
def progress(steps: int, *, quiet: bool = False, console: Console = OUT) -> Generator[Observer]:
    """An observer that shows a run of so many steps (0: an evaluation only) for as long as the block lasts."""
    if quiet or not console.is_terminal:
        yield Lines(console, quiet)
        return
    # The terminal itself: what others put in sys.stdout's place meanwhile must not be drawn through.
    screen = Console(file=console.file, force_terminal=True, highlight=False)
    shown = Display.of(steps, screen)
    with Live(get_renderable=shown.render, console=screen, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
        yield shown


def role_rewards(numbers: Mapping[str, float]) -> dict[str, float]:
    """Mean reward by role, out of a step's flat numbers (where parts of a reward have one more `/`)."""
    return {
        name.removeprefix("reward/"): value
        for name, value in numbers.items()
        if name.startswith("reward/") and name.count("/") == 1
    }


def told(number: float, form: str = ".3f") -> str:
    """A number; `none` where it is not one: nothing had a score."""
    return "none" if math.isnan(number) else format(number, form)


def step_line(report: StepReport) -> str:
    """One step in one line."""
    numbers = report.numbers
    rewards = " ".join(f"{role} {value:.3f}" for role, value in role_rewards(numbers).items())
    lost = sum(count for name, count in numbers.items() if name.startswith("failures/"))
    parts = [
        f"step {report.step}/{report.steps}",
        f"score {told(numbers.get('score', math.nan))}",
        f"reward {rewards}",
        f"{numbers.get('tokens_per_s', 0.0):,.0f} tokens/s",
        f"{numbers.get('time/step_s', 0.0):.1f} s",
    ]
    idle = [name.split("/")[1] for name, value in numbers.items() if name.endswith("/skipped") and value]
    parts += [f"{lost:.0f} failed"] if lost else []
    parts += [f"no update of {', '.join(idle)}: nothing to tell its visits apart"] if idle else []
    return "  ".join(parts)


def evaluation_line(report: EvaluationReport) -> str:
    """One evaluation in one line."""
    scores = "; ".join(f"{sampling} {estimate}" for sampling, estimate in report.scores.items())
    return f"{report.split} after step {report.step}: {scores}"


@dataclass(frozen=True, slots=True)
class Lines:
    """Tells of progress in plain lines; `quiet` tells nothing."""

    console: Console = OUT
    quiet: bool = False

    def phase(self, name: str, total: int) -> None:
        """Not told."""

    def trajectory(self, trajectory: Trajectory) -> None:
        """Not told."""

    def step(self, report: StepReport) -> None:
        """One line."""
        if not self.quiet:
            say(step_line(report), console=self.console)

    def evaluation(self, report: EvaluationReport) -> None:
        """One line."""
        if not self.quiet:
            say(evaluation_line(report), console=self.console)

    def saved(self, step: int, path: str) -> None:
        """An event of the log."""
        log.info("checkpoint.saved", step=step, path=path)


@dataclass(slots=True)
class Display:
    """What the live display shows. Events only note numbers; `render` is asked a few times a second."""

    lines: Lines
    bars: Progress
    steps: TaskID | None
    current: TaskID
    counted_from: int | None = None
    """Steps done when the first one was heard of: a resumed run's time left is told from its own pace."""
    last: StepReport | None = None
    dev: str = ""
    details: Text = field(default_factory=Text)

    @staticmethod
    def of(steps: int, console: Console) -> Display:
        """A display before anything has happened."""
        bars = Progress(
            TextColumn("{task.description}", justify="right"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            console=console,
            speed_estimate_period=600,
        )
        outer = bars.add_task("steps", total=steps) if steps else None
        return Display(Lines(console), bars, outer, bars.add_task("starting", total=None))

    def render(self) -> RenderableType:
        """The bars, and the last step's numbers below."""
        return Group(self.bars, self.details)

    def phase(self, name: str, total: int) -> None:
        """A new inner bar."""
        self.bars.reset(self.current, total=total, description=name)

    def trajectory(self, trajectory: Trajectory) -> None:
        """One more in the inner bar."""
        self.bars.advance(self.current)

    def step(self, report: StepReport) -> None:
        """The outer bar, and the numbers below."""
        if self.steps is not None:
            if self.counted_from is None:
                self.counted_from = report.step - 1
                self.bars.reset(self.steps, completed=self.counted_from)
            self.bars.update(self.steps, completed=report.step)
        self.last = report
        self._note()

    def evaluation(self, report: EvaluationReport) -> None:
        """A lasting line above the display."""
        self.lines.evaluation(report)
        if report.split == "dev":
            scores = ", ".join(f"{sampling} {told(found.mean)}" for sampling, found in report.scores.items())
            self.dev = f"dev after step {report.step}: {scores}"
        self._note()

    def saved(self, step: int, path: str) -> None:
        """An event of the log."""
        self.lines.saved(step, path)

    def _note(self) -> None:
        if self.last is None:
            return
        text = Text()
        for role, reward in role_rewards(self.last.numbers).items():
            text.append(f"{role} ", "dim").append(f"{reward:.3f}  ", "bold")
        text.append("score ", "dim").append(f"{told(self.last.numbers.get('score', math.nan))}  ", "bold")
        text.append(f"{self.last.numbers.get('tokens_per_s', 0.0):,.0f} tokens/s  ", "dim").append(self.dev, "dim")
        self.details = text
