"""Trajectories of a step: run, retried by failure class, rewarded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from unitymas.api.errors import Deadline, Failure, Infrastructure
from unitymas.api.records import TaskRow, Trajectory
from unitymas.api.run import Limits
from unitymas.workflow import Dispatch, Workflow, play

log = structlog.get_logger()
Score = Callable[[Trajectory], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One trajectory to be run."""

    task: TaskRow
    rollout: int
    step: int
    phase: str = "train"


def wanted_of(tasks: Sequence[TaskRow], *, each: int, step: int, phase: str = "train") -> list[Wanted]:
    """`each` trajectories of each task. A task that comes twice, as where an epoch ends, gets further rollouts."""
    rollouts: Counter[str] = Counter()
    wanted: list[Wanted] = []
    for task in tasks:
        for _ in range(each):
            wanted.append(Wanted(task, rollouts[task.id], step, phase))
            rollouts[task.id] += 1
    return wanted


@dataclass(frozen=True, slots=True)
class Rollout:
    """How trajectories are run: what all of a run share."""

    workflow: Workflow
    dispatch: Dispatch
    score: Score
    limits: Limits
    run_seed: int
    most: int
    """Most trajectories in flight."""

    async def all(self, wanted: Sequence[Wanted], done: Callable[[Trajectory], None]) -> list[Trajectory]:
        """Run them; `done` hears of each as it ends. Returns them in the order wanted.

        A trajectory lost to infrastructure comes back with `failure` set. Raises Author, and Deadline where the run
        says that it fails.
        """
        room = asyncio.Semaphore(self.most)

        async def one(each: Wanted) -> Trajectory:
            async with room:
                trajectory = await self.one(each)
            done(trajectory)
            return trajectory

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(each)) for each in wanted]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def one(self, wanted: Wanted) -> Trajectory:
        """Run one trajectory, again after an infrastructure failure, and reward it."""
        trajectory = await self._played(wanted)
        for _ in range(self.limits.retries):
            if trajectory.failure is not Failure.INFRASTRUCTURE:
                break
            trajectory = await self._played(wanted)
        if trajectory.failure is None or counted(trajectory, self.limits):
            await self._reward(trajectory)
        return trajectory

    async def _played(self, wanted: Wanted) -> Trajectory:
        trajectory = Trajectory(wanted.task, wanted.step, wanted.rollout, wanted.phase)
        limit_s = self.limits.trajectory_s
        try:
            async with asyncio.timeout(limit_s):
                await play(self.workflow, trajectory, self.dispatch, run_seed=self.run_seed)
        except Infrastructure as failed:
            trajectory.failure, trajectory.error = Failure.INFRASTRUCTURE, str(failed)
        except Deadline as late:  # the user's code that reads a reply
            self._late(trajectory, str(late))
        except TimeoutError:
            self._late(trajectory, f"not finished within limits.trajectory, {limit_s:g}s")
        return trajectory

    async def _reward(self, trajectory: Trajectory) -> None:
        """Where a metric is late there are no rewards: what counts as it stands counts 0."""
        try:
            await self.score(trajectory)
        except Infrastructure as failed:
            trajectory.failure, trajectory.error = Failure.INFRASTRUCTURE, str(failed)
        except Deadline as late:
            self._late(trajectory, str(late))

    def _late(self, trajectory: Trajectory, message: str) -> None:
        if self.limits.on_deadline == "fail":
            raise Deadline(f"trajectory {trajectory.id}", message)
        trajectory.failure, trajectory.error = Failure.DEADLINE, message


def counted(trajectory: Trajectory, limits: Limits) -> bool:
    """Whether a trajectory takes part in loss and baseline."""
    if trajectory.failure is Failure.DEADLINE:
        return limits.on_deadline == "score"
    return trajectory.failure is not Failure.INFRASTRUCTURE


def require_enough(trajectories: Sequence[Trajectory], limits: Limits, where: str) -> None:
    """Raises Infrastructure, or Deadline, when more than `limits.failedShare` of the trajectories do not count.

    Late ones that are scored as they stand do count: where they are as many, the log says so.
    """
    most = limits.failed_share * len(trajectories)
    lost = [trajectory for trajectory in trajectories if not counted(trajectory, limits)]
    if len(lost) > most:
        last = lost[-1]
        error = Deadline if last.failure is Failure.DEADLINE else Infrastructure
        raise error(where, f"{len(lost)} of {len(trajectories)} trajectories lost; the last one: {last.error}")
    late = [trajectory for trajectory in trajectories if trajectory.failure is Failure.DEADLINE]
    if len(late) > most:
        log.warning("trajectories.late", where=where, late=len(late), of=len(trajectories), error=late[-1].error)
