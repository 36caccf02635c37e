"""The trainer of one model: policy, and where the algorithm wants them a frozen reference and a critic.

Call `environment.prepare` before this module is first imported: it imports verl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from unitymas.api.algorithm import Algorithm, Loss
from unitymas.api.mapping import Critic, Model, Optimizer
from unitymas.api.run import Placement
from unitymas.models.finite import require_finite
from unitymas.models.parity import gap, require_parity
from unitymas.models.rows import F32, TokenRow, mini_batches
from unitymas.models.verl.losses import Metrics, PolicyObjective, ValueObjective
from unitymas.models.verl.worker import TrainingWorker, WorkerSettings, merge

T = TypeVar("T")
PER_TOKEN = {
    "clip_fraction": "clip_fraction",
    "kl": "kl",
    "ref_kl": "ref_kl",
    "entropy": "entropy",
    "parity": "parity_mean",
    "tis": "tis_mean",
}
"""Sums over tokens, and the names of their means."""
PER_STEP = frozenset({"loss", "grad_norm"})
"""Means over optimiser steps."""


class PolicyTrainer:
    """Trains one model's weights, one call of `update` a step. Blocking.

    path: a Hugging Face folder; it also gives reference and critic their first weights. roles: those it is trained
    for. parity: largest gap between rollout and trainer, in nats.
    """

    def __init__(
        self,
        path: str,
        model: Model,
        *,
        placement: Placement,
        algorithm: Algorithm,
        roles: Sequence[str],
        seed: int,
        parity: float,
    ) -> None:
        self._name, self._algorithm, self._seed, self._parity = model.name, algorithm, seed, parity
        self._rules: Mapping[str, Loss] = {role: algorithm.for_role(role).loss for role in sorted(roles)}
        settings = WorkerSettings(
            path=path,
            kind="language_model",
            optimizer=model.optimizer,
            micro_batch=placement.micro_batch,
            precision=placement.precision,
            seed=seed,
        )
        self.policy = TrainingWorker(settings)
        # a worker that is never stepped: verl's forward-only one needs pinned memory, which the CPU lacks
        self._reference = TrainingWorker(settings) if any(rule.kl > 0 for rule in self._rules.values()) else None
        self._critic_rule = model.critic or Critic.model_validate({})
        self.critic: TrainingWorker | None = None
        if algorithm.estimator == "gae":
            value = replace(settings, kind="value_model", optimizer=_optimizer(self._critic_rule))
            self.critic = TrainingWorker(value)

    def values(self, rows: Sequence[TokenRow]) -> list[F32]:
        """The critic's value of each trained token, in reward units. Raises ValueError when there is no critic."""
        if self.critic is None:
            raise ValueError(f"found estimator {self._algorithm.estimator}; expected gae, which has a critic")
        return self.critic.infer(rows)

    def update(self, rows: Sequence[TokenRow], *, step: int) -> Metrics:
        """One update: every row once per epoch, one optimiser step per mini-batch, then one step of the schedule.

        If no row gives a gradient, or the critic is still warming up, no optimiser steps and `skipped` is 1.
        Raises ParityBroken before any weight changes; NotFinite for a loss or gradient that is no finite number.
        """
        size = {"rows": float(len(rows)), "tokens": float(sum(row.output.size for row in rows))}
        if not self._learns(rows) or self._warming(step):
            return {"skipped": 1.0, **size}
        steps = self._steps(len(rows), step)
        extras, metrics = self._before(rows, several=len(steps) > 1)
        objective = PolicyObjective(
            roles=tuple(self._rules),
            rules=self._rules,
            correction=self._algorithm.rollout_correction,
            scale=len(steps) / self._algorithm.epochs,
        )
        alone = len(steps) == 1
        done = [self._optimise(objective, rows, extras, indices, alone=alone, step=step) for indices in steps]
        metrics = {**_summary(done), **metrics, **size, "skipped": 0.0, "learning_rate": self.policy.learning_rate}
        self.policy.advance()
        return metrics

    def criticise(
        self, rows: Sequence[TokenRow], values: Sequence[F32], returns: Sequence[F32], *, step: int
    ) -> Metrics:
        """Train the critic towards the returns, as often as the policy; metrics named `value_...`.

        values: what `values` said before. returns: (tokens,) for each row, in reward units. Raises NotFinite.
        """
        if self.critic is None:
            raise ValueError(f"found estimator {self._algorithm.estimator}; expected gae, which has a critic")
        done: list[Metrics] = []
        for indices in self._steps(len(rows), step):
            chosen, roles = _take(rows, indices), sorted({rows[index].role for index in indices})
            objective = ValueObjective(self._critic_rule.clip, sum(row.output.size for row in chosen))
            extras = {"values": _take(values, indices), "returns": _take(returns, indices)}
            metrics = self.critic.accumulate(chosen, objective, roles=roles, extras=extras, entropy=False)
            done.append(self._stepped(self.critic, metrics, of="critic's ", step=step))
        self.critic.advance()
        return {f"value_{name}": value for name, value in _summary(done).items() if name != "tokens"}

    def parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every weight of the policy, whole, by its Hugging Face name; tensors may alias the trainer's."""
        return self.policy.parameters()

    def _optimise(
        self,
        objective: PolicyObjective,
        rows: Sequence[TokenRow],
        extras: Mapping[str, Sequence[F32]],
        indices: Sequence[int],
        *,
        alone: bool,
        step: int,
    ) -> Metrics:
        """One optimiser step. The only one of an update measures parity in its own forward passes."""
        held = {name: _take(values, indices) for name, values in extras.items()}
        entropy = any(rule.entropy > 0 for rule in self._rules.values())
        chosen = _take(rows, indices)
        metrics = self.policy.accumulate(chosen, objective, roles=objective.roles, extras=held, entropy=entropy)
        if alone:
            require_parity(metrics["parity_max"], model=self._name, limit=self._parity)
        return self._stepped(self.policy, metrics, of="", step=step)

    def _stepped(self, worker: TrainingWorker, metrics: Metrics, *, of: str, step: int) -> Metrics:
        """The metrics with the gradient's norm, after one optimiser step; of gradients that are not finite, none."""
        require_finite(metrics["loss"], what=f"{of}loss", model=self._name, step=step)
        norm = worker.step()
        require_finite(norm, what=f"{of}gradient norm", model=self._name, step=step)
        return {**metrics, "grad_norm": norm}

    def _before(self, rows: Sequence[TokenRow], *, several: bool) -> tuple[dict[str, list[F32]], Metrics]:
        """Log-probs of the reference, and where several steps will move the policy, its own before, with parity."""
        extras: dict[str, list[F32]] = {}
        metrics: Metrics = {}
        if several:
            extras["old_log_probs"] = self.policy.infer(rows)
            found = gap([row.log_probs for row in rows], extras["old_log_probs"])
            require_parity(found.largest, model=self._name, limit=self._parity)
            metrics = {"parity_max": found.largest, "parity_mean": found.mean}
        if self._reference is not None:
            extras["ref_log_probs"] = self._reference.infer(rows)
        return extras, metrics

    def _learns(self, rows: Sequence[TokenRow]) -> bool:
        always = {role for role, rule in self._rules.items() if rule.kl > 0 or rule.entropy > 0}
        return any(row.weight > 0 and (row.role in always or bool(np.any(row.advantages))) for row in rows)

    def _warming(self, step: int) -> bool:
        return self.critic is not None and step < self._critic_rule.warmup_steps

    def _steps(self, rows: int, step: int) -> list[list[int]]:
        rule = self._algorithm
        return mini_batches(rows, count=rule.mini_batches, epochs=rule.epochs, seed=(self._seed, step))


def _optimizer(rule: Critic) -> Optimizer:
    return Optimizer.model_validate({"learning_rate": rule.learning_rate, "max_grad_norm": rule.max_grad_norm})


def _take(values: Sequence[T], indices: Sequence[int]) -> list[T]:
    return [values[index] for index in indices]


def _summary(steps: Sequence[Metrics]) -> Metrics:
    """Metrics of an update from those of its optimiser steps: sums over tokens become means."""
    total: Metrics = {}
    for metrics in steps:
        merge(total, metrics)
    shown: Metrics = {}
    for name, value in total.items():
        role, slash, bare = name.rpartition("/")
        if bare in PER_TOKEN:
            shown[f"{role}{slash}{PER_TOKEN[bare]}"] = value / total[f"{role}{slash}tokens"]
        else:
            shown[name] = value / len(steps) if bare in PER_STEP else value
    return shown
