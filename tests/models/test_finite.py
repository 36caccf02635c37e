"""What is no finite number stops the run, with what to look at."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitymas.api.errors import NotFinite
from unitymas.models.finite import require_finite


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_pass(value: float) -> None:
    require_finite(value, what="loss", model="m", step=1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_any_other_number_is_an_error_that_names_model_step_and_causes(value: float) -> None:
    with pytest.raises(NotFinite, match=r"model m, step 7: the gradient norm is .*learningRate.*rewards") as caught:
        require_finite(value, what="gradient norm", model="m", step=7)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
