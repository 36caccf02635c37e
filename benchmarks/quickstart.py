"""The quickstart, measured: that it learns, that both roles matter, that PPO learns too. Writes the READMEs' table.

    python benchmarks/quickstart.py                      # everything; minutes a run
    python benchmarks/quickstart.py --only 2 --seeds 0   # one row of the targets, one seed; writes no README

Each run is the public command, in a process of its own. Runs that have ended in the folder `--to` are not repeated, so
an interrupted benchmark goes on where it was. Exits 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import nan
from pathlib import Path
from statistics import mean
from time import perf_counter, sleep
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
QUICKSTART = ROOT / "examples" / "quickstart"
READMES = (QUICKSTART / "README.md", ROOT / "README.md")
START, END = "<!-- table: benchmarks/quickstart.py -->", "<!-- end -->"
COMMAND = Path(sys.executable).with_name("unitymas")
MEASURED = "benchmark.json"


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run the quickstart, and the row of targets that it is for."""

    name: str
    title: str
    row: int
    seeds: tuple[int, ...]
    frozen: str = ""
    """The role with `train: false`."""


LEARNS = Variant("quickstart", "the quickstart", 2, (0, 1, 2))
VARIANTS = (
    LEARNS,
    Variant("searcher-frozen", "searcher frozen", 3, (0, 1), "searcher"),
    Variant("answerer-frozen", "answerer frozen", 3, (0, 1), "answerer"),
    Variant("ppo", "PPO, a critic per model", 7, (0, 1)),
)


@dataclass(frozen=True, slots=True)
class Score:
    """A mean F1 on test with its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, found: Mapping[str, float]) -> Score:
        """From an estimate as JSON."""
        return cls(found["mean"], found["low"], found["high"])

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run that has ended. Scores by sampling."""

    variant: Variant
    seed: int
    first: Mapping[str, Score]
    chosen: Mapping[str, Score]
    steps: int
    train_cpu_s: float
    """Of the steps: rollout, rewards, update, publication, records."""
    all_cpu_s: float
    """Of the command: start, evaluation and checkpoints too."""
    first_step_s: float
    """From the command to the first step's end, wall."""
    parity: float
    """Largest gap between rollout and trainer log-probability over all steps, in nats."""
    without_passages: Score | None = None
    """Chosen weights, sampled, with an index that finds nothing."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something promised, and whether it holds."""

    row: int
    what: str
    found: float
    met: bool


def targets(runs: Sequence[Measured]) -> Iterator[Target]:
    """Every promise about the runs that there are."""
    plain = [run for run in runs if run.variant is LEARNS]
    if plain:
        yield from _learning(plain)
    by_seed = {run.seed: run for run in plain}
    for run in runs:
        if run.variant.row == 3 and run.seed in by_seed:
            lower = by_seed[run.seed].chosen["sampled"].mean - run.chosen["sampled"].mean
            yield Target(3, f"{run.variant.title}, seed {run.seed}: lower by at least .30", lower, lower >= 0.30)
        if run.variant.row == 7:
            found = run.chosen["sampled"].mean
            what = f"{run.variant.title}, seed {run.seed}: at least .70 within 80 steps (took {run.steps})"
            yield Target(7, what, found, found >= 0.70 and run.steps <= 80)


def _learning(runs: Sequence[Measured]) -> Iterator[Target]:
    first = max(run.first["sampled"].mean for run in runs)
    yield Target(2, "first weights, sampled: at most .15", first, first <= 0.15)
    for sampling, average, least in (("sampled", 0.90, 0.87), ("greedy", 0.95, 0.92)):
        scores = [run.chosen[sampling].mean for run in runs]
        yield Target(2, f"chosen, {sampling}, mean: at least {average:.2f}", mean(scores), mean(scores) >= average)
        yield Target(2, f"chosen, {sampling}, worst: at least {least:.2f}", min(scores), min(scores) >= least)
    blind = max((run.without_passages.mean for run in runs if run.without_passages), default=nan)
    yield Target(2, "without passages: at most .05", blind, blind <= 0.05)
    parity = max(run.parity for run in runs)
    yield Target(5, "rollout against trainer, at every step: at most 1e-4 nats", parity, parity <= 1e-4)
    cpu_s, first_s = max(run.train_cpu_s for run in runs), max(run.first_step_s for run in runs)
    yield Target(2, "CPU seconds of training: at most 90", cpu_s, cpu_s <= 90)
    yield Target(2, "seconds to the first step: at most 30", first_s, first_s <= 30)


def table(runs: Sequence[Measured]) -> str:
    """The runs in Markdown, with the machine they ran on."""
    lines = [
        "| F1 on test (95 % interval) | seed | first weights, sampled | greedy | chosen weights, sampled | greedy "
        "| without passages | steps | CPU s of training | CPU s in all | s to first step |",
        f"|{' --- |' * 11}",
    ]
    for run in runs:
        scores = [run.first["sampled"], run.first["greedy"], run.chosen["sampled"], run.chosen["greedy"]]
        cells = [run.variant.title, run.seed, *scores, run.without_passages or ""]
        cells += [run.steps, *(f"{value:.0f}" for value in (run.train_cpu_s, run.all_cpu_s, run.first_step_s))]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join([*lines, "", _machine()])


def short_table(runs: Sequence[Measured]) -> str:
    """Means over the seeds of each variant in Markdown, for a first screen."""
    lines = [
        "| F1 on test countries | seeds | first weights | trained, sampled | trained, greedy |",
        f"|{' --- |' * 5}",
    ]
    for variant in VARIANTS:
        found = [run for run in runs if run.variant is variant]
        scores = [[run.first["sampled"], run.chosen["sampled"], run.chosen["greedy"]] for run in found]
        if scores:
            means = [f"{mean(score.mean for score in column):.3f}" for column in zip(*scores, strict=True)]
            lines.append(f"| {variant.title} | {len(found)} | {' | '.join(means)} |")
    return "\n".join([*lines, "", _machine()])


def _machine() -> str:
    return (
        f"Measured on {os.cpu_count()} CPU cores ({platform.machine()}), one thread a process, "
        f"Python {platform.python_version()}, torch {version('torch')}, verl {version('verl')}."
    )


def inserted(text: str, new: str) -> str:
    """The text with what stands between the markers replaced. Raises ValueError where they are missing."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"found no {START} ... {END}; expected both markers")
    return f"{before}{START}\n{new}\n{END}{after}"


def measure(variant: Variant, seed: int, to: Path) -> Measured:
    """Run a variant, or read what it came to before."""
    folder = to / f"{variant.name}-{seed}"
    if not (folder / MEASURED).exists():
        shutil.rmtree(folder, ignore_errors=True)  # half a run would spoil the times
        command = ["run", *_manifests(variant, to), "--seed", str(seed), "--to", str(folder)]
        measured = _timed(command, folder, to / f"{variant.name}-{seed}.log")
        (folder / MEASURED).write_text(json.dumps(measured))
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    blind = _without_passages(folder, to) if variant is LEARNS else None
    scores = {which: {name: Score.of(found) for name, found in summary[which].items()} for which in ("first", "chosen")}
    return Measured(
        variant=variant,
        seed=seed,
        **scores,
        steps=summary["steps"],
        train_cpu_s=summary["train_cpu_s"],
        parity=_parity(folder / "metrics.jsonl"),
        without_passages=blind,
        **json.loads((folder / MEASURED).read_text()),
    )


def _manifests(variant: Variant, to: Path) -> list[str]:
    """Options that name the variant's manifests. A frozen role changes the mapping, and nothing else."""
    if variant.row == 7:
        return ["-f", str(QUICKSTART), "-f", str(QUICKSTART / "ppo"), "--name", "quickstart-ppo"]
    if not variant.frozen:
        return ["-f", str(QUICKSTART)]
    yaml = YAML()
    mapping = yaml.load(QUICKSTART / "mapping.yaml")
    roles = mapping["spec"]["roles"]
    roles[variant.frozen] = {"model": roles[variant.frozen], "train": False}
    changed = to / f"{variant.name}.yaml"
    yaml.dump(mapping, changed)
    files = [*(QUICKSTART / f"{kind}.yaml" for kind in ("workflow", "reward", "run")), changed]
    return [option for file in files for option in ("-f", str(file))]


def _without_passages(folder: Path, to: Path) -> Score:
    """The chosen weights with an index that finds nothing: the same run, but its corpus holds one empty passage."""
    blind, scores = to / f"{folder.name}-blind", to / f"{folder.name}-blind.json"
    if not scores.exists():
        shutil.rmtree(blind, ignore_errors=True)
        blind.mkdir()
        nothing = blind / "corpus.jsonl"
        nothing.write_text(json.dumps({"id": "none", "title": "", "text": ""}) + "\n")
        yaml = YAML()
        documents: list[Any] = list(yaml.load_all(folder / "resources.yaml"))
        for source in (source for each in documents for source in each["spec"].get("sources", [])):
            if source["name"] == "corpus":
                source["path"] = str(nothing.resolve())
        yaml.dump_all(documents, blind / "resources.yaml")
        shutil.copy(folder / "summary.json", blind)
        (blind / "checkpoints").symlink_to((folder / "checkpoints").resolve())
        command = [str(COMMAND), "eval", str(blind), "--chosen", "--split", "test", "--output", "json"]
        scores.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=_environment()).stdout)
    return Score.of(json.loads(scores.read_text())["scores"]["sampled"])


def _timed(arguments: Sequence[str], folder: Path, log: Path) -> dict[str, float]:
    """Run the command to its end. Raises CalledProcessError when it fails; its output is in the log."""
    before, started, first_step_s = _children_cpu_s(), perf_counter(), 0.0
    command = [str(COMMAND), *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=_environment())
        while process.poll() is None:
            if not first_step_s and _trained(folder / "metrics.jsonl"):
                first_step_s = perf_counter() - started
            sleep(0.2)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, log.read_text())
    return {"first_step_s": first_step_s, "all_cpu_s": _children_cpu_s() - before}


def _trained(metrics: Path) -> bool:
    return metrics.exists() and '"phase": "train"' in metrics.read_text("utf-8")


def _parity(metrics: Path) -> float:
    records = [json.loads(line) for line in metrics.read_text("utf-8").splitlines()]
    return max(value for record in records for name, value in record.items() if name.endswith("/parity_max"))


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def main() -> int:
    """Run, print, write the READMEs when everything was run. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", help="only these")
    parser.add_argument("--only", type=int, choices=(2, 3, 7), help="only this row of the targets")
    parser.add_argument("--to", type=Path, default=ROOT / "runs" / "benchmark-quickstart", help="where the runs go")
    asked = parser.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    rows = {2, 3, 7} if asked.only is None else {asked.only} | ({2} if asked.only == 3 else set[int]())
    runs: list[Measured] = []
    for variant in (each for each in VARIANTS if each.row in rows):
        for seed in (seed for seed in variant.seeds if asked.seeds is None or seed in asked.seeds):
            print(f"{variant.title}, seed {seed} ...", file=sys.stderr, flush=True)
            runs.append(measure(variant, seed, asked.to))
    report = table(runs)
    print(report, end="\n\n")
    found = [target for target in targets(runs) if asked.only in (None, target.row)]
    for target in found:
        print(f"{'met   ' if target.met else 'MISSED'} row {target.row}: {target.what}: {target.found:.3f}")
    (asked.to / "targets.json").write_text(json.dumps([asdict(target) for target in found], indent=1))
    if asked.only is None and asked.seeds is None:
        for readme, new in zip(READMES, (report, short_table(runs)), strict=True):
            readme.write_text(inserted(readme.read_text("utf-8"), new), "utf-8")
    return 0 if all(target.met for target in found) else 1


if __name__ == "__main__":
    sys.exit(main())
