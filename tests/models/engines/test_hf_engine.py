"""The Hugging Face engine on a random Llama: what it samples depends on weights, prompt and seed alone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unitymas.api.records import Sampling

pytestmark = pytest.mark.integration

PROMPTS = [(1, 40, 41, 42), (1, 50), (1, 60, 61, 62, 63, 64, 65), (1, 50), (1, 70, 71)]


@pytest.fixture
def engine(tiny_llama: Path) -> Any:
    from unitymas.models.engines.hf import HfEngine
    from unitymas.models.tokens import Tokens

    return HfEngine(tiny_llama, Tokens.open(tiny_llama, model="tiny"))


def asked(sampling: Sampling | None = None, *, repeat: int = 1) -> list[Any]:
    from unitymas.models.engines.port import Prompt

    sampling = sampling or Sampling(max_tokens=12)
    return [Prompt(ids, seed=2**60 + 31 * i, sampling=sampling) for i, ids in enumerate(PROMPTS * repeat)]


def decoded_rows(engine: Any) -> list[int]:
    """Filled with the number of rows of each later decoding step."""
    rows: list[int] = []

    def count(module: Any, args: Any, kwargs: Any) -> None:
        if "past_key_values" in kwargs:
            rows.append(len(kwargs["input_ids"]))

    engine.model.register_forward_pre_hook(count, with_kwargs=True)
    return rows


def outputs(samples: list[Any]) -> list[list[int]]:
    return [sample.output.tolist() for sample in samples]


def test_greedy_equals_generate_of_the_library(engine: Any) -> None:
    import torch

    for prompt, sample in zip(PROMPTS, engine.generate(asked(Sampling(max_tokens=20, temperature=0.0))), strict=True):
        whole = engine.model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False)
        assert sample.output.tolist() == whole[0, len(prompt) :].tolist()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_equal_a_full_forward_pass(engine: Any, temperature: float) -> None:
    import torch

    from unitymas.models.engines.port import Prompt

    rows = enumerate(PROMPTS * 4)  # of many lengths, so that most have left the batch before its end
    prompts = [Prompt(ids, i, Sampling(max_tokens=2 * i + 1, temperature=temperature)) for i, ids in rows]
    decoded = decoded_rows(engine)
    samples = engine.generate(prompts)
    assert decoded[0] == len(prompts) > 4 * decoded[-1]
    for sample in samples:
        whole = torch.tensor(np.concatenate([sample.prompt, sample.output]))
        with torch.no_grad():
            logits = engine.model(whole[None]).logits[0, len(sample.prompt) - 1 : -1]
        expected = (logits / temperature).log_softmax(-1).gather(1, torch.tensor(sample.output)[:, None])
        assert sample.logprobs.dtype == np.float32
        np.testing.assert_allclose(sample.logprobs, expected[:, 0].numpy(), atol=1e-5)


def test_company_and_order_change_no_sample(engine: Any) -> None:
    prompts = asked(repeat=4)
    together = dict(zip(prompts, outputs(engine.generate(prompts)), strict=True))
    alone = {prompt: outputs(engine.generate([prompt]))[0] for prompt in prompts}
    shuffled = random.Random(0).sample(prompts, len(prompts))
    assert together == alone == dict(zip(shuffled, outputs(engine.generate(shuffled)), strict=True))
    assert len(set(map(tuple, together.values()))) > len(PROMPTS)


def test_small_batches_give_the_samples_of_one_batch(engine: Any, tiny_llama: Path) -> None:
    from unitymas.models.engines.hf import HfEngine
    from unitymas.models.tokens import Tokens

    small = HfEngine(tiny_llama, Tokens.open(tiny_llama, model="tiny"), batch_tokens=40)
    assert outputs(small.generate(asked(repeat=3))) == outputs(engine.generate(asked(repeat=3)))


def test_each_distinct_prompt_is_read_once(engine: Any) -> None:
    read: list[int] = []

    def count(module: Any, args: Any, kwargs: Any) -> None:
        ids = kwargs["input_ids"]
        if ids.shape[1] > 1:
            read.append(len(ids))

    engine.model.register_forward_pre_hook(count, with_kwargs=True)
    engine.generate(asked(repeat=5))
    assert read == [len(set(PROMPTS))]


def test_finish_says_why_a_reply_ended(engine: Any) -> None:
    samples = engine.generate(asked(Sampling(max_tokens=40), repeat=10))
    for sample in samples:
        ended = sample.output[-1] == 2
        assert sample.finish == ("stop" if ended else "length")
        assert ended or len(sample.output) == 40
        assert 2 not in sample.output[:-1]
    assert {sample.finish for sample in samples} == {"stop", "length"}


def test_each_row_has_its_own_limit_and_temperature(engine: Any) -> None:
    from unitymas.models.engines.port import Prompt

    rows = [Sampling(max_tokens=2), Sampling(max_tokens=9, temperature=0.0), Sampling(max_tokens=5, top_k=1)]
    prompts = [Prompt(PROMPTS[0], seed=i, sampling=sampling) for i, sampling in enumerate(rows)]
    mixed = engine.generate(prompts)
    assert outputs(mixed) == [outputs(engine.generate([prompt]))[0] for prompt in prompts]
    assert all(len(sample.output) <= row.max_tokens for sample, row in zip(mixed, rows, strict=True))
    assert mixed[2].output.tolist() == mixed[1].output.tolist()[:5]  # the likeliest one is greedy
    assert mixed[2].logprobs.tolist() == [0.0] * len(mixed[2].output)


def test_a_stop_string_ends_a_reply(engine: Any, tiny_llama: Path) -> None:
    from unitymas.models.tokens import Tokens

    tokens = Tokens.open(tiny_llama, model="tiny")
    [free] = engine.generate(asked(Sampling(max_tokens=30))[:1])
    stop = tokens.decode(free.output[3:5].tolist())
    assert stop.strip()
    [stopped] = engine.generate(asked(Sampling(max_tokens=30, stop=("never said", stop)))[:1])
    assert stopped.finish == "stop"
    assert stopped.output.tolist() == free.output.tolist()[: len(stopped.output)]
    assert len(stopped.output) <= 5
    assert tokens.decode(stopped.output.tolist()).endswith(stop)


def test_filters_leave_the_likeliest_tokens() -> None:
    import torch

    from unitymas.models.engines.sampling import filtered

    logits = torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log().repeat(4, 1)
    kept = filtered(logits, torch.tensor([[99], [2], [99], [2]]), torch.tensor([[9.0], [9.0], [0.7], [0.01]]))
    assert kept.isfinite().tolist() == [
        [True, True, True, True],
        [False, True, False, True],
        [False, True, False, True],
        [False, True, False, False],
    ]


def test_draws_follow_the_distribution() -> None:
    import torch

    from unitymas.models.engines.sampling import inverse, uniforms

    probs = torch.tensor([0.0, 0.2, 0.5, 0.0, 0.3, 0.0])
    drawn = inverse(probs.repeat(20_000, 1), torch.from_numpy(uniforms(7, 20_000))[:, None])
    share = drawn.bincount(minlength=6) / 20_000
    np.testing.assert_allclose(share, probs, atol=0.015)
    assert share[probs == 0].sum() == 0


def test_loaded_weights_are_served_and_stamped(engine: Any) -> None:
    before = outputs(engine.generate(asked()))
    weights = {name: weight.clone() * 1.5 for name, weight in engine.model.named_parameters()}
    assert "lm_head.weight" not in weights  # tied: the embedding stands for both
    engine.load(weights.items(), version=7)
    after = engine.generate(asked())
    assert outputs(after) != before
    assert {sample.version for sample in after} == {7}
    np.testing.assert_array_equal(engine.model.lm_head.weight, weights["model.embed_tokens.weight"])


def test_weights_that_do_not_fit_are_refused(engine: Any) -> None:
    weights = {name: weight.clone() for name, weight in engine.model.named_parameters()}
    norm = weights["model.norm.weight"]
    with pytest.raises(ValueError, match="weight extra: the model has none of that name"):
        engine.load({**weights, "extra": norm}.items(), version=1)
    with pytest.raises(ValueError, match=r"weight model.norm.weight: found shape \(31,\); expected \(32,\)"):
        engine.load({**weights, "model.norm.weight": norm[1:]}.items(), version=1)
    del weights["model.embed_tokens.weight"]
    with pytest.raises(ValueError, match=r"weights missing: lm_head\.weight, model\.embed_tokens\.weight"):
        engine.load(weights.items(), version=1)
    assert engine.version == 0
