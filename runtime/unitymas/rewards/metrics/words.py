"""Text as question answering compares it: lower case, without ASCII punctuation, articles and extra white space."""

from __future__ import annotations

import re
import string

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def words(text: str) -> list[str]:
    """The words that count, in order. `A.` is an article too; accents and typographic punctuation stay."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def normalise(text: str) -> str:
    """The words that count, joined by single spaces; empty for `The` or `?!`."""
    return " ".join(words(text))
