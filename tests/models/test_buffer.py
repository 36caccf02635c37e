"""The token buffer keeps each call once, counts what it holds, and forgets at a publish."""

from __future__ import annotations

import numpy as np
import pytest

from unitymas.models.buffer import Sample, TokenBuffer


def sample(prompt: int = 3, output: int = 2) -> Sample:
    return Sample(np.arange(prompt), np.arange(output), np.zeros(output, np.float32), version=4, finish="stop")


def test_what_is_put_is_taken_in_the_order_asked() -> None:
    buffer, first, second = TokenBuffer(), sample(), sample()
    buffer.put("a", first)
    buffer.put("b", second)
    assert buffer.take(["b", "a"]) == [second, first]
    assert buffer.take(["a"]) == [first]


def test_a_call_asked_again_keeps_its_newest_sample() -> None:
    buffer, newest = TokenBuffer(), sample(prompt=1, output=1)
    buffer.put("a", sample())
    buffer.put("a", newest)
    assert buffer.take(["a"]) == [newest]
    assert (len(buffer), buffer.tokens, buffer.nbytes) == (1, newest.tokens, newest.nbytes)


def test_an_unknown_call_is_named() -> None:
    buffer = TokenBuffer()
    buffer.put("a", sample())
    with pytest.raises(KeyError, match="call b and 1 more is not in the token buffer"):
        buffer.take(["a", "b", "c"])


def test_tokens_and_bytes_are_counted_and_forgotten() -> None:
    buffer = TokenBuffer()
    buffer.put("a", sample(prompt=3, output=2))
    buffer.put("b", sample(prompt=1, output=1))
    assert (len(buffer), buffer.tokens, buffer.nbytes) == (2, 7, 7 * 8 + 3 * 4)
    buffer.forget()
    assert (len(buffer), buffer.tokens, buffer.nbytes) == (0, 0, 0)
    buffer.put("a", sample())
    assert len(buffer) == 1
