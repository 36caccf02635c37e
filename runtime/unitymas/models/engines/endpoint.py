"""A frozen model behind an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from unitymas.api.errors import Author, BadInput, Finding, Infrastructure
from unitymas.api.mapping import Endpoint
from unitymas.api.records import Reply, Request

LONGEST_WAIT_S = 60.0
"""Between two attempts, whatever the server asks for."""
MESSAGE_CHARACTERS = 500
SEED_BITS = 31
"""What every server takes."""


class _Again(Exception):
    """An attempt that failed for now. `after_s`: what the server asks to wait."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class EndpointGroup:
    """A model group (`api.ports`) whose model is served elsewhere; its version is always 0.

    `environ`: where `secretRef.key` is looked up, once. `backoff_s`: upper bound of the first random wait between
    attempts; doubles. The key is in no message, log or repr. Raises BadInput when the key is absent or malformed.
    """

    def __init__(
        self, name: str, endpoint: Endpoint, *, environ: Mapping[str, str] = os.environ, backoff_s: float = 0.5
    ) -> None:
        self.name = name
        self._endpoint = endpoint
        self._key = _key(name, endpoint, environ)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx.Limits(max_connections=endpoint.max_concurrency)
        self._client = httpx.AsyncClient(headers=headers, timeout=endpoint.timeout_s, limits=limits)
        self._url = f"{endpoint.url.rstrip('/')}/chat/completions"
        self._free = asyncio.Semaphore(endpoint.max_concurrency)
        self._next_start_s = 0.0
        self._backoff = wait_random_exponential(multiplier=backoff_s, max=LONGEST_WAIT_S)
        self._counts = dict.fromkeys(("requests", "attempts", "prompt_tokens", "output_tokens"), 0)

    def __repr__(self) -> str:
        return f"EndpointGroup({self.name!r}, url={self._endpoint.url!r}, model={self._endpoint.model!r})"

    async def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """See `api.ports.ModelGroup`. Raises Author when the server refuses a request, Infrastructure when it broke."""
        try:
            async with asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(self.answer(request)) for request in requests]
        except* (Author, Infrastructure) as failed:
            failures = failed.exceptions
        else:
            return [task.result() for task in asked]
        # What another try cannot mend is reported first.
        raise min(failures, key=lambda failure: not isinstance(failure, Author))

    async def stat(self) -> Mapping[str, float]:
        """Counts since the start, and the version."""
        return {"version": 0, **self._counts}

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def answer(self, request: Request) -> Reply:
        """See `api.ports.Streams`. Each attempt has the endpoint's own time limit."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._endpoint.retries + 1),
            wait=self._wait,
            retry=retry_if_exception_type(_Again),
            reraise=True,
        )
        self._counts["requests"] += 1
        try:
            reply = await retrying(self._attempt, self._body(request))
        except _Again as last:
            attempts = self._endpoint.retries + 1
            raise Infrastructure(self._where, f"{attempts} attempts failed; the last: {last}") from None
        self._counts["prompt_tokens"] += reply.prompt_tokens
        self._counts["output_tokens"] += reply.output_tokens
        return reply

    async def _attempt(self, body: Mapping[str, object]) -> Reply:
        """One exchange. Raises _Again when another may go well, Author when none will."""
        async with self._free:
            await self._turn()
            self._counts["attempts"] += 1
            try:
                answer = await self._client.post(self._url, json=body)
            except httpx.RequestError as error:
                raise _Again(self._clean(f"{type(error).__name__}: {error}")) from None
        if answer.status_code == 429 or answer.is_server_error:
            raise _Again(f"status {answer.status_code}: {self._message(answer)}", _retry_after_s(answer))
        if not answer.is_success:
            raise Author(self._where, f"status {answer.status_code}: {self._message(answer)}")
        try:
            return _reply(answer.json())
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _Again(f"not a chat completion: {self._message(answer)}") from None

    async def _turn(self) -> None:
        """Wait until `requestsPerSecond` lets another one start."""
        rate = self._endpoint.requests_per_second
        if rate is None:
            return
        now_s = asyncio.get_running_loop().time()
        start_s = max(now_s, self._next_start_s)
        self._next_start_s = start_s + 1.0 / rate
        await asyncio.sleep(start_s - now_s)

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked_s = error.after_s if isinstance(error, _Again) else 0.0
        return min(LONGEST_WAIT_S, asked_s + self._backoff(state))

    def _body(self, request: Request) -> Mapping[str, object]:
        sampling = request.sampling
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "seed": request.seed % 2**SEED_BITS,
        }
        optional = {"top_p": (sampling.top_p, 1.0), "top_k": (sampling.top_k, 0), "stop": (list(sampling.stop), [])}
        # Not every server knows every field: only those that change something are sent.
        return body | {field: value for field, (value, default) in optional.items() if value != default}

    @property
    def _where(self) -> str:
        return f"model {self.name} at {self._endpoint.url}"

    def _message(self, answer: httpx.Response) -> str:
        """What the server says is wrong."""
        try:
            error: object = cast("dict[str, Any]", answer.json())["error"]
            text = str(cast("dict[str, object]", error)["message"] if isinstance(error, dict) else error)
        except (ValueError, LookupError, TypeError):
            text = answer.text
        return self._clean(text)[:MESSAGE_CHARACTERS]

    def _clean(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _key(name: str, endpoint: Endpoint, environ: Mapping[str, str]) -> str:
    if endpoint.secret_ref is None:
        return ""
    variable = endpoint.secret_ref.key
    key = environ.get(variable, "").strip()
    if key and key.isascii() and key.isprintable() and " " not in key:
        return key
    found = "characters that no header can hold" if key else "nothing"
    path = f"spec.models[{name}].endpoint.secretRef.key"
    expected = f"the server's key in environment variable {variable}"
    raise BadInput([Finding("secret-missing", path, found, expected, kind="ModelMapping")])


def _reply(body: Any) -> Reply:
    """A chat completion as a reply. Raises ValueError, LookupError, TypeError or AttributeError when it is none."""
    choice = body["choices"][0]
    usage = body.get("usage") or {}
    text: str = choice["message"]["content"] or ""
    text.encode()  # half of a surrogate pair, which JSON can say, could not be stored
    return Reply(
        text=text,
        finish="length" if choice.get("finish_reason") == "length" else "stop",
        prompt_tokens=int(usage.get("prompt_tokens", 0)),
        output_tokens=int(usage.get("completion_tokens", 0)),
        truncated_tokens=0,
        version=0,
    )


def _retry_after_s(answer: httpx.Response) -> float:
    """Seconds of `Retry-After`, given as a number or a date; 0 when it says nothing."""
    given = answer.headers.get("Retry-After", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
