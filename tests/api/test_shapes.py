"""Values conform to shapes; what cannot be stored conforms to none."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.shapes import ANY, STRING, ListOf, Shape, ShapeError, conform, encodable

VALUES = st.recursive(
    st.none() | st.integers() | st.text(st.characters(categories=["Cs", "Ll", "So"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(categories=["Cs", "Ll"])), inner),
    max_leaves=6,
)


@given(VALUES)
def test_a_value_is_encodable_where_its_text_can_be_written_as_utf8(value: object) -> None:
    try:
        text_of(value).encode()
    except UnicodeEncodeError:
        assert not encodable(value)
    else:
        assert encodable(value)


def text_of(value: object) -> str:
    """All text of a value, joined."""
    if isinstance(value, dict):
        return " ".join(text_of(each) for pair in cast(dict[object, object], value).items() for each in pair)
    if isinstance(value, list):
        return " ".join(map(text_of, cast(list[object], value)))
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(
    ("shape", "value"),
    [(STRING, "\ud800"), (ANY, {"a": ["\ud800"]}), (ANY, {"\ud800": 1}), (ListOf(STRING), ["\ud800"])],
)
def test_half_of_a_surrogate_pair_is_no_text(shape: Shape, value: object) -> None:
    with pytest.raises(ShapeError, match="UTF-8"):
        conform(shape, value)
