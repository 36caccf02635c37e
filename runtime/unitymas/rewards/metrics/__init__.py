"""Built-in metrics, one file each; found by name through `unitymas.api.names.METRICS`."""
