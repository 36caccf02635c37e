"""How long `unitymas validate` takes: right manifests, and the wrong ones whose checks take longest. Prints a table."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from ruamel.yaml import YAML

from unitymas.api.errors import BadInput
from unitymas.api.load import read
from unitymas.check.run import check

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "cases"
RUNS = 5
SLOWEST = 3
LIMIT_S = 2.0
"""What a user waits for at most."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One command, run several times."""

    name: str
    wall_s: float
    cpu_s: float
    exit_code: int


def measure(name: str, place: Path) -> Timing:
    """Median wall and CPU seconds of `unitymas validate -f`, the process's start included."""
    command = [sys.executable, "-c", "from unitymas.cli import main; main()", "validate", "-f", str(place)]
    walls: list[float] = []
    cpus: list[float] = []
    code = 0
    for _ in range(RUNS):
        before, started = children_cpu_s(), perf_counter()
        code = subprocess.run(command, capture_output=True, check=False).returncode
        walls.append(perf_counter() - started)
        cpus.append(children_cpu_s() - before)
    return Timing(name, median(walls), median(cpus), code)


def children_cpu_s() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wrong_manifests(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each wrong manifest of the tests' table that takes no more than manifests, in a folder of its own."""
    table: dict[str, list[dict[str, Any]]] = YAML(typ="safe", pure=True).load((CASES / "wrong.yaml").read_text())
    entries = [entry for section in table.values() for entry in section if "needs" not in entry]
    for number, entry in enumerate(entries):
        place = folder / str(number)
        shutil.copytree(CASES / "right", place)
        file = place / entry["file"]
        file.write_text(file.read_text().replace(entry["old"], entry["new"], 1))
        yield entry["wrong"], place


def check_s(place: Path) -> float:
    """Seconds of reading and checking, in this process."""
    started = perf_counter()
    with suppress(BadInput):
        check(read([place]))
    return perf_counter() - started


def main() -> None:
    """Measure and print."""
    right = {
        "quickstart": ROOT / "examples" / "quickstart",
        "the design's four examples": CASES / "design",
        "05 M-ASK": ROOT / "tests" / "workflows" / "05-mask-iterative-search.yaml",
    }
    with tempfile.TemporaryDirectory() as folder:
        wrong = list(wrong_manifests(Path(folder)))
        slowest = sorted(wrong, key=lambda pair: check_s(pair[1]), reverse=True)[:SLOWEST]
        timings = [measure(name, place) for name, place in [*right.items(), *slowest]]
    print(
        f"`unitymas validate -f`, median of {RUNS}; at most {LIMIT_S:g} s are wanted. {len(wrong)} wrong manifests.\n"
    )
    print("| manifests | wall s | CPU s | exit code |\n| --- | --- | --- | --- |")
    for timing in timings:
        print(f"| {timing.name} | {timing.wall_s:.2f} | {timing.cpu_s:.2f} | {timing.exit_code} |")


if __name__ == "__main__":
    main()
