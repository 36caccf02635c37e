"""Rollout engines and frozen models: one file each."""
