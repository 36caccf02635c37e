"""Rewards: metrics of a trajectory, series of readings, parts per visit; users' code in processes of its own."""

from unitymas.rewards.compile import RewardProgram, compile_rewards
from unitymas.rewards.score import score
from unitymas.rewards.series import Series
from unitymas.rewards.share import visit_record
from unitymas.rewards.worker import ProcessPool

__all__ = ["ProcessPool", "RewardProgram", "Series", "compile_rewards", "score", "visit_record"]
