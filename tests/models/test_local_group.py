"""A tiny real model in this process: generate, train, publish, save, load, export."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unitymas.api.algorithm import Algorithm
from unitymas.api.errors import Author, Infrastructure, NotFinite, ParityBroken
from unitymas.api.mapping import Model
from unitymas.api.ports import ModelGroup, Trains, Update
from unitymas.api.records import CallId, Message, Reply, Request, Row, Sampling, Segment
from unitymas.api.run import Placement
from unitymas.models.core import GroupCore, GroupSpec
from unitymas.models.group import Group, TrainedGroup
from unitymas.models.local import ComputeThread, LocalLink

pytestmark = pytest.mark.integration
TASKS, ROLES, ROLLOUTS = ("red green", "one two three"), ("asker", "teller"), 4


def spec(path: Path, *, model: Mapping[str, Any] | None = None, parity: float = 1e-4, **algorithm: Any) -> GroupSpec:
    return GroupSpec(
        model=Model.model_validate(
            {"name": "m", "source": "tiny", "optimizer": {"learningRate": 0.01}, **(model or {})}
        ),
        path=path,
        placement=Placement.model_validate({"microBatch": 8}),
        engine="hf",
        algorithm=Algorithm.model_validate(algorithm),
        roles=ROLES,
        parity=parity,
        seed=0,
    )


def requests(step: int, *, temperature: float = 1.0) -> list[Request]:
    return [
        Request(
            id=CallId(step, str(task), rollout, role, 0),
            order=((False, 0),),
            messages=(Message("user", (Segment(f"{role} "), Segment(text, variable=True))),),
            sampling=Sampling(max_tokens=6, temperature=temperature),
            seed=1000 * step + 100 * task + 10 * rollout + number,
            role=role,
        )
        for task, text in enumerate(TASKS)
        for rollout in range(ROLLOUTS)
        for number, role in enumerate(ROLES)
    ]


def rows(asked: Sequence[Request], replies: Sequence[Reply]) -> list[Row]:
    """Reward: how often the reply says apple."""
    return [
        Row(
            visit=f"{request.id.task}/{request.id.rollout}/{request.role}",
            calls=(str(request.id),),
            role=request.role,
            trajectory=f"{request.id.task}/{request.id.rollout}",
            reward=float(reply.text.split().count("apple")) + (0.5 if "pear" in reply.text else 0.0),
            group=f"{request.id.task}|{request.role}",
        )
        for request, reply in zip(asked, replies, strict=True)
    ]


def one_step(core: GroupCore, step: int) -> Update:
    asked = requests(step)
    update = core.train(rows(asked, core.generate(asked)), step)
    core.publish(step + 1)
    return update


def weights(core: GroupCore) -> dict[str, np.ndarray[Any, Any]]:
    found = core._training().parameters()  # pyright: ignore[reportPrivateUsage]
    return {name: weight.detach().numpy().copy() for name, weight in found}


def differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    return max(float(np.abs(first[name] - second[name]).max()) for name in first)


def test_rollout_and_trainer_agree_after_every_publish(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model))
    updates = [one_step(core, step) for step in range(3)]
    assert all(update.metrics["parity_max"] < 1e-4 for update in updates)
    assert all(update.metrics["grad_norm"] > 0 for update in updates)


def test_a_call_that_did_better_than_its_group_becomes_likelier(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model, estimator="dr-grpo"))
    asked = requests(0)
    replies = core.generate(asked)
    rewarded = rows(asked, replies)
    calls = [row.calls[0] for row in rewarded]
    before = core._buffer.take(calls)  # pyright: ignore[reportPrivateUsage]
    core.train(rewarded, 0)
    from unitymas.models.rows import TokenRow

    found = core._training().policy.infer(  # pyright: ignore[reportPrivateUsage]
        [
            TokenRow(sample.prompt, sample.output, sample.logprobs, np.zeros_like(sample.logprobs), 0.0, row.role)
            for sample, row in zip(before, rewarded, strict=True)
        ]
    )
    gained = np.asarray([float((new - old.logprobs).sum()) for new, old in zip(found, before, strict=True)])
    rewards = np.asarray([row.reward for row in rewarded])
    groups = np.asarray([row.group for row in rewarded])
    off = rewards - np.asarray([rewards[groups == group].mean() for group in groups])
    assert float(gained @ off) > 0


def test_a_resumed_step_equals_the_first_bit_for_bit(tiny_model: Path, tmp_path: Path) -> None:
    algorithm: dict[str, Any] = {
        "estimator": "gae",
        "miniBatches": 2,
        "epochs": 2,
        "loss": {"kl": 0.1, "entropy": 0.01},
    }
    core = GroupCore(spec(tiny_model, **algorithm))
    one_step(core, 0)
    core.save(tmp_path)
    first = one_step(core, 1)
    expected = weights(core)
    again = GroupCore(spec(tiny_model, **algorithm))
    again.load(tmp_path, 1)
    second = one_step(again, 1)
    assert differ(expected, weights(again)) == 0.0
    assert dict(first.metrics) == dict(second.metrics)


def test_served_weights_change_only_at_publish(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model))
    asked = requests(0)
    first = core.generate(asked)
    core.train(rows(asked, first), 0)
    unpublished = core.generate([*requests(1)])
    core.publish(7)
    published = core.generate(requests(2))
    assert {reply.version for reply in unpublished} == {0}
    assert {reply.version for reply in published} == {7}
    assert core.stat()["buffered_calls"] == len(published)


def test_broken_parity_stops_before_any_weight_changes(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model, parity=1e-12))
    before = weights(core)
    asked = requests(0)
    rewarded = rows(asked, core.generate(asked))
    with pytest.raises(ParityBroken, match=r"model m: .* nats .* limits\.parity allows 1e-12"):
        core.train(rewarded, 0)
    assert differ(before, weights(core)) == 0.0


@pytest.mark.parametrize("reward", [1e30, 1e38])
def test_rewards_of_a_huge_scale_stop_before_any_weight_changes(tiny_model: Path, reward: float) -> None:
    core = GroupCore(spec(tiny_model, estimator="dr-grpo"))
    before = weights(core)
    asked = requests(0)
    rewarded = [replace(row, reward=row.reward * reward) for row in rows(asked, core.generate(asked))]
    with pytest.raises(NotFinite, match=r"model m, step 0: .* finite number"):
        core.train(rewarded, 0)
    assert differ(before, weights(core)) == 0.0


def test_a_critic_that_cannot_learn_stops_the_run(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model, estimator="gae"))
    asked = requests(0)
    rewarded = [replace(row, reward=row.reward * 1e30) for row in rows(asked, core.generate(asked))]
    with pytest.raises(NotFinite, match=r"model m, step 0: the critic's loss is inf"):
        core.train(rewarded, 0)


def test_rows_without_advantage_step_no_optimiser(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model))
    before = weights(core)
    asked = requests(0)
    equal = [
        Row(row.visit, row.calls, row.role, row.trajectory, 1.0, row.group) for row in rows(asked, core.generate(asked))
    ]
    update = core.train(equal, 0)
    assert update.metrics["skipped"] == 1.0
    assert update.metrics["equal_groups"] == 4.0
    assert differ(before, weights(core)) == 0.0


def test_temperature_is_the_same_on_both_sides(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model))
    asked = [*requests(0, temperature=0.5), *requests(1, temperature=1.5), *requests(2, temperature=0.0)]
    update = core.train(rows(asked, core.generate(asked)), 0)
    assert update.metrics["parity_max"] < 1e-4


def test_an_exported_folder_holds_the_trained_weights(tiny_model: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    core = GroupCore(spec(tiny_model))
    one_step(core, 0)
    core.export(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}
    model: Any = AutoModelForCausalLM.from_pretrained(str(tmp_path))
    tokenizer: Any = AutoTokenizer.from_pretrained(str(tmp_path))
    found = {name: weight.numpy() for name, weight in model.state_dict().items()}
    assert differ(weights(core), found) == 0.0
    assert tokenizer.chat_template


def test_a_critic_warms_up_before_the_policy_moves(tiny_model: Path) -> None:
    core = GroupCore(spec(tiny_model, model={"critic": {"warmupSteps": 1}}, estimator="gae"))
    before = weights(core)
    first, between = one_step(core, 0), weights(core)
    second = one_step(core, 1)
    assert (first.metrics["skipped"], second.metrics["skipped"]) == (1.0, 0.0)
    assert first.metrics["value_loss"] > 0
    assert differ(before, between) == 0.0 < differ(between, weights(core))


def test_the_loop_stays_alive_and_groups_share_one_thread(tiny_model: Path) -> None:
    async def main() -> tuple[list[Reply], int, Mapping[str, float]]:
        thread = ComputeThread()
        group = TrainedGroup("m", await LocalLink.open(spec(tiny_model), thread))
        served = Group("m", await LocalLink.open(spec(tiny_model), thread))
        assert isinstance(group, Trains) and isinstance(served, ModelGroup) and not isinstance(served, Trains)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        replies = await group.generate(requests(0))
        ticking.cancel()
        stat = await group.stat()
        await served.close()
        await group.close()
        return replies, ticks, stat

    replies, ticks, stat = asyncio.run(main())
    assert len(replies) == len(requests(0))
    assert ticks > 1
    assert stat["calls"] == 1
    assert 0 < stat["bytes_out"] < 200 * len(replies)


def test_a_model_that_no_role_trains_is_served_without_a_trainer(tiny_model: Path) -> None:
    core = GroupCore(replace(spec(tiny_model), roles=()))
    assert len(core.generate(requests(0))) == len(requests(0))
    assert core.stat()["buffered_calls"] == 0
    with pytest.raises(ValueError, match="served only"):
        core.publish(1)


def test_failures_are_named_by_class(tiny_model: Path) -> None:
    long = Request(
        CallId(0, "t", 0, "v", 0), ((False, 0),), (Message("user", (Segment("red " * 400),)),), Sampling(), 0
    )

    async def main() -> None:
        group = TrainedGroup("m", await LocalLink.open(spec(tiny_model), ComputeThread()))
        with pytest.raises(Author, match="at most"):
            await group.generate([long])
        with pytest.raises(Infrastructure, match="model m: KeyError"):
            await group.train([Row("v", ("unknown",), "asker", "t", 1.0, "g")], step=0)
        await group.close()

    asyncio.run(main())
