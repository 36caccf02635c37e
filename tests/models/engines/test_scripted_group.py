"""The scripted group: replies by function or by role, delays, failures, versions at dispatch."""

from __future__ import annotations

import asyncio

import pytest

from unitymas.api.errors import Author, Infrastructure
from unitymas.api.ports import ModelGroup
from unitymas.api.records import CallId, Message, Request, Sampling, Segment
from unitymas.models.engines.scripted import ScriptedGroup


def request(role: str, call: int = 0, *, rollout: int = 0, text: str = "two words") -> Request:
    identity = CallId(step=0, task="t", rollout=rollout, visit=role, call=call)
    return Request(identity, ((False, 0),), (Message("user", (Segment(text),)),), Sampling(), seed=0, role=role)


def texts(group: ScriptedGroup, *requests: Request) -> list[str]:
    return [reply.text for reply in asyncio.run(group.generate(requests))]


def test_it_is_a_model_group() -> None:
    assert isinstance(ScriptedGroup("m", {}), ModelGroup)


def test_a_function_sees_the_request_and_words_are_counted() -> None:
    group = ScriptedGroup("m", lambda asked: f"reply to {asked.role}", version=3)
    [reply] = asyncio.run(group.generate([request("solver")]))
    assert (reply.text, reply.prompt_tokens, reply.output_tokens, reply.version) == ("reply to solver", 2, 3, 3)


def test_replies_of_a_role_are_taken_in_turn_and_the_last_one_repeats() -> None:
    group = ScriptedGroup("m", {"a": ["one", "two"], "b": ["other"]})
    assert texts(group, request("a", 0), request("b"), request("a", 1), request("a", 2)) == [
        "one",
        "other",
        "two",
        "two",
    ]


def test_each_trajectory_starts_the_replies_anew() -> None:
    group = ScriptedGroup("m", {"a": ["one", "two"]})
    assert texts(group, request("a", 0), request("a", 0, rollout=1), request("a", 1)) == ["one", "one", "two"]


def test_a_call_asked_again_gets_the_same_reply() -> None:
    group = ScriptedGroup("m", {"a": ["one", "two"]})
    assert texts(group, request("a", 0)) == texts(group, request("a", 0)) == ["one"]


def test_a_role_without_a_script_is_the_authors_mistake() -> None:
    with pytest.raises(Author, match=r"no scripted reply for role b; found \['a'\]"):
        texts(ScriptedGroup("m", {"a": ["one"]}), request("b"))


def test_a_failure_is_raised_after_the_delay() -> None:
    delays: list[str] = []

    def delay_s(asked: Request) -> float:
        delays.append(asked.role)
        return 0.001

    group = ScriptedGroup("m", {"a": ["x"]}, delay_s=delay_s, failure=lambda _: Infrastructure("model m", "broke"))
    with pytest.raises(Infrastructure, match="broke"):
        texts(group, request("a"))
    assert delays == ["a"]


def test_the_version_is_that_of_dispatch() -> None:
    async def publish_meanwhile() -> int:
        group = ScriptedGroup("m", {"a": ["x"]}, delay_s=lambda _: 0.01)
        asked = asyncio.ensure_future(group.generate([request("a")]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        group.version = 1
        [reply] = await asked
        return reply.version

    assert asyncio.run(publish_meanwhile()) == 0
