"""A model group whose replies a script gives: for tests of workflows and for dry runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from unitymas.api.errors import Author
from unitymas.api.records import CallId, Reply, Request

Script = Callable[[Request], str] | Mapping[str, Sequence[str]]


class ScriptedGroup:
    """A model group (`api.ports`) without a model.

    `script`: a function from request to reply; or replies by role: a trajectory's calls of a role take them in
    turn, the last one again and again. `delay_s`: seconds until a call is answered. `failure`: what a call raises,
    or None. `version`: stamped on replies when they are asked for; may be set. Tokens are words.
    """

    def __init__(
        self,
        name: str,
        script: Script,
        *,
        delay_s: Callable[[Request], float] | None = None,
        failure: Callable[[Request], Exception | None] | None = None,
        version: int = 0,
    ) -> None:
        self.name = name
        self.version = version
        self.requests: list[Request] = []
        """Every request, in order of arrival."""
        self._script = script
        self._delay_s = delay_s
        self._failure = failure
        self._asked: dict[tuple[object, ...], list[CallId]] = {}

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """See `api.ports.ModelGroup`. Raises what `failure` gives; Author for a role without a script."""
        if self._delay_s is None:
            return [await self._answer(request) for request in requests]
        return list(await asyncio.gather(*map(self._answer, requests)))

    async def stat(self) -> Mapping[str, float]:
        """Calls so far, and the version."""
        return {"version": self.version, "requests": len(self.requests)}

    async def close(self) -> None:
        """Nothing is held."""

    async def _answer(self, request: Request) -> Reply:
        version = self.version
        self.requests.append(request)
        text = self._script(request) if callable(self._script) else self._next(request, self._script)
        if self._delay_s is not None:
            await asyncio.sleep(self._delay_s(request))
        failure = self._failure(request) if self._failure is not None else None
        if failure is not None:
            raise failure
        prompt_tokens = sum(len(message.text.split()) for message in request.messages)
        return Reply(text, "stop", prompt_tokens, len(text.split()), truncated_tokens=0, version=version)

    def _next(self, request: Request, replies: Mapping[str, Sequence[str]]) -> str:
        if not replies.get(request.role):
            raise Author(f"model {self.name}", f"no scripted reply for role {request.role}; found {sorted(replies)}")
        call = request.id
        asked = self._asked.setdefault((call.phase, call.step, call.task, call.rollout, request.role), [])
        if call not in asked:  # a call asked again, after a failure, gets the same reply
            asked.append(call)
        return replies[request.role][min(asked.index(call), len(replies[request.role]) - 1)]
