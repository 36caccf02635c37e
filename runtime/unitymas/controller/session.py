"""Training, evaluating and exporting a run: what the commands call."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from unitymas.api.errors import BadInput, Finding
from unitymas.api.ports import Trains
from unitymas.api.resources import Project
from unitymas.controller import folder as run_folder
from unitymas.controller.assemble import Assembly, Build, assemble
from unitymas.controller.barrier import Barrier
from unitymas.controller.evaluate import Estimate
from unitymas.controller.lock import make, training
from unitymas.controller.loop import Loop
from unitymas.controller.pools import read_pools
from unitymas.controller.report import EvaluationReport, Observer
from unitymas.controller.rounds import IdleLoop
from unitymas.controller.stop import Stop
from unitymas.controller.store import Store
from unitymas.data import Sources
from unitymas.models import Backend, build_groups

Result = TypeVar("Result")
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a finished run came to."""

    run: str
    folder: Path
    steps: int
    chosen_step: int
    """Whose weights were chosen on dev."""
    first: Mapping[str, Estimate]
    """First weights on test, by sampling."""
    chosen: Mapping[str, Estimate]
    """Chosen weights on test, by sampling."""
    seconds: float
    """Of this attempt, all in all."""
    train_cpu_s: float
    """CPU seconds of the training steps, of all attempts, in the controller's process; evaluation apart."""


def run_async(main: Callable[[Stop], Coroutine[Any, Any, Result]]) -> Result:
    """Run on the controller's event loop. The first Ctrl-C or SIGTERM asks to stop, the second ends at once."""

    async def guarded() -> Result:
        stop = Stop()
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)

        def asked() -> None:
            stop.asked.set()
            for number in signals:
                loop.remove_signal_handler(number)

        for number in signals:
            loop.add_signal_handler(number, asked)
        return await main(stop)

    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        return runner.run(guarded())


async def train(
    project: Project,
    *,
    folder: Path,
    observer: Observer,
    stop: Stop,
    backend: Backend = "local",
    ray_address: str | None = None,
    resume: bool = False,
) -> Summary:
    """Train a run from its start, or (`resume`) from its last checkpoint, to its end.

    A run that has ended is only told of again. Raises BadInput before it starts; Stopped when the user stops it.
    """
    started = perf_counter()
    if resume and (finished := _finished(folder, project)) is not None:
        return finished
    sources = Sources(project.run.spec, Path(project.folder))
    pools, barrier = read_pools(project, sources), _barrier(project, sources, folder)
    with _held(folder, project, barrier, resume=resume) as store:
        async with opened(project, sources, _builder(backend, ray_address)) as assembly:
            loop = Loop(
                spec=project.run.spec,
                digest=run_folder.digest(project),
                assembly=assembly,
                pools=pools,
                store=store,
                barrier=barrier,
                observer=observer,
                stop=stop,
                started_s=started,
            )
            reports = await loop.run()
        summary = _summary(loop, project, folder, reports)
        store.write_json(run_folder.SUMMARY, {**asdict(summary), "folder": str(folder)})
    return summary


def _train_cpu_s(store: Store) -> float:
    """Of all attempts: the steps' own records are what a resumed run keeps."""
    return sum(float(str(record.get("time/cpu_s") or 0.0)) for record in store.read_metrics())


async def evaluate(
    project: Project,
    *,
    folder: Path,
    split: str,
    step: int | None,
    observer: Observer,
    stop: Stop,
    backend: Backend = "local",
) -> EvaluationReport:
    """Evaluate a checkpoint of a run (the newest where `step` is None) on a split, by the run's kinds of sampling."""
    sources = Sources(project.run.spec, Path(project.folder))
    pools = read_pools(project, sources)
    rows = [row for pool in pools[split] for row in pool.rows]
    if not rows:
        raise BadInput([Finding("data", f"spec.data.{split}", "no rows", "a split to evaluate on")])
    barrier = _barrier(project, sources, folder)
    async with opened(project, sources, _builder(backend, None)) as assembly:
        with _checkpoint(barrier, step) as (path, found):
            for name, group in sorted(assembly.groups.items()):
                if isinstance(group, Trains):
                    await group.load(path / name, version=found)
        loop = Loop(
            spec=project.run.spec,
            digest="",
            assembly=assembly,
            pools=pools,
            store=Store(folder / "evaluations"),
            barrier=barrier,
            observer=observer,
            stop=stop,
        )
        return await loop.evaluate(split, found, rows)


async def export(project: Project, *, folder: Path, to: Path, step: int | None) -> dict[str, Path]:
    """Write each trained model of a checkpoint as a Hugging Face folder. Returns the folders by model.

    Raises BadInput before any model is loaded, where there is no such checkpoint or `to` cannot be written.
    """
    sources = Sources(project.run.spec, Path(project.folder))
    with _checkpoint(_barrier(project, sources, folder), step) as (path, found):
        make(to)
        folders: dict[str, Path] = {}
        async with opened(project, sources, _builder("local", None)) as assembly:
            for name, group in sorted(assembly.groups.items()):
                if isinstance(group, Trains):
                    folders[name] = to / name
                    make(folders[name])
                    await group.load(path / name, version=found)
                    await group.export(folders[name])
    return folders


@asynccontextmanager
async def opened(project: Project, sources: Sources, build: Build) -> AsyncGenerator[Assembly]:
    """An assembly with its rounds running; everything is closed at the end, whatever happens."""
    async with AsyncExitStack() as stack:
        assembly = await assemble(project, sources, stack, build=build)
        serving = asyncio.create_task(assembly.rounds.serve())
        try:
            yield assembly
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


def _builder(backend: Backend, ray_address: str | None) -> Build:
    return partial(build_groups, backend=backend, ray_address=ray_address)


def _summary(loop: Loop, project: Project, folder: Path, reports: Sequence[EvaluationReport]) -> Summary:
    steps = project.run.spec.schedule.steps
    return Summary(
        run=project.run.name,
        folder=folder,
        steps=steps,
        chosen_step=reports[-1].step if reports else steps,
        first=reports[0].scores if reports else {},
        chosen=reports[-1].scores if reports else {},
        seconds=perf_counter() - loop.started_s,
        train_cpu_s=_train_cpu_s(loop.store),
    )


def _new(folder: Path, project: Project, barrier: Barrier) -> Store:
    """A new run's folder. Raises BadInput when a run is there already, or checkpoints are where its own would be."""
    run_folder.require_new(folder)
    if steps := barrier.steps():
        found = f"checkpoints of a run before, of steps {', '.join(map(str, steps))}"
        right = "none: a new run starts from the models' first weights"
        hint = "resume that run, remove them, or give the run another name"
        raise BadInput([Finding("checkpoint", str(barrier.folder), found, right, hint)])
    return run_folder.create(folder, project)


def _finished(folder: Path, project: Project) -> Summary | None:
    """The summary of a run that has ended. Raises BadInput where the run was started with other resources."""
    _, before = run_folder.reopen(folder)
    if run_folder.digest(before) != run_folder.digest(project):
        found, right = "resources that have changed since the run started", "those of its resources.yaml"
        raise BadInput([Finding("resume", str(folder), found, right, "start a new run in another folder")])
    path = folder / run_folder.SUMMARY
    if not path.exists():
        return None
    written: dict[str, Any] = json.loads(path.read_text("utf-8"))
    parts = ("first", "chosen")
    scores = {part: {name: Estimate.read(found) for name, found in written[part].items()} for part in parts}
    read: dict[str, Any] = {**written, **scores, "folder": folder}
    return Summary(**read)


def _barrier(project: Project, sources: Sources, folder: Path) -> Barrier:
    spec = project.run.spec.checkpoint
    if spec.source is None:
        return Barrier(folder / CHECKPOINTS, spec.keep)
    return Barrier(sources.writable(spec.source) / project.run.name / CHECKPOINTS, spec.keep)


@contextmanager
def _held(folder: Path, project: Project, barrier: Barrier, *, resume: bool) -> Generator[Store]:
    """The run's folder, new or as it was. Nobody else trains in it, nor in that of its checkpoints, if elsewhere."""
    with ExitStack() as stack:
        for held in (folder,) if barrier.folder.parent == folder else (folder, barrier.folder):
            stack.enter_context(training(held))
        store = Store(folder) if resume else _new(folder, project, barrier)
        try:
            yield store
        except BadInput:
            if not resume:
                run_folder.discard(folder)  # nothing has been run: mended, it may start here
            raise


@contextmanager
def _checkpoint(barrier: Barrier, step: int | None) -> Generator[tuple[Path, int]]:
    """A checkpoint, which stays for as long as it is read, and its step. Raises BadInput where there is none."""
    with barrier.pinned(step) as found:
        if found is None and step is not None:
            steps = ", ".join(str(known) for known in barrier.steps()) or "none"
            raise BadInput([Finding("checkpoint", str(barrier.folder), f"no whole checkpoint of step {step}", steps)])
        if found is None:
            raise BadInput([Finding("checkpoint", str(barrier.folder), "no checkpoint", "a run that has saved one")])
        yield found[0], found[1].step
