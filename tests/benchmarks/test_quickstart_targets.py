"""The quickstart's benchmark: which targets it reads off the runs, and where it writes its table."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _load() -> ModuleType:
    path = ROOT / "benchmarks" / "quickstart.py"
    spec = importlib.util.spec_from_file_location("benchmark_quickstart", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


benchmark = _load()


def _run(variant: int, *, seed: int = 0, sampled: float = 0.95, **changed: Any) -> Any:
    def scores(value: float) -> dict[str, Any]:
        return {name: benchmark.Score(value, value, value) for name in ("sampled", "greedy")}

    fields: dict[str, Any] = {
        "steps": 40,
        "train_cpu_s": 60.0,
        "all_cpu_s": 100.0,
        "first_step_s": 20.0,
        "parity": 1e-6,
        "without_passages": benchmark.Score(0.0, 0.0, 0.0),
    }
    return benchmark.Measured(
        variant=benchmark.VARIANTS[variant],
        seed=seed,
        first=scores(0.05),
        chosen=scores(sampled),
        **{**fields, **changed},
    )


def _missed(runs: list[Any]) -> list[int]:
    return [target.row for target in benchmark.targets(runs) if not target.met]


def test_good_runs_meet_every_target():
    runs = [_run(0), _run(0, seed=1), _run(1, sampled=0.4), _run(2, sampled=0.2), _run(3, sampled=0.9)]
    assert {target.row for target in benchmark.targets(runs)} == {2, 3, 5, 7} and _missed(runs) == []


@pytest.mark.parametrize(
    ("run", "row"),
    [
        (_run(0, train_cpu_s=91.0), 2),
        (_run(0, first_step_s=31.0), 2),
        (_run(0, parity=2e-4), 5),
        (_run(0, without_passages=benchmark.Score(0.06, 0.0, 0.1)), 2),
        (_run(0, sampled=0.86), 2),
        (_run(1, sampled=0.7), 3),
        (_run(3, sampled=0.69), 7),
        (_run(3, steps=81), 7),
    ],
)
def test_a_run_that_misses_a_target_is_told(run: Any, row: int):
    assert set(_missed([_run(0), run])) == {row}


def test_only_what_is_between_the_markers_is_replaced():
    text = f"before\n{benchmark.START}\nold\n{benchmark.END}\nafter"
    assert benchmark.inserted(text, "new") == f"before\n{benchmark.START}\nnew\n{benchmark.END}\nafter"


def test_missing_markers_are_an_error():
    with pytest.raises(ValueError, match="both markers"):
        benchmark.inserted("no markers", "new")


@pytest.mark.parametrize("readme", benchmark.READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_readmes_have_the_markers(readme: Path):
    benchmark.inserted(readme.read_text("utf-8"), "table")
