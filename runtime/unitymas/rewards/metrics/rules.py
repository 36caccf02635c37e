"""The check that every metric with a `rule` makes when it is built."""

from __future__ import annotations

from collections.abc import Sequence


def require_rule(rule: str, offered: Sequence[str], *, later: Sequence[str] = ()) -> None:
    """Raise ValueError unless the rule is offered; a rule of a later release is named as such."""
    if rule in offered:
        return
    expected = f"expected {' or '.join(offered)}"
    if rule in later:
        raise ValueError(f"rule: `{rule}` is not in this release; {expected}")
    raise ValueError(f"rule: found `{rule}`; {expected}")
