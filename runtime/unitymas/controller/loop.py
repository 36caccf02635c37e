"""The controller's loop: steps, evaluations, checkpoints; resumed exactly, stopped cleanly."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeVar

from unitymas.api.errors import BadInput, Finding, Infrastructure
from unitymas.api.ports import Trains, Update
from unitymas.api.records import Row, TaskRow, Trajectory
from unitymas.api.run import TrainingRunSpec
from unitymas.controller.assemble import Assembly
from unitymas.controller.barrier import Barrier, Manifest
from unitymas.controller.dispatch import Desk
from unitymas.controller.evaluate import Estimate, estimate
from unitymas.controller.report import EvaluationReport, Observer, StepReport, numbers_of
from unitymas.controller.rollout import Rollout, Wanted, counted, require_enough, wanted_of
from unitymas.controller.schedule import Pool, dev_tasks, evaluates, tasks_of
from unitymas.controller.stop import Stop, Stopped
from unitymas.controller.store import Store

Result = TypeVar("Result")


@dataclass(slots=True)
class Loop:
    """One attempt of a run."""

    spec: TrainingRunSpec
    digest: str
    """Of the resolved resources."""
    assembly: Assembly
    pools: Mapping[str, Sequence[Pool]]
    """Rows by split."""
    store: Store
    barrier: Barrier
    observer: Observer
    stop: Stop
    started_s: float = field(default_factory=perf_counter)
    """When the attempt started, by `perf_counter`."""
    best: dict[str, float] = field(default_factory=dict[str, float])
    _saved: int = -1

    async def run(self) -> list[EvaluationReport]:
        """From the newest checkpoint to the end. Returns the reports on test, first and chosen weights.

        Raises Stopped when the user stops it, after saving.
        """
        step = await self._resume()
        steps = self.spec.schedule.steps
        while step < steps:
            await self._step(step)
            step += 1
            if evaluates(step, self.spec.evaluation, self.spec.schedule):
                await self._dev(step)
            if step % self.spec.checkpoint.every == 0 or step == steps or self.best.get("step") == step:
                await self._save(step)
        return await self._test(step)

    async def _resume(self) -> int:
        found = await asyncio.to_thread(self.barrier.latest)
        if found is None:
            self.store.rewind(-1)
            await self._dev(0)
            await self._save(0)
            return 0
        path, manifest = found
        if manifest.digest != self.digest:
            raise BadInput([_foreign(path)])
        await self._load(path, manifest.step)
        self.store.rewind(manifest.step, again=manifest.dev_due)
        self.best, self._saved = dict(manifest.best), manifest.step
        if manifest.dev_due:
            await self._dev(manifest.step)
        return manifest.step

    async def _load(self, path: Path, version: int) -> None:
        trained = self._trained()
        await _all({name: group.load(path / name, version=version) for name, group in trained.items()})

    def _trained(self) -> dict[str, Trains]:
        return {name: group for name, group in sorted(self.assembly.groups.items()) if isinstance(group, Trains)}

    async def _step(self, step: int) -> None:
        """One step: rollout, rewards, updates, publication. Raises Stopped, with nothing of the step done."""
        started, cpu = perf_counter(), process_time()
        tasks = tasks_of(self.spec.seed, self.pools["train"], step=step, per_step=self.spec.schedule.tasks_per_step)
        wanted = wanted_of(tasks, each=self.spec.algorithm.rollouts_per_task, step=step)
        self.observer.phase(f"step {step + 1}", len(wanted))
        try:
            trajectories = await self._roll(self.assembly.desk(), wanted, done=step)
        except Stopped:
            await self._save(step)
            raise
        rolled = perf_counter()
        updates = await self._train(trajectories, step)
        trained = perf_counter()
        await _all({name: group.publish(step + 1) for name, group in self._trained().items()})
        await asyncio.to_thread(self.store.trajectories, f"step-{step + 1:06d}", trajectories)
        numbers = numbers_of(trajectories, updates) | {
            "time/rollout_s": rolled - started,
            "time/update_s": trained - rolled,
            "time/step_s": perf_counter() - started,
            "time/cpu_s": process_time() - cpu,
            "time/attempt_s": perf_counter() - self.started_s,
        }
        numbers["tokens_per_s"] = numbers["output_tokens"] / max(numbers["time/rollout_s"], 1e-9)
        numbers |= await self._gauges()
        self.store.metrics({"step": step + 1, "phase": "train", **numbers})
        self.observer.step(StepReport(step + 1, self.spec.schedule.steps, numbers))

    async def _roll(self, desk: Desk, wanted: Sequence[Wanted], *, done: int) -> list[Trajectory]:
        """The trajectories wanted. Raises Stopped, and what `require_enough` raises."""
        rollout = Rollout(
            workflow=self.assembly.workflow,
            dispatch=desk,
            score=self.assembly.score,
            limits=self.spec.limits,
            run_seed=self.spec.seed,
            most=self.spec.schedule.max_trajectories,
        )
        trajectories = await self.stop.unless(rollout.all(wanted, self.observer.trajectory))
        if trajectories is None:
            raise Stopped(done)
        require_enough(trajectories, self.spec.limits, f"{wanted[0].phase} after step {done}")
        return trajectories

    async def _train(self, trajectories: Sequence[Trajectory], step: int) -> dict[str, Update]:
        rows: Mapping[str, Sequence[Row]] = self.assembly.rows(
            [trajectory for trajectory in trajectories if counted(trajectory, self.spec.limits)]
        )
        trained = self._trained()
        return await _all({name: trained[name].train(rows[name], step=step) for name in rows if name in trained})

    async def _gauges(self) -> dict[str, float]:
        stats = await _all({name: group.stat() for name, group in sorted(self.assembly.groups.items())})
        return {f"group/{name}/{gauge}": value for name, stat in stats.items() for gauge, value in stat.items()}

    async def _dev(self, step: int) -> None:
        if not self.pools["dev"]:
            return
        rows = [row for pool in self.pools["dev"] for row in pool.rows]
        try:
            report = await self.evaluate("dev", step, dev_tasks(self.spec.seed, rows, self.spec.evaluation.tasks))
        except Stopped:
            await self._save(step, dev_due=True)
            raise
        score = report.scores[self.spec.evaluation.sampling[0]].mean
        if not math.isnan(score) and (not self.best or score > self.best["score"]):
            self.best = {"step": float(step), "score": score}

    async def _test(self, step: int) -> list[EvaluationReport]:
        rows = [row for pool in self.pools["test"] for row in pool.rows]
        chosen = int(self.best["step"]) if self.best and self.spec.evaluation.select == "best" else step
        reports: list[EvaluationReport] = []
        for version in dict.fromkeys((0, chosen)):
            path = self.barrier.at(version)
            if path is None:
                raise Infrastructure(f"checkpoint {version}", f"not in {self.barrier.folder}")
            await self._load(path, version)
            if rows:
                try:
                    reports.append(await self.evaluate("test", version, rows))
                except Stopped:
                    raise Stopped(step) from None  # all steps are saved: a resumed run comes back here
        return reports

    async def evaluate(self, split: str, step: int, tasks: Sequence[TaskRow]) -> EvaluationReport:
        """Run the tasks with the weights being served, by each kind of sampling, and record it. Raises Stopped."""
        scores: dict[str, Estimate] = {}
        for sampling in self.spec.evaluation.sampling:
            repeats = 1 if sampling == "greedy" else self.spec.evaluation.repeats
            phase = f"{split}-{sampling}"
            wanted = wanted_of(tasks, each=repeats, step=step, phase=phase)
            self.observer.phase(f"{split} {sampling}", len(wanted))
            desk = self.assembly.desk(greedy=sampling == "greedy")
            trajectories = await self._roll(desk, wanted, done=step)
            await asyncio.to_thread(self.store.trajectories, f"{phase}-{step:06d}", trajectories)
            scores[sampling] = estimate(trajectories, seed=self.spec.seed)
            found = scores[sampling]
            self.store.metrics(
                {
                    "step": step,
                    "phase": phase,
                    "score": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "tasks": found.tasks,
                    "lost": found.lost,
                }
            )
        report = EvaluationReport(split, step, scores)
        self.observer.evaluation(report)
        return report

    async def _save(self, step: int, *, dev_due: bool = False) -> None:
        if self._saved == step:
            return
        manifest = Manifest(step, self.digest, self.spec.seed, self.best, dev_due)
        path = await self.barrier.save(manifest, self.assembly.groups)
        self._saved = step
        self.observer.saved(step, str(path))


def _foreign(path: Path) -> Finding:
    return Finding(
        "checkpoint",
        str(path),
        found="a checkpoint of a run with other resources",
        expected="none, or those of this run",
        hint="give the run another name, or another spec.checkpoint.source",
    )


async def _all(work: Mapping[str, Awaitable[Result]]) -> dict[str, Result]:
    """All of it, to the end even when one fails: then the first error is raised."""
    results = await asyncio.gather(*work.values(), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return {name: result for name, result in zip(work, results, strict=True) if not isinstance(result, BaseException)}
