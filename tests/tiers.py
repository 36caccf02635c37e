"""Runs every tier of the tests that this machine can run, and says what it skips and why.

`python tests/tiers.py` runs what can be run; `python tests/tiers.py all` fails where something cannot.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class Tier:
    """One tier: its pytest arguments, and what keeps it from running here (empty when nothing does)."""

    name: str
    arguments: tuple[str, ...]
    hindered: Callable[[], str]


def _training() -> str:
    missing = [name for name in ("torch", "ray", "verl") if find_spec(name) is None]
    return f"{', '.join(missing)} not installed (make setup installs them)" if missing else ""


def _gpu() -> str:
    return "" if shutil.which("nvidia-smi") else "no GPU; make check-gpu runs it where there is one"


TIERS = (
    Tier("unit", ("-m", "not integration", "-n", "2"), lambda: ""),
    Tier("integration", ("-m", "integration"), _training),
    Tier("cluster", (), lambda: "the operator is not part of this release yet"),
    Tier("gpu", (), lambda: _gpu() or "the vLLM engine is not part of this release yet"),
)


def main(wanted: list[str]) -> int:
    """Run the tiers. Returns the exit code."""
    everything = "all" in wanted
    failed: list[str] = []
    for tier in TIERS:
        reason = tier.hindered()
        if reason:
            print(f"== {tier.name}: skipped, {reason}", flush=True)
            failed += [tier.name] if everything else []
            continue
        print(f"== {tier.name}", flush=True)
        if subprocess.run([sys.executable, "-m", "pytest", *tier.arguments], check=False).returncode:
            failed.append(tier.name)
    print(f"== failed: {', '.join(failed)}" if failed else "== all that ran passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
