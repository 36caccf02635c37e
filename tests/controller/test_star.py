"""The star: what crosses between controller and model groups is text, names and numbers, and little of it."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from support.models import MODEL, larger_model
from support.runs import quickstart_project
from support.scripted import run_loop
from unitymas.api.ports import ModelGroup
from unitymas.api.records import Request
from unitymas.api.resources import Project
from unitymas.controller.store import Store
from unitymas.models import build_groups

pytestmark = pytest.mark.integration
CALL_BYTES = 1000
"""Most bytes of one call of a model group, whatever it does, beside what it says of single records."""
RECORD_BYTES = 450
"""Most bytes of one request, reply or row beside the text that it carries."""


@dataclass(frozen=True)
class Crossing:
    """One call of a model group."""

    model: str
    method: str
    arguments: tuple[object, ...]
    answer: object

    @property
    def bytes(self) -> int:
        return len(pickle.dumps(self.arguments)) + len(pickle.dumps(self.answer))

    @property
    def records(self) -> int:
        """How many requests or rows it is about."""
        first = self.arguments[0] if self.arguments else ()
        return len(cast("list[object]", first)) if isinstance(first, list) else 0

    @property
    def text_bytes(self) -> int:
        """Of the prompts that it carries."""
        requests = self.arguments[0] if self.method == "generate" else []
        return sum(
            len(message.text.encode()) for request in cast("list[Request]", requests) for message in request.messages
        )


class Watched:
    """A link that remembers what crosses it."""

    def __init__(self, name: str, link: Any, crossings: list[Crossing]) -> None:
        self.name, self.link, self.crossings = name, link, crossings

    async def call(self, method: str, *arguments: object) -> Any:
        answer = await self.link.call(method, *arguments)
        if method != "stat":
            self.crossings.append(Crossing(self.name, method, arguments, answer))
        return answer

    async def close(self) -> None:
        await self.link.close()


@dataclass(frozen=True)
class Watch:
    """What crossed in a run, and its metrics."""

    crossings: Sequence[Crossing]
    metrics: Sequence[Mapping[str, Any]]


def watch(folder: Path, model: Path) -> Watch:
    crossings: list[Crossing] = []

    async def build(project: Project, locate: Any) -> Mapping[str, ModelGroup]:
        groups = await build_groups(project, locate, backend="local")
        for name, group in groups.items():
            watched = cast(Any, group)
            watched._link = Watched(name, watched._link, crossings)
        return groups

    project = quickstart_project(folder / "manifests", model=model)
    run_loop(project, folder / "run", build)
    return Watch(crossings, Store(folder / "run").read_metrics())


@pytest.fixture(scope="module")
def watches(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Watch]:
    """Three steps with the quickstart's model, and with one of 9 times its weights and 4 times its vocabulary."""
    folder = tmp_path_factory.mktemp("star")
    large = larger_model(folder / "large")
    assert (large / "model.safetensors").stat().st_size > 9 * (MODEL / "model.safetensors").stat().st_size
    return {"small": watch(folder / "a", MODEL), "large": watch(folder / "b", large)}


@pytest.mark.parametrize("size", ["small", "large"])
def test_bytes_per_call_are_bounded_by_its_records_and_their_text(watches: Mapping[str, Watch], size: str) -> None:
    methods = {crossing.method for crossing in watches[size].crossings}
    assert methods == {"generate", "train", "publish", "save", "load"}
    for crossing in watches[size].crossings:
        bound = CALL_BYTES + RECORD_BYTES * crossing.records + crossing.text_bytes
        assert crossing.bytes <= bound, f"{crossing.method}: {crossing.bytes} bytes, {crossing.records} records"


def test_publishing_costs_the_same_bytes_whatever_the_model(watches: Mapping[str, Watch]) -> None:
    small, large = (
        [crossing.bytes for crossing in watches[size].crossings if crossing.method == "publish"]
        for size in ("small", "large")
    )
    assert small == large
    assert len(small) == 2 * 3


@pytest.mark.parametrize("size", ["small", "large"])
def test_only_text_names_and_single_numbers_cross(watches: Mapping[str, Watch], size: str) -> None:
    for crossing in watches[size].crossings:
        assert_plain(crossing.arguments, crossing.method)
        assert_plain(crossing.answer, crossing.method)


def assert_plain(value: object, where: str) -> None:
    """Records of text and numbers; a sequence of numbers, which token ids would be, is at most a place in an order."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            assert_plain(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, Mapping):
        for key, held in cast("Mapping[object, object]", value).items():
            assert isinstance(key, str), where
            assert_plain(held, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        held = cast("Sequence[object]", value)
        assert sum(isinstance(item, int | float) for item in held) <= 2, f"{where}: {held}"
        for item in held:
            assert_plain(item, f"{where}[]")
    else:
        assert value is None or isinstance(value, str | int | float | Path), f"{where}: {type(value)}"


def test_what_crossed_is_told_in_the_metrics(watches: Mapping[str, Watch]) -> None:
    watch = watches["small"]
    last = [record for record in watch.metrics if record["phase"] == "train"][-1]
    for model in ("searcher", "answerer"):
        counted = {name: last[f"group/{model}/{name}"] for name in ("calls", "bytes_in", "bytes_out")}
        until = [crossing for crossing in watch.crossings if crossing.model == model][: int(counted["calls"])]
        assert until[-1].method == "publish"
        assert counted["bytes_in"] == sum(len(pickle.dumps(crossing.arguments)) for crossing in until)
        assert counted["bytes_out"] == sum(len(pickle.dumps(crossing.answer)) for crossing in until)
