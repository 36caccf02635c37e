"""The endpoint group against a real server that misbehaves on request."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import pytest

from unitymas.api.errors import Author, BadInput, Infrastructure
from unitymas.api.mapping import Endpoint
from unitymas.api.ports import ModelGroup
from unitymas.api.records import CallId, Message, Reply, Request, Sampling, Segment
from unitymas.models.engines.endpoint import EndpointGroup

KEY = "sk-very-secret-0123"
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What the server says to one request."""

    status: int = 200
    body: object = None
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    hang_up: bool = False


@dataclass
class Server:
    """A local server that answers from a list, the last answer again and again."""

    port: int
    answers: list[Answer] = field(default_factory=list[Answer])
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str | None] = field(default_factory=list["str | None"])
    started_s: list[float] = field(default_factory=list[float])
    busy: int = 0
    most_busy: int = 0

    def group(self, environ: dict[str, str] | None = None, **fields: object) -> EndpointGroup:
        endpoint = Endpoint.model_validate({"url": f"http://127.0.0.1:{self.port}/v1", "model": "big", **fields})
        return EndpointGroup("judge", endpoint, environ=environ or {}, backoff_s=0.001)


def completion(text: str | None = "four", finish: str = "stop") -> dict[str, object]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}


class Handler(BaseHTTPRequestHandler):
    """Serves one `Server`, kept on the listening server's class."""

    state: Server

    def do_POST(self) -> None:
        state, lock = self.state, LOCK
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            state.started_s.append(time.monotonic())
            state.bodies.append(body)
            state.keys.append(self.headers.get("Authorization"))
            state.busy += 1
            state.most_busy = max(state.most_busy, state.busy)
            answer = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
        time.sleep(answer.delay_s)
        with lock:
            state.busy -= 1
        if answer.hang_up:
            self.close_connection = True
            return
        raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in (*answer.headers, ("Content-Length", str(len(raw)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr."""


LOCK = threading.Lock()


@pytest.fixture
def server() -> Iterator[Server]:
    handler = type("OwnHandler", (Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        handler.state = Server(listening.server_address[1])
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield handler.state
        listening.shutdown()
        thread.join()


def request(call: int = 0, sampling: Sampling | None = None) -> Request:
    messages = (Message("system", (Segment("Judge."),)), Message("user", (Segment("2+2="), Segment("?", True))))
    identity = CallId(step=0, task="t", rollout=0, visit="judge", call=call)
    return Request(identity, ((False, 0),), messages, sampling or Sampling(), seed=2**40 + 7, role="judge")


def asked(group: EndpointGroup, *requests: Request) -> list[Reply]:
    return run(group, lambda: group.generate(requests or (request(),)))


def run(group: EndpointGroup, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    async def to_the_end() -> T:
        try:
            return await work()
        finally:
            await group.close()

    return asyncio.run(to_the_end())


def test_it_is_a_model_group(server: Server) -> None:
    assert isinstance(server.group(), ModelGroup)


def test_a_reply_carries_the_servers_counts_and_version_0(server: Server) -> None:
    server.answers = [Answer(body=completion(finish="length"))]
    assert asked(server.group()) == [Reply("four", "length", 11, 5, truncated_tokens=0, version=0)]


def test_messages_and_sampling_are_sent(server: Server) -> None:
    server.answers = [Answer(body=completion())]
    asked(server.group(), request(sampling=Sampling(max_tokens=9, temperature=0.0, stop=("\n",), top_p=0.9)))
    assert server.bodies == [
        {
            "model": "big",
            "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "2+2=?"}],
            "max_tokens": 9,
            "temperature": 0.0,
            "seed": (2**40 + 7) % 2**31,
            "top_p": 0.9,
            "stop": ["\n"],
        }
    ]


def test_replies_come_in_the_order_of_the_requests(server: Server) -> None:
    server.answers = [Answer(body=completion(), delay_s=0.05), Answer(body=completion(None))]
    first, second = asked(server.group(), request(0), request(1))
    assert sorted([first.text, second.text]) == ["", "four"]


@pytest.mark.parametrize(
    "bad",
    [
        Answer(429, {"error": {"message": "slow down"}}),
        Answer(503, b"<html>busy</html>"),
        Answer(200, b"not json"),
        Answer(200, {"choices": []}),
        Answer(body=completion("half a pair: \ud800")),
        Answer(hang_up=True),
        Answer(body=completion(), delay_s=0.5),
    ],
    ids=["429", "503", "no json", "no choice", "no text", "hangs up", "too late"],
)
def test_a_passing_fault_is_tried_again(server: Server, bad: Answer) -> None:
    server.answers = [bad, bad, Answer(body=completion())]
    assert asked(server.group(timeout="200ms"))[0].text == "four"
    assert len(server.bodies) == 3


def test_a_fault_that_stays_is_infrastructure(server: Server) -> None:
    server.answers = [Answer(500, {"error": "out of memory"})]
    with pytest.raises(Infrastructure, match=r"model judge at .*: 3 attempts failed; the last: status 500: out of mem"):
        asked(server.group(retries=2))
    assert len(server.bodies) == 3


def test_nobody_listening_is_infrastructure() -> None:
    nobody = Server(port=9)
    with pytest.raises(Infrastructure, match="2 attempts failed; the last: ConnectError"):
        asked(nobody.group(retries=1))


def test_a_refused_request_is_the_authors_and_not_tried_again(server: Server) -> None:
    server.answers = [Answer(404, {"error": {"message": "no model big"}})]
    with pytest.raises(Author, match="status 404: no model big"):
        asked(server.group())
    assert len(server.bodies) == 1


def test_retry_after_is_honoured(server: Server) -> None:
    server.answers = [Answer(429, {}, headers=(("Retry-After", "0.2"),)), Answer(body=completion())]
    asked(server.group())
    first, second = server.started_s
    assert second - first >= 0.2


def test_requests_are_spaced_by_the_rate(server: Server) -> None:
    server.answers = [Answer(body=completion())]
    before_s = time.monotonic()
    asked(server.group(requestsPerSecond=20), *map(request, range(4)))
    assert max(server.started_s) - before_s >= 3 / 20


def test_no_more_than_max_concurrency_are_under_way(server: Server) -> None:
    server.answers = [Answer(body=completion(), delay_s=0.02)]
    assert len(asked(server.group(maxConcurrency=2), *map(request, range(8)))) == 8
    assert server.most_busy <= 2


def test_the_key_is_sent_and_shown_nowhere(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers = [Answer(401, {"error": {"message": f"bad key {KEY}"}})]
    group = server.group({"token": f"{KEY}\n"}, secretRef={"name": "judge", "key": "token"})
    with pytest.raises(Author, match=r"bad key \*\*\*") as caught:
        asked(group)
    assert server.keys == [f"Bearer {KEY}"]
    assert KEY not in f"{caught.getrepr(chain=True, style='long')}{group!r}{caplog.text}"


@pytest.mark.parametrize("value", [None, " ", f"{KEY}\n{KEY}", "clé"], ids=["unset", "blank", "two lines", "not ascii"])
def test_a_key_that_cannot_be_sent_is_bad_input(server: Server, value: str | None) -> None:
    environ = {} if value is None else {"token": value}
    with pytest.raises(BadInput) as caught:
        server.group(environ, secretRef={"name": "judge", "key": "token"})
    assert caught.value.findings[0].check == "secret-missing"
    assert KEY not in str(caught.value)
