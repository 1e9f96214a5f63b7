"""Servers that drop sessions: a new one in its place, and what it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import TransportError
from tests.support.waiting import linger, until
from tests.transports.upstream.stage import (
    PATIENCE_S,
    Reply,
    Request,
    answer_to,
    call,
    client,
    hello,
    on_loop,
    server,
    shake_hands,
)


@on_loop
async def test_a_dropped_session_is_opened_again_and_the_request_repeated_once() -> None:
    seen: list[str] = []
    sessions = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        seen.append(request.rpc or request.method)
        if request.rpc == "initialize":
            assert "mcp-session-id" not in request.headers
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/list" and request.headers["mcp-session-id"] == "s1":
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            await reply.result(request, {"session": request.headers["mcp-session-id"]})

    async with server(serve) as url, client(url) as peer:
        assert (await peer.ask("tools/list"))["result"] == {"session": "s2"}
    posts = [name for name in seen if name not in ("GET", "DELETE")]
    handshake = ["initialize", "notifications/initialized"]
    assert posts == [*handshake, "tools/list", *handshake, "tools/list"]


@on_loop
async def test_requests_that_meet_the_same_404_share_one_new_session() -> None:
    sessions = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        if request.rpc == "initialize":
            sessions += 1
            await linger(0.05)
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/list" and request.headers["mcp-session-id"] == "s1":
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        answers = await asyncio.gather(*(peer.ask("tools/list") for _ in range(6)))
    assert all("result" in answer for answer in answers)
    assert sessions == 2


@on_loop
async def test_a_session_dropped_at_every_third_request_is_renewed_each_time() -> None:
    sessions = requests = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions, requests
        if request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/list":
            requests += 1
            current = request.headers["mcp-session-id"] == f"s{sessions}"
            if requests % 3 == 0 or not current:
                await reply.status("404 Not Found")
            else:
                await reply.result(request, {})
        else:
            await shake_hands(request, reply)

    async with server(serve) as url, client(url) as peer:
        for _ in range(12):
            assert "result" in await peer.ask("tools/list")
    assert sessions > 3


@on_loop
async def test_a_server_that_drops_every_session_is_an_error() -> None:
    posts = 0

    async def misbehave(request: Request, reply: Reply) -> None:
        nonlocal posts
        posts += 1
        await reply.status("404 Not Found")

    assert "404 Not Found" in (await call(misbehave))["message"]
    assert posts == 2


@on_loop
async def test_a_new_session_of_another_revision_is_refused() -> None:
    opened = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal opened
        if request.rpc == "initialize":
            opened += 1
            await reply.result(request, hello("2025-11-25" if opened == 1 else "2025-06-18"), "Mcp-Session-Id: s")
        elif request.rpc == "tools/call":
            await reply.status("404 Not Found")
        else:
            await shake_hands(request, reply)

    async with server(serve) as url, client(url) as peer:
        message = (await peer.ask("tools/call"))["error"]["message"]
    assert "in a new session it speaks 2025-06-18, not 2025-11-25" in message


@on_loop
async def test_a_new_session_is_asked_again_for_what_the_old_one_remembered() -> None:
    sessions = 0
    heard: dict[str, list[tuple[str, str]]] = {"s1": [], "s2": []}

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        if request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/list" and request.headers["mcp-session-id"] == "s1":
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            params = request.frame.get("params") or {}
            asked = (request.rpc or "", params.get("uri") or params.get("level"))
            heard[request.headers["mcp-session-id"]].append(asked)
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        await peer.ask("logging/setLevel", level="debug")
        await peer.ask("logging/setLevel", level="error")
        for uri in ("a:1", "a:2"):
            await peer.ask("resources/subscribe", uri=uri)
        await peer.ask("resources/unsubscribe", uri="a:1")
        assert "result" in await peer.ask("tools/list")
        assert not peer.others
    assert heard["s2"] == [("logging/setLevel", "error"), ("resources/subscribe", "a:2"), ("tools/list", None)]


@on_loop
async def test_a_stream_of_a_dropped_session_is_not_resumed_in_the_new_one() -> None:
    sessions = 0
    resumed: list[str] = []
    streaming, renewed = asyncio.Event(), asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        if request.method == "GET" and "last-event-id" in request.headers:
            resumed.append(request.headers["mcp-session-id"])
            await reply.status("404 Not Found")
        elif request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/call":
            await reply.stream()
            await reply.event(event_id="e1", retry="10")
            streaming.set()
            await renewed.wait()
            reply.cut()
        elif request.rpc == "tools/list" and request.headers["mcp-session-id"] == "s1":
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        called = peer.start("tools/call", name="x")
        await asyncio.wait_for(streaming.wait(), PATIENCE_S)
        assert "result" in await peer.ask("tools/list")
        renewed.set()
        assert "its session is gone" in (await peer.answer(called))["error"]["message"]
    assert sessions == 2
    assert not resumed


@on_loop
async def test_a_response_to_a_dropped_session_is_not_told_to_the_new_one() -> None:
    sessions = 0
    responses: list[str] = []

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        if request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/call" and request.headers["mcp-session-id"] == "s1":
            await reply.stream()
            await reply.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            await reply.event({"jsonrpc": "2.0", "id": 2, "method": "roots/list"})
            await reply.event(answer_to(request))
            reply.cut()
        elif request.method == "POST" and request.rpc is None:
            responses.append(request.headers["mcp-session-id"])
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        await peer.ask("tools/call", name="x")
        await peer.until(lambda: len(peer.others) == 2)
        for question in peer.others:
            peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {}})
        await until(lambda: sessions >= 2)
        assert "result" in await peer.ask("tools/list")
    assert responses
    assert set(responses) == {"s1"}


QUESTION = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}}


class Forgetful:
    """A server that asks in the middle of each call, and has forgotten the session when it is answered.

    Args:
        on_stream: Whether it asks on the stream of the call, which stays open, or on that of the GET.
        when: At which POST it notices that the session is gone.
        renews: Whether it gives another session.
    """

    def __init__(self, on_stream: bool, when: str, renews: bool = True) -> None:
        self.on_stream, self.when, self.renews = on_stream, when, renews
        self.sessions = 0
        self.open_calls = 0
        self.responses: list[str] = []
        self.answers: list[Any] = []
        self.called = asyncio.Event()

    async def serve(self, request: Request, reply: Reply) -> None:
        session = request.headers.get("mcp-session-id")
        what = "response" if request.body and request.rpc is None else request.rpc
        if what == "response":
            self.responses.append(session or "")
            self.answers.append(request.frame)
        if what == "initialize":
            self.sessions += 1
            if self.sessions > 1 and not self.renews:
                await reply.status("503 Service Unavailable")
            else:
                await reply.result(request, hello(), f"Mcp-Session-Id: s{self.sessions}")
        elif what == self.when and session == "s1":
            await reply.status("404 Not Found")
        elif what == "tools/call":
            await self._ask(reply)
        elif request.method == "GET" and session == "s1" and not self.on_stream:
            await reply.stream()
            await self.called.wait()
            await reply.event(QUESTION)
            await asyncio.Event().wait()
        elif what == "response":
            await reply.status("202 Accepted")
        elif not await shake_hands(request, reply):
            await reply.result(request, {"session": session, "tools": []})

    async def _ask(self, reply: Reply) -> None:
        await reply.stream()
        self.called.set()
        if self.on_stream:
            await reply.event(QUESTION)
        self.open_calls += 1
        try:
            while True:
                await reply.raw(b": still there\r\n\r\n")
                await linger(0.02)
        finally:
            self.open_calls -= 1


@pytest.mark.parametrize("on_stream", [True, False])
@pytest.mark.parametrize("when", ["response", "tools/list"])
@on_loop
async def test_a_call_whose_answer_belongs_to_a_dropped_session_fails_at_once(on_stream: bool, when: str) -> None:
    """Whether the server says so when it is answered, or said so before; its stream would stay open."""
    forgetful = Forgetful(on_stream, when)
    async with server(forgetful.serve) as url, client(url) as peer:
        called = peer.start("tools/call", name="x")
        await peer.until(lambda: len(peer.others) == 1)
        if when == "tools/list":
            assert (await peer.ask("tools/list"))["result"]["session"] == "s2"
        peer.send({"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}})
        error = (await peer.answer(called))["error"]
        assert error["code"] == -32000
        assert "its session is gone" in error["message"]
        await until(lambda: forgetful.open_calls == 0)
        assert (await peer.ask("tools/list"))["result"]["session"] == "s2"
    assert forgetful.responses == (["s1"] if when == "response" else [])


@on_loop
async def test_an_answer_to_a_dropped_session_does_not_answer_what_the_next_one_asks() -> None:
    """Both of them ask under one id."""
    forgetful = Forgetful(on_stream=True, when="tools/list")
    async with server(forgetful.serve) as url, client(url) as peer:
        first = peer.start("tools/call", name="x")
        await peer.until(lambda: len(peer.others) == 1)
        assert (await peer.ask("tools/list"))["result"]["session"] == "s2"
        peer.start("tools/call", name="x")
        await peer.until(lambda: len(peer.others) == 2)
        asked = peer.others[1]["id"]
        peer.send({"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}})
        assert "its session is gone" in (await peer.answer(first))["error"]["message"]
        peer.send({"jsonrpc": "2.0", "id": asked, "result": {"action": "decline"}})
        await until(lambda: forgetful.answers)
    assert forgetful.answers == [{"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}}]


@on_loop
async def test_a_call_fails_at_once_while_there_is_no_session_for_its_answer() -> None:
    forgetful = Forgetful(True, "tools/list", renews=False)
    async with server(forgetful.serve) as url, client(url) as peer:
        called = peer.start("tools/call", name="x")
        await peer.until(lambda: len(peer.others) == 1)
        assert "error" in await peer.ask("tools/list")
        peer.send({"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}})
        assert "its session is gone" in (await peer.answer(called))["error"]["message"]
    assert not forgetful.responses


@on_loop
async def test_what_waits_for_its_turn_when_the_session_goes_is_sent_in_the_new_one_in_order() -> None:
    sessions = 0
    heard: list[tuple[str, str]] = []
    held = asyncio.Event()

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        session = request.headers.get("mcp-session-id", "")
        if request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "notifications/x":
            await held.wait()
            await reply.status("404 Not Found" if session == "s1" else "202 Accepted")
        elif not await shake_hands(request, reply):
            heard.append((session, request.frame["params"]["n"]))
            await (reply.status("404 Not Found") if session == "s1" else reply.result(request, {}))

    async with server(serve) as url, client(url, open_requests=1) as peer:
        peer.notify("notifications/x")
        ids = [peer.start("tools/list", n=number) for number in range(4)]
        for request_id in ids:
            assert "result" in await peer.answer(request_id)
        held.set()
        assert "result" in await peer.ask("tools/list", n=4)
    assert heard == [("s1", 0), *(("s2", number) for number in range(5))]
    assert sessions == 2


@on_loop
async def test_a_server_that_cannot_open_a_new_session_now_is_asked_again_later() -> None:
    attempts = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal attempts
        if request.rpc == "initialize":
            attempts += 1
            if attempts == 2:
                await reply.status("503 Service Unavailable")
            else:
                await reply.result(request, hello(), f"Mcp-Session-Id: s{attempts}")
        elif request.rpc == "tools/list" and request.headers["mcp-session-id"] == "s1":
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        assert "503 Service Unavailable" in (await peer.ask("tools/list"))["error"]["message"]
        assert "result" in await peer.ask("tools/list")
    assert attempts == 3


@on_loop
async def test_a_get_stream_that_finds_the_session_gone_has_it_opened_again() -> None:
    sessions = 0
    streams: list[str] = []

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        session = request.headers.get("mcp-session-id", "")
        if request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.method == "GET" and session == "s1" and streams:
            await reply.status("404 Not Found")
        elif request.method == "GET":
            streams.append(session)
            await reply.stream()
            await reply.event(event_id="e1", retry="10")
            if session == "s1":
                reply.cut()
            else:
                await reply.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                await asyncio.Event().wait()
        else:
            await shake_hands(request, reply)

    async with server(serve) as url, client(url) as peer:
        await peer.until(lambda: any(other.get("method") for other in peer.others))
    assert streams == ["s1", "s2"]
    assert sessions == 2


@on_loop
async def test_a_request_that_waits_behind_a_dropped_handshake_is_answered() -> None:
    """The server drops the session at `initialized`, and does not open another one."""
    attempts = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal attempts
        if request.rpc == "initialize":
            attempts += 1
            if attempts == 1:
                await reply.result(request, hello(), "Mcp-Session-Id: s1")
            else:
                await reply.status("503 Service Unavailable")
        elif request.rpc == "notifications/initialized":
            await linger(0.05)
            await reply.status("404 Not Found")
        else:
            await shake_hands(request, reply)

    async with server(serve) as url, client(url) as peer:
        assert "503 Service Unavailable" in (await peer.ask("tools/list"))["error"]["message"]


@on_loop
async def test_what_a_server_says_about_a_dropped_session_is_not_waited_for_long() -> None:
    sessions = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        if request.rpc == "initialize":
            sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/list" and request.headers["mcp-session-id"] == "s1":
            await reply.head("404 Not Found", "Content-Length: 10")
            await asyncio.Event().wait()
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/list")


# Servers that say in another way that they do not know a session


TOLD = {"code": -32000, "message": "Bad Request: No valid session ID provided"}


async def with_400(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "error": TOLD, "id": None}, status="400 Bad Request")


async def with_text(request: Request, reply: Reply) -> None:
    await reply.status("400 Bad Request", body=b"Bad Request: No valid session ID provided")


async def uninitialized(request: Request, reply: Reply) -> None:
    error = {"code": -32000, "message": "Bad Request: Server not initialized"}
    await reply.json({"jsonrpc": "2.0", "error": error, "id": None}, status="400 Bad Request")


async def with_401(request: Request, reply: Reply) -> None:
    await reply.json({"error": "Invalid session"}, status="401 Unauthorized")


async def with_200(request: Request, reply: Reply) -> None:
    error = {"code": -32600, "message": "Session not found"}
    await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error})


async def on_a_stream(request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.event({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}})
    reply.cut()


FORGETFUL = [with_400, with_text, uninitialized, with_401, with_200, on_a_stream]


class Restarted:
    """A server that answers in one way each request of its first session but its first one, and knows all others."""

    def __init__(self, forget: Any, always: bool = False) -> None:
        self.forget = forget
        self.always = always
        self.sessions = self.calls = 0

    async def serve(self, request: Request, reply: Reply) -> None:
        session = request.headers.get("mcp-session-id")
        if request.rpc == "initialize":
            self.sessions += 1
            await reply.result(request, hello(), f"Mcp-Session-Id: s{self.sessions}")
        elif request.rpc == "tools/call":
            self.calls += 1
            if (session == "s1" or self.always) and self.calls > 1:
                await self.forget(request, reply)
            else:
                await reply.result(request, {"session": session})
        else:
            await shake_hands(request, reply)


@pytest.mark.parametrize("forget", FORGETFUL)
@on_loop
async def test_a_server_that_says_otherwise_that_it_forgot_the_session_gets_another_one(forget: Any) -> None:
    restarted = Restarted(forget)
    async with server(restarted.serve) as url, client(url) as peer:
        for session in ("s1", "s2", "s2"):
            assert (await peer.ask("tools/call", name="x"))["result"] == {"session": session}
    assert restarted.sessions == 2


@pytest.mark.parametrize("forget", FORGETFUL)
@on_loop
async def test_it_gets_another_one_once_for_a_request(forget: Any) -> None:
    restarted = Restarted(forget, always=True)
    async with server(restarted.serve) as url, client(url) as peer:
        await peer.ask("tools/call", name="x")
        assert "error" in await peer.ask("tools/call", name="x")
    assert (restarted.sessions, restarted.calls) == (2, 3)


@pytest.mark.parametrize("forget", FORGETFUL)
@on_loop
async def test_without_the_rule_it_gets_none(forget: Any) -> None:
    restarted = Restarted(forget)
    async with server(restarted.serve) as url, client(url, renews_sessions=False) as peer:
        await peer.ask("tools/call", name="x")
        assert "error" in await peer.ask("tools/call", name="x")
    assert restarted.sessions == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("400 Bad Request", {"code": -32602, "message": "the argument is missing"}),
        ("403 Forbidden", {"code": -32000, "message": "this session is not allowed to"}),
        ("200 OK", {"code": -32000, "message": "no browser session is open"}),
        ("200 OK", {"code": -32600, "message": "expected method to be a string"}),
    ],
)
@on_loop
async def test_an_answer_that_is_about_something_else_is_passed_on(status: str, error: Any) -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error}, status=status)

    restarted = Restarted(refuse)
    async with server(restarted.serve) as url, client(url) as peer:
        await peer.ask("tools/call", name="x")
        told = (await peer.ask("tools/call", name="x"))["error"]
    assert (told["code"], told["message"], restarted.sessions) == (error["code"], error["message"], 1)


class Nobody:
    """Who would ask a person to sign in."""

    def __init__(self) -> None:
        self.asked = 0

    async def load(self) -> None: ...

    async def leave(self) -> None: ...

    def join(self) -> None: ...

    def authorization(self) -> str:
        return ""

    def has_ended(self) -> bool:
        return False

    async def refresh_ended(self, headers: Any, config: Any) -> None: ...

    def takes(self, challenge: Any) -> bool:
        return True

    async def renew(self, challenge: Any, config: Any) -> None:
        self.asked += 1
        raise TransportError("the server", "nobody signs in")


@pytest.mark.parametrize(("header", "asked"), [((), 0), (("WWW-Authenticate: Bearer",), 1)])
@on_loop
async def test_nobody_has_to_sign_in_because_of_a_forgotten_session(header: tuple[str, ...], asked: int) -> None:
    async def forget(request: Request, reply: Reply) -> None:
        await reply.json({"error": "Invalid session"}, *header, status="401 Unauthorized")

    restarted, nobody = Restarted(forget), Nobody()
    async with server(restarted.serve) as url, client(url, authority=nobody) as peer:
        await peer.ask("tools/call", name="x")
        await peer.ask("tools/call", name="x")
    assert (nobody.asked, restarted.sessions) == (asked, 2 - asked)


@on_loop
async def test_a_401_without_a_challenge_that_is_not_about_the_session_asks_for_a_sign_in() -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.json({"error": "the token has expired"}, status="401 Unauthorized")

    restarted, nobody = Restarted(refuse), Nobody()
    async with server(restarted.serve) as url, client(url, authority=nobody) as peer:
        await peer.ask("tools/call", name="x")
        assert "nobody signs in" in (await peer.ask("tools/call", name="x"))["error"]["message"]
    assert (nobody.asked, restarted.sessions) == (1, 1)
