"""What our update costs beside a bare verl one, on the same tokens in the same process.

Ours: the rows of the quickstart's answerer to published weights, as a model group does it: token buffer, comparison
groups, advantages, loss weights, batches, forward and backward, parity, optimiser, weights into the engine.
Bare: verl's TrainingWorker with verl's own loss (token mean) over ready-made tensors, advantages given, rows in order
of length and cut into the same forward passes; nothing is published.

    python benchmarks/step.py

Prints medians of alternating repeats and their ratio. Exits 1 when it is above the limit.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch

import numpy as np

from unitymas.api.algorithm import Algorithm
from unitymas.api.load import read, resolve
from unitymas.api.mapping import Model
from unitymas.api.records import CallId, Message, Request, Row, Sampling, Segment
from unitymas.api.run import Placement
from unitymas.models.buffer import Sample
from unitymas.models.core import GroupCore, GroupSpec
from unitymas.models.engines.hf import HfEngine
from unitymas.models.engines.port import Prompt
from unitymas.models.rows import micro_batches
from unitymas.models.tokens import Tokens
from unitymas.models.verl.environment import prepare

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart"
ROLE, MODEL = "answerer", "answerer"
MICRO_BATCH = 48
REPEATS, WARM = 15, 3
LIMIT = 1.25
"""Of our CPU seconds to the bare ones."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One update."""

    cpu_s: float
    wall_s: float


def requests(tasks: int, rollouts: int) -> list[Request]:
    """The answerer's prompts for the first training questions, with their gold documents."""
    texts = {row["id"]: row["text"] for row in _rows("corpus.jsonl")}
    asked: list[Request] = []
    for row in _rows("data/train.jsonl")[:tasks]:
        found = " ".join(texts[document] for document in row["documents"] * 2)
        prompt = Segment(f"question {row['question']} passages {found}", variable=True)
        messages = (Message("system", (Segment(ROLE),)), Message("user", (prompt,)))
        for rollout in range(rollouts):
            name = CallId(0, row["question"], rollout, ROLE, 0)
            sampling = Sampling(max_tokens=8, temperature=1.0)
            asked.append(Request(name, ((False, 0),), messages, sampling, seed=len(asked), role=ROLE))
    return asked


def _rows(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (QUICKSTART / file).read_text("utf-8").splitlines()]


def rows(asked: Sequence[Request]) -> list[Row]:
    """A visit for each request, with rewards that differ within every group."""
    draw = np.random.default_rng(0)
    return [
        Row(
            visit=f"{request.id.task}/{request.id.rollout}",
            calls=(str(request.id),),
            role=ROLE,
            trajectory=f"{request.id.task}/{request.id.rollout}",
            reward=float(draw.random()),
            group=request.id.task,
        )
        for request in asked
    ]


def ours(core: GroupCore, asked: Sequence[Request], first: Path) -> Cost:
    """One update of a model group, from its first weights, so that the tokens are the same each time."""
    core.load(first, 0)
    core.generate(asked)
    given = rows(asked)
    return _timed(lambda: (core.train(given, 0), core.publish(1)))


def padded(samples: Sequence[Sample], advantages: Sequence[float]) -> Any:
    """The samples as verl's trainer holds them: prompts padded left, replies right."""
    import torch
    from tensordict import TensorDict

    wide, long = max(sample.prompt.size for sample in samples), max(sample.output.size for sample in samples)
    count = len(samples)
    ids, mask = torch.zeros((count, wide + long), dtype=torch.long), torch.zeros((count, wide + long), dtype=torch.long)
    log_probs = torch.zeros((count, long))
    for row, sample in enumerate(samples):
        start, end = wide - sample.prompt.size, wide + sample.output.size
        ids[row, start:end] = torch.from_numpy(np.concatenate([sample.prompt, sample.output]))
        mask[row, start:end] = 1
        log_probs[row, : sample.output.size] = torch.from_numpy(sample.logprobs)
    response_mask = mask[:, wide:]
    columns = {
        "prompts": ids[:, :wide],
        "responses": ids[:, wide:],
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
        "response_mask": response_mask,
        "old_log_probs": log_probs,
        "advantages": torch.tensor(advantages)[:, None] * response_mask,
    }
    return TensorDict(cast(Any, columns), batch_size=[count])


def bare(worker: Any, batch: Any) -> Cost:
    """One update of verl's worker: the batch without padding, then its own loop over one mini-batch."""
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import left_right_2_no_padding

    def update() -> None:
        data = left_right_2_no_padding(batch.clone())
        settings = {"temperature": 1.0, "calculate_entropy": False, "global_batch_size": len(batch)}
        loop = {"num_mini_batch": 1, "epochs": 1, "seed": 0, "dataloader_kwargs": {"shuffle": False}}
        tu.assign_non_tensor(data, **settings, **loop)
        worker.train_mini_batch(data)

    return _timed(update)


def bare_worker(model: Model) -> Any:
    """verl's TrainingWorker, configured as ours, with verl's own loss and, unlike ours, its own engine."""
    from verl.workers.config import FSDPActorConfig
    from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead
    from verl.workers.utils.losses import ppo_loss

    from unitymas.models.verl.engines import BACKEND, DEVICE
    from unitymas.models.verl.worker import TrainingWorker, WorkerSettings

    own = EngineRegistry.register(model_type="language_model", backend=BACKEND, device=DEVICE, vendor="verl")
    own(FSDPEngineWithLMHead)
    os.environ["VERL_ENGINE_VENDOR"] = "verl"  # verl's way to choose it
    settings = WorkerSettings(str(QUICKSTART / "model"), "language_model", model.optimizer, MICRO_BATCH, "fp32", 0)
    config: Any = FSDPActorConfig(
        strategy="fsdp2", rollout_n=8, ppo_micro_batch_size_per_gpu=MICRO_BATCH, use_torch_compile=False
    )
    worker = TrainingWorker(settings).verl
    worker.set_loss_fn(partial(cast(Any, ppo_loss), config=config))
    return worker


def _timed(work: Callable[[], object]) -> Cost:
    cpu, wall = process_time(), perf_counter()
    work()
    return Cost(process_time() - cpu, perf_counter() - wall)


def main() -> int:
    """Measure both by turns and print. Returns the exit code."""
    import torch

    torch.set_num_threads(1)
    prepare()
    project = resolve(read([QUICKSTART]))
    model, folder = project.mapping.spec.model(MODEL), QUICKSTART / "model"
    algorithm: Algorithm = project.run.spec.algorithm
    place = Placement.model_validate({"microBatch": MICRO_BATCH})
    core = GroupCore(GroupSpec(model, folder, place, "hf", algorithm, (ROLE,), parity=1e-3, seed=0))
    asked = requests(project.run.spec.schedule.tasks_per_step, algorithm.rollouts_per_task)
    tokens = Tokens.open(folder, model=MODEL)
    prompts = [Prompt(tokens.encode(each.messages, budget=500).ids, each.seed, each.sampling) for each in asked]
    samples = sorted(HfEngine(folder, tokens).generate(prompts), key=lambda sample: sample.tokens)
    batch, worker = padded(samples, [row.reward - 0.5 for row in rows(asked)]), bare_worker(model)
    costs: dict[str, list[Cost]] = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as first:
        core.save(Path(first))
        for _ in range(WARM + REPEATS):
            costs["ours"].append(ours(core, asked, Path(first)))
            costs["bare"].append(bare(worker, batch))
    passes = len(micro_batches([sample.tokens for sample in samples], most_rows=MICRO_BATCH))
    trained = sum(sample.output.size for sample in samples)
    print(f"{len(samples)} rows, {sum(sample.tokens for sample in samples)} tokens, {trained} of them trained;")
    print(f"forward passes: ours {passes}, bare {len(samples) // MICRO_BATCH}; median of {REPEATS}, by turns\n")
    return _report(costs)


def _report(costs: dict[str, list[Cost]]) -> int:
    cpu = {name: median(cost.cpu_s for cost in each[WARM:]) for name, each in costs.items()}
    wall = {name: median(cost.wall_s for cost in each[WARM:]) for name, each in costs.items()}
    ratio = cpu["ours"] / cpu["bare"]
    print("| update | CPU ms | wall ms |\n| --- | --- | --- |")
    for name in costs:
        print(f"| {name} | {1000 * cpu[name]:.1f} | {1000 * wall[name]:.1f} |")
    print(f"\nours / bare: {ratio:.2f} in CPU, {wall['ours'] / wall['bare']:.2f} in wall; at most {LIMIT} is wanted")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
