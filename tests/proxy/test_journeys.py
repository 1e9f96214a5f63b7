"""How far a warm call goes: the modules that it passes, the functions that are called, and how often it comes back.

A reader of the code has to visit all these modules; each return is a page turned back. Journeys over HTTP are also by a
connection that has carried such a call before, as clients keep theirs. A bound may only fall: who needs one more module
or call on the way takes another out. Functions that a test calls itself do not count, and neither does what the call
before has loaded or remembered, nor what is generated.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import pytest

from dragoman.core.commands import Side
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.signin.grants import sign_in
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.proxy import per_request, test_per_request_asked
from tests.proxy.conversation import (
    Step,
    client,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    result,
    server,
)
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, elicit
from tests.proxy.test_per_request_questions import CAN, COLOR, RED, Q
from tests.signin import web
from tests.transports.http import stage as front
from tests.transports.http.stage import on_loop, serving, within
from tests.transports.http.test_per_request import call, posts
from tests.transports.upstream.stage import Reply, Request, shake_hands
from tests.transports.upstream.stage import server as serving_requests
from tests.transports.upstream.test_per_request import Stateless, answer

OLD, NEW = "2024-11-05", "2025-11-25"
SPEAKS = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "echo"}


class Way(NamedTuple):
    """How far a journey goes.

    Attributes:
        modules: How many it passes.
        calls: How often a function in them is called.
        returns: How often it comes to a module where it has been before, from another one.
    """

    modules: int
    calls: int
    returns: int


MOST = {
    "equal revisions over stdio": Way(13, 47, 18),
    "two revisions over stdio": Way(14, 57, 21),
    "equal revisions over HTTP": Way(37, 178, 84),
    "no sessions over HTTP": Way(44, 238, 118),
    "equal revisions over a connection that is kept": Way(31, 99, 38),
    "no sessions over a connection that is kept": Way(37, 138, 64),
    "an answer as an event over a connection that is kept": Way(32, 118, 45),
    "a stateless client and a server with sessions": Way(20, 74, 27),
    "a stateless client and a server with sessions that asks": Way(35, 258, 120),
    "a client with a session and a stateless server": Way(21, 74, 31),
    "a client with a session and a stateless server that asks": Way(24, 194, 97),
    "a sign-in": Way(5, 116, 41),
}

_EXPRESSIONS = frozenset({"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"})
"""What some versions of Python call, and others have in their function."""


class Journey:
    """Notes the functions of ours that are called, by their modules."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    @property
    def way(self) -> Way:
        """How far it went."""
        came = [name for before, name in zip(["", *self.passed], self.passed, strict=False) if before != name]
        modules = set(self.passed)
        return Way(len(modules), len(self.passed), len(came) - len(modules))

    def __enter__(self) -> Journey:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        is_function = event == "call" and frame.f_code.co_name not in _EXPRESSIONS
        if is_function and _is_ours(frame) and (frame.f_back is None or not _is_of_a_test(frame.f_back)):
            self.passed.append(frame.f_globals["__name__"])

    def begins(self, frame: Any) -> Step:
        """Say this, and note from then on what it passes."""

        def say() -> Any:
            self.__enter__()
            return frame

        return client(say)

    def ends(self) -> Step:
        """Hear the answer, which is the end."""

        def hear(_: Any) -> bool:
            self.__exit__()
            return True

        return expect_to_client(hear)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("dragoman.")


def _is_of_a_test(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("tests.")


def over_stdio(client_revision: str, server_revision: str) -> Journey:
    journey = Journey()
    answered = result(2, {"tools": [{"name": "x", "title": "X", "inputSchema": {"type": "object"}}]})
    listed = [expect_to_server(lambda frame: frame["method"] == "tools/list"), server(answered)]
    hold(
        [
            *opening(client_revision, server_revision, server_has=["tools"]),
            *(client(request(2, "tools/list")), *listed, expect_to_client(lambda frame: frame["id"] == 2)),
            *(journey.begins(request(2, "tools/list")), *listed, journey.ends()),
        ]
    )
    return journey


def stateless_client_calls() -> Journey:
    journey = Journey()
    called = expect_to_server(lambda frame: frame["method"] == "tools/call")
    hold(
        [
            *test_per_request_asked.begin(),
            *(server(result(1, DONE)), expect_to_client(lambda frame: frame["id"] == 1)),
            *(journey.begins(test_per_request_asked.call("second")), called, server(result(2, DONE)), journey.ends()),
        ]
    )
    return journey


def stateless_server_is_called() -> Journey:
    journey = Journey()

    def steps(number: int, say: Callable[[Any], Step], ends: Step) -> list[Step]:
        called = expect_to_server(lambda frame: frame["method"] == "tools/call")
        done = server(per_request.complete(number, content=[]))
        return [say(request(f"a{number}", "tools/call", name="x")), called, done, ends]

    warm = steps(1, client, expect_to_client(lambda frame: frame["id"] == "a1"))
    hold([*per_request.opening(NEW, CAN), *warm, *steps(2, journey.begins, journey.ends())])
    return journey


def somebody_signs_in() -> Journey:
    internet = web.whole()
    with Journey() as journey:
        internet.run(sign_in(web.occasion(), {}))
    return journey


def stateless_client_is_asked() -> Journey:
    journey, asked = Journey(), {}

    def is_asked(frame: Any) -> bool:
        asked.update(frame["result"])
        return True

    def retry(key: Any) -> Any:
        answers = dict.fromkeys(asked["inputRequests"], ACCEPTED)
        return test_per_request_asked.call(key, inputResponses=answers, requestState=asked["requestState"])

    def rest(number: int, ends: Step) -> list[Step]:
        return [
            server(elicit(f"q{number}")),
            expect_to_client(is_asked),
            client(lambda: retry(f"again {number}")),
            expect_to_server(result(f"q{number}", ACCEPTED)),
            server(result(number, DONE)),
            ends,
        ]

    warm = rest(1, expect_to_client(lambda frame: frame["id"] == "again 1"))
    called = expect_to_server(lambda frame: frame["method"] == "tools/call")
    journeying = [journey.begins(test_per_request_asked.call("second")), called, *rest(2, journey.ends())]
    hold([*test_per_request_asked.begin(), *warm, *journeying])
    return journey


def stateless_server_asks() -> Journey:
    journey = Journey()

    def steps(number: int, say: Callable[[Any], Step], ends: Step) -> list[Step]:
        return [
            say(request("a", "tools/call", name="x")),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
            server(per_request.asks(2 * number - 1, "s1", color=COLOR)),
            expect_to_client(lambda frame: frame["id"] == f"{Q}{number}"),
            client(result(f"{Q}{number}", RED)),
            expect_to_server(lambda frame: frame["params"]["requestState"] == "s1"),
            server(per_request.complete(2 * number, content=[])),
            ends,
        ]

    warm = steps(1, client, expect_to_client(lambda frame: frame["id"] == "a"))
    hold([*per_request.opening(NEW, CAN), *warm, *steps(2, journey.begins, journey.ends())])
    return journey


class Kept:
    """A connection that a client keeps for its next call."""

    def __init__(self, stage: front.Stage, **headers: str) -> None:
        self._port = stage.port
        head = {"host": "localhost", "content-type": "application/json", **stage.headers(headers)}
        self._head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items())

    async def __aenter__(self) -> Kept:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def post(self, frame: Any) -> None:
        body = json.dumps(frame)
        self._writer.write(f"{self._head}content-length: {len(body)}\r\n\r\n{body}".encode())
        head = await within(self._reader.readuntil(b"\r\n\r\n"))
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        await within(self._reader.readexactly(length))


async def walk(journeys: list[Journey], post: Callable[[Any], Awaitable[Any]], asked: Callable[[int], Any]) -> None:
    for number, journey in enumerate(journeys, 3):
        with journey:
            await post(asked(number))


async def answer_by_event(said: Request, reply: Reply) -> None:
    """As servers of the SDKs do, if nobody tells them otherwise."""
    frame = {"jsonrpc": "2.0", "id": said.frame["id"], "result": {"content": []}}
    event = f"event: message\r\ndata: {json.dumps(frame)}\r\n\r\n"
    await reply.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    await reply.raw(f"{len(event):x}\r\n{event}\r\n0\r\n\r\n".encode())


@on_loop
async def sessions_over_http(journeys: list[Journey], kept: bool = False, by_event: bool = False) -> None:
    async def serve(said: Request, reply: Reply) -> None:
        if await shake_hands(said, reply):
            return
        if by_event:
            await answer_by_event(said, reply)
        else:
            await reply.result(said, {"content": []})

    async with serving_requests(serve) as url, serving() as stage:
        stage.make = lambda transport: Proxy(ProxyConfig(), transport, lambda: open_upstream(UpstreamConfig(url)))
        opened = await stage.post(front.initialize(NEW))
        stage.session, stage.revision = opened.headers["mcp-session-id"], NEW
        await stage.post(notification("notifications/initialized"))
        await (await within(stage.post(front.call(2)))).frame()
        if kept:
            async with Kept(stage) as connection:
                await walk([Journey(), Journey()], connection.post, front.call)
                await walk(journeys, connection.post, front.call)
            return
        for journey in journeys:
            with journey:
                await (await within(stage.post(front.call(3)))).frame()


@on_loop
async def requests_over_http(journeys: list[Journey], kept: bool = False) -> None:
    async with serving_requests(Stateless(answer)) as url, serving() as stage:
        upstream = UpstreamConfig(url)
        stage.make = lambda transport: Proxy(ProxyConfig(), transport, lambda: open_upstream(upstream), principal="")
        await (await within(posts(stage, call(2)))).frame()
        if kept:
            async with Kept(stage, **SPEAKS) as connection:
                await walk([Journey(), Journey()], connection.post, call)
                await walk(journeys, connection.post, call)
            return
        for journey in journeys:
            with journey:
                await (await within(posts(stage, call(3)))).frame()


def shortest(walk_it: Callable[[], Journey]) -> Journey:
    """The shortest of several: on a slow machine a timer goes off, and a random state may have long numbers in it."""
    return min((walk_it() for _ in range(4)), key=lambda journey: journey.way)


def over_http(hold_it: Callable[[list[Journey]], None]) -> Journey:
    """The shortest of several: a timer may go off during any of them."""
    journeys = [Journey() for _ in range(4)]
    hold_it(journeys)
    return min(journeys, key=lambda journey: journey.way)


JOURNEYS: dict[str, Callable[[], Journey]] = {
    "equal revisions over stdio": lambda: over_stdio(NEW, NEW),
    "two revisions over stdio": lambda: over_stdio(OLD, NEW),
    "equal revisions over HTTP": lambda: over_http(sessions_over_http),
    "no sessions over HTTP": lambda: over_http(requests_over_http),
    "equal revisions over a connection that is kept": lambda: over_http(partial(sessions_over_http, kept=True)),
    "no sessions over a connection that is kept": lambda: over_http(partial(requests_over_http, kept=True)),
    "an answer as an event over a connection that is kept": lambda: over_http(
        partial(sessions_over_http, kept=True, by_event=True)
    ),
    "a stateless client and a server with sessions": stateless_client_calls,
    "a stateless client and a server with sessions that asks": lambda: shortest(stateless_client_is_asked),
    "a client with a session and a stateless server": stateless_server_is_called,
    "a client with a session and a stateless server that asks": stateless_server_asks,
    "a sign-in": somebody_signs_in,
}


@pytest.mark.parametrize("name", MOST)
def test_a_call_goes_no_further_than_before(name: str) -> None:
    journey = JOURNEYS[name]()
    way, most = journey.way, MOST[name]
    print(f"{name}: {way}", *sorted(set(journey.passed)), sep="\n  ")
    for what, found, bound in zip(Way._fields, way, most, strict=True):
        assert found <= bound, f"{what}: more on the way, so take as much out"
        assert found > bound * 0.95 - 1, f"{what}: it has become shorter, so lower the bound in this file"


def test_what_a_journey_notes() -> None:
    with Journey() as journey:
        assert Side.CLIENT.value == "client"
        hold([])
    assert "dragoman.proxy" in journey.passed
    assert not any(name.startswith("tests.") for name in journey.passed)


def test_how_far_a_journey_was() -> None:
    journey = Journey()
    journey.passed = ["a", "a", "b", "c", "b", "a", "a"]
    assert journey.way == Way(modules=3, calls=7, returns=2)
