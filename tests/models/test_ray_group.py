"""The same model groups in Ray workers: equal to local ones; a dead worker is an infrastructure failure."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, cast

import pytest
from safetensors.numpy import load_file

from unitymas.api.errors import BadInput, Infrastructure
from unitymas.api.ports import ModelGroup, Trains
from unitymas.api.records import CallId, Message, Reply, Request, Row, Sampling, Segment
from unitymas.api.resources import ModelMapping, MultiAgentWorkflow, Project, RewardSpec, TrainingRun
from unitymas.models import Backend, build_groups
from unitymas.models.group import Group

pytestmark = pytest.mark.integration
STEPS = 3


def project(**model: Any) -> Project:
    """One role, one model."""
    metadata = {"name": "tiny"}
    workflow = {
        "input": {"visible": ["question"]},
        "roles": [{"name": "answerer", "prompt": "{{ task.question }}", "output": {"format": "raw"}}],
        "nodes": [{"name": "answer", "role": "answerer"}],
        "result": "nodes.answer.output",
    }
    reward = {"rewards": [{"name": "one", "roles": ["answerer"], "value": "1.0"}]}
    learner = {"name": "learner", "optimizer": {"learningRate": 0.01}, **(model or {"source": "tiny"})}
    mapping = {"models": [learner], "roles": {"answerer": "learner"}}
    return Project(
        run=TrainingRun.model_validate({"metadata": metadata}),
        workflow=MultiAgentWorkflow.model_validate({"metadata": metadata, "spec": workflow}),
        mapping=ModelMapping.model_validate({"metadata": metadata, "spec": mapping}),
        reward=RewardSpec.model_validate({"metadata": metadata, "spec": reward}),
    )


def requests(step: int, *, tokens: int = 6) -> list[Request]:
    return [
        Request(
            id=CallId(step, "t", rollout, "answer", 0),
            order=((False, 0),),
            messages=(Message("user", (Segment("red green"),)),),
            sampling=Sampling(max_tokens=tokens),
            seed=100 * step + rollout,
            role="answerer",
        )
        for rollout in range(8)
    ]


async def three_steps(backend: Backend, tiny: Path, folder: Path) -> list[list[Reply]]:
    """Replies of each step; the weights at the end are in the folder."""
    groups = await build_groups(project(), lambda _: tiny, backend=backend)
    group: Any = groups["learner"]
    assert isinstance(group, Trains) and isinstance(group, ModelGroup)
    told: list[list[Reply]] = []
    try:
        for step in range(STEPS):
            asked = requests(step)
            replies = await group.generate(asked)
            rows = [
                Row(f"{step}/{number}", (str(request.id),), "answerer", str(number), float(len(reply.text)), "g")
                for number, (request, reply) in enumerate(zip(asked, replies, strict=True))
            ]
            await group.train(rows, step=step)
            await group.publish(step + 1)
            told.append(replies)
        await group.export(folder)
    finally:
        await group.close()
    return told


def test_local_and_ray_say_and_learn_the_same(tiny_model: Path, tmp_path: Path) -> None:
    folders = tmp_path / "local", tmp_path / "ray"
    for folder in folders:
        folder.mkdir()
    assert asyncio.run(three_steps("local", tiny_model, folders[0])) == asyncio.run(
        three_steps("ray", tiny_model, folders[1])
    )
    first, second = (load_file(folder / "model.safetensors") for folder in folders)
    assert max(float(abs(first[name] - second[name]).max()) for name in first) <= 1e-5


def test_a_worker_that_dies_in_a_call_is_an_infrastructure_failure(tiny_model: Path) -> None:
    async def main() -> None:
        groups = await build_groups(project(), lambda _: tiny_model, backend="ray")
        group = cast(Group, groups["learner"])
        link: Any = group._link  # pyright: ignore[reportPrivateUsage]
        try:
            call = asyncio.create_task(group.generate(requests(0, tokens=200)))
            await asyncio.sleep(0.01)
            os.kill(link.pid, signal.SIGKILL)
            with pytest.raises(Infrastructure, match="model learner: its Ray worker broke"):
                await call
            with pytest.raises(Infrastructure, match="model learner"):
                await group.stat()
        finally:
            await group.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"adapterOf": "base", "lora": {"rank": 4, "alpha": 8}}, "adapters come later"),
        ({"source": {"hub": "unitymas-tests/no-such-model"}}, "a repository that this machine can reach"),
    ],
)
def test_what_cannot_run_here_is_refused_with_the_field(
    model: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadInput, match=expected) as caught:
        asyncio.run(build_groups(project(**model), Path, backend="local"))
    assert caught.value.findings[0].path.startswith("spec.models[learner].")
