"""Checks: what can be proved of the manifests before a model is loaded; one file a matter, one line in `run.CHECKS`."""
