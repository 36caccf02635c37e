"""One estimator, one file; `unitymas.api.names.ESTIMATORS` is the registry."""
