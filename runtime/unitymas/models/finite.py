"""Whether an update can be made at all: its loss and its gradients are finite numbers."""

from __future__ import annotations

import math

from unitymas.api.errors import NotFinite


def require_finite(found: float, *, what: str, model: str, step: int) -> None:
    """Raises NotFinite where the number is none, or infinite. `what`: such as `loss`."""
    if not math.isfinite(found):
        raise NotFinite(
            f"model {model}, step {step}: the {what} is {found:g}; expected a finite number. The optimiser did not "
            "step with it, and nothing of this step is served. Likely causes: a learning rate too high "
            "(optimizer.learningRate), rewards of a huge scale (spec.rewards), or weights that are not finite"
        )
