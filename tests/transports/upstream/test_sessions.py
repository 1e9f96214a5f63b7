"""Servers that drop sessions: a new one in its place, and what it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

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
