"""The formats `tag` and `tags`."""

from __future__ import annotations

from unitymas.api.shapes import STRING, Record, Shape
from unitymas.api.workflow import Output as OutputSpec


def last(text: str, tag: str) -> str:
    """What stands between the last complete `<tag>` and `</tag>`, stripped; it may be empty.

    The last one, as reasoning may name a tag before it is used. Raises ValueError when there is none.
    """
    for part in reversed(text.split(f"<{tag}>")[1:]):
        inner, closed, _ = part.partition(f"</{tag}>")
        if closed:
            return inner.strip()
    raise ValueError(f"no <{tag}>...</{tag}>")


class Tag:
    """The text of one tag, a string."""

    def __init__(self, spec: OutputSpec) -> None:
        self.shape: Shape = STRING
        self._tag = spec.tag or ""

    def parse(self, text: str) -> str:
        """The tag's text. Raises ValueError when no tag is complete."""
        return last(text, self._tag)


class Tags:
    """Several tags, a record of strings; every one must be there."""

    def __init__(self, spec: OutputSpec) -> None:
        self._tags = tuple(spec.tags or ())
        self.shape: Shape = Record(tuple((tag, STRING) for tag in self._tags))

    def parse(self, text: str) -> dict[str, str]:
        """The tags' texts by name. Raises ValueError when one is missing."""
        return {tag: last(text, tag) for tag in self._tags}
