"""Streamable HTTP of 2026-07-28: each request for itself, against a server that has no handshake."""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import Any

import pytest

from tests.support.waiting import hang, linger, until
from tests.transports.upstream.stage import (
    REVISION,
    Reply,
    Request,
    client,
    hello,
    on_loop,
    server,
    shake_hands,
)

NEWER = "2026-07-28"
META = "io.modelcontextprotocol/"
TOOL = {
    "name": "x",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
}
OPENING = ("GET", "DELETE", "server/discover", "initialize", "notifications/initialized")
BAD_TOOL = {"name": "bad", "inputSchema": {"type": "object", "x-mcp-header": "Root"}}


class Stateless:
    """A server of the per-request era; what it answers to the rest is the test's.

    Args:
        misbehave: Answers what is neither an opening nor a list of tools.
        refusal: The status and the error that `initialize` is answered with.
        capabilities: That it says it has.
    """

    def __init__(self, misbehave: Any, refusal: tuple[str, int] = ("400 Bad Request", -32020), **has: Any) -> None:
        self.seen: list[Request] = []
        self.misbehave = misbehave
        self.refusal = refusal
        self.has = has or {"tools": {}}

    async def __call__(self, request: Request, reply: Reply) -> None:
        self.seen.append(request)
        if request.rpc == "initialize":
            status, code = self.refusal
            error = {"code": code, "message": "no"}
            await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, status=status)
        elif request.rpc == "server/discover":
            discovered = {"supportedVersions": [NEWER], "capabilities": self.has, "ttlMs": 0, "cacheScope": "private"}
            await reply.result(request, {"resultType": "complete", **discovered})
        elif request.rpc == "tools/list":
            listed = {"tools": [TOOL, BAD_TOOL], "ttlMs": 0, "cacheScope": "private"}
            await reply.result(request, {"resultType": "complete", **listed})
        else:
            await self.misbehave(request, reply)

    def posts(self, method: str) -> list[Request]:
        return [request for request in self.seen if request.rpc == method]


async def answer(request: Request, reply: Reply) -> None:
    await reply.result(request, {"resultType": "complete", "content": []})


@pytest.mark.parametrize(
    "refusal", [("400 Bad Request", -32020), ("400 Bad Request", -32602), ("404 Not Found", -32601)]
)
@on_loop
async def test_a_server_that_refuses_initialize_is_asked_what_it_is(refusal: tuple[str, int]) -> None:
    stateless = Stateless(answer, refusal)
    if refusal[1] == -32602:
        stateless.refusal = ("400 Bad Request", -32022)
    async with server(stateless) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/call", name="x")
    assert {request.method for request in stateless.seen} == {"POST"}
    assert not any("mcp-session-id" in request.headers for request in stateless.seen)


@on_loop
async def test_the_headers_repeat_the_body() -> None:
    stateless = Stateless(answer)
    async with server(stateless) as url, client(url) as peer:
        await peer.ask("tools/call", name="x", arguments={"city": "Zürich"})
    assert [request.rpc for request in stateless.seen][2:] == ["tools/list", "tools/call"]
    [call] = stateless.posts("tools/call")
    encoded = base64.b64encode("Zürich".encode()).decode()
    assert call.headers["mcp-protocol-version"] == call.frame["params"]["_meta"][META + "protocolVersion"] == NEWER
    assert (call.headers["mcp-method"], call.headers["mcp-name"]) == ("tools/call", "x")
    assert call.headers["mcp-param-city"] == f"=?base64?{encoded}?="
    assert call.headers["accept"] == "application/json, text/event-stream"


@on_loop
async def test_a_tool_with_an_invalid_annotation_is_not_offered() -> None:
    async with server(Stateless(answer)) as url, client(url) as peer:
        listed = await peer.ask("tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["x"]


@on_loop
async def test_headers_made_from_an_outdated_list_are_made_again() -> None:
    calls = 0

    async def mismatch(request: Request, reply: Reply) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            await answer(request, reply)
            return
        error = {"code": -32020, "message": "Header mismatch"}
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error}, status="400 Bad Request")

    stateless = Stateless(mismatch)
    async with server(stateless) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/call", name="x")
    assert [len(stateless.posts(method)) for method in ("tools/list", "tools/call")] == [2, 2]


@pytest.mark.parametrize("mismatches", [1, 2])
@on_loop
async def test_a_client_without_a_session_is_not_told_of_our_headers(mismatches: int) -> None:
    async def mismatch(request: Request, reply: Reply) -> None:
        if len(stateless.posts("tools/call")) > mismatches:
            await answer(request, reply)
            return
        error = {"code": -32020, "message": "Header mismatch"}
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error}, status="400 Bad Request")

    stateless = Stateless(mismatch)
    meta = {META + "protocolVersion": NEWER, META + "clientCapabilities": {}}
    async with server(stateless) as url, client(url, opened=False) as peer:
        told = await peer.ask("tools/call", name="x", arguments={"city": "Oslo"}, _meta=meta)
        listed = await peer.ask("tools/list", _meta=meta)
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["x"]
    assert all(call.headers["mcp-param-city"] == "Oslo" for call in stateless.posts("tools/call"))
    assert [len(stateless.posts(method)) for method in ("tools/list", "tools/call")] == [3, 2]
    assert told.get("error", {}).get("code") == (None if mismatches == 1 else -32603)


@pytest.mark.parametrize(
    ("status", "code"), [("404 Not Found", -32601), ("400 Bad Request", -32602), ("500 Oh", -32603)]
)
@on_loop
async def test_an_error_with_a_status_of_its_own_is_an_answer(status: str, code: int) -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        error = {"code": code, "message": "so it is", "data": {"at": "x"}}
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error}, status=status)

    async with server(Stateless(refuse)) as url, client(url) as peer:
        answered = await peer.ask("prompts/get", name="x")
    assert answered["error"] == {"code": code, "message": "so it is", "data": {"at": "x"}}


@on_loop
async def test_a_status_that_carries_no_error_is_one_of_the_transport() -> None:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.status("503 Service Unavailable")

    async with server(Stateless(refuse)) as url, client(url) as peer:
        answered = await peer.ask("prompts/get", name="x")
        assert "result" in await peer.ask("ping")
    assert answered["error"]["code"] == -32000
    assert "503" in answered["error"]["message"]


@on_loop
async def test_a_stream_that_breaks_is_a_call_that_failed() -> None:
    async def cut(request: Request, reply: Reply) -> None:
        await reply.stream()
        note = {"level": "info", "data": 1}
        await reply.event({"jsonrpc": "2.0", "method": "notifications/message", "params": note}, event_id="7")
        reply.cut()

    stateless = Stateless(cut)
    async with server(stateless) as url, client(url) as peer:
        answered = await peer.ask("prompts/get", name="x")
    assert "cannot be resumed" in answered["error"]["message"]
    assert {request.method for request in stateless.seen} == {"POST"}


@on_loop
async def test_what_comes_on_a_stream_before_the_answer_reaches_the_client() -> None:
    async def talk(request: Request, reply: Reply) -> None:
        key = request.frame["id"]
        await reply.stream()
        progress = {"progressToken": request.frame["params"]["_meta"]["progressToken"], "progress": 1}
        await reply.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
        await reply.event({"jsonrpc": "2.0", "id": key, "result": {"resultType": "complete", "messages": []}})
        reply.cut()

    async with server(Stateless(talk)) as url, client(url) as peer:
        answered = await peer.ask("prompts/get", name="x", _meta={"progressToken": "t"})
    assert answered["result"] == {"messages": []}
    assert [(frame["method"], frame["params"]["progressToken"]) for frame in peer.others] == [
        ("notifications/progress", "t")
    ]


def has_hung_up(reply: Reply) -> bool:
    """Whether the client has closed the connection, on which nothing has been said."""
    with socket.fromfd(reply.writer.get_extra_info("socket").fileno(), socket.AF_INET, socket.SOCK_STREAM) as peer:
        try:
            return peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True


@on_loop
async def test_cancelling_before_there_is_an_answer_closes_the_connection() -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def wait(request: Request, reply: Reply) -> None:
        if request.frame["params"].get("name") != "x":
            await reply.result(request, {"resultType": "complete", "messages": []})
            return
        begun.set()
        await until(lambda: has_hung_up(reply))
        closed.set()

    stateless = Stateless(wait)
    async with server(stateless) as url, client(url) as peer:
        assert "result" in await peer.ask("prompts/get", name="y")
        key = peer.start("prompts/get", name="x")
        async with asyncio.timeout(20):
            await begun.wait()
            peer.notify("notifications/cancelled", requestId=key)
            await closed.wait()
        assert "result" in await peer.ask("prompts/get", name="y")
        assert key not in peer.answers


@on_loop
async def test_cancelling_closes_the_stream_and_says_nothing() -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def wait(request: Request, reply: Reply) -> None:
        await reply.stream()
        begun.set()
        try:
            while True:
                await reply.raw(b":\n\n")
                await linger(0.01)
        except ConnectionError:
            closed.set()
            raise

    stateless = Stateless(wait)
    async with server(stateless) as url, client(url) as peer:
        key = peer.start("prompts/get", name="x")
        async with asyncio.timeout(20):
            await begun.wait()
            peer.notify("notifications/cancelled", requestId=key)
            await closed.wait()
        assert "result" in await peer.ask("ping")
        assert key not in peer.answers
    assert not stateless.posts("notifications/cancelled")


@on_loop
async def test_requests_that_are_cancelled_at_once_make_room_for_others() -> None:
    async with server(Stateless(answer)) as url, client(url, open_requests=2) as peer:
        assert "result" in await peer.ask("prompts/get", name="x")
        write = peer.write
        for _ in range(5):
            together: list[bytes] = []
            peer.write = together.append
            peer.notify("notifications/cancelled", requestId=peer.start("prompts/get", name="x"))
            write(b"".join(together))
        peer.write = write
        assert "result" in await peer.ask("prompts/get", name="x")


@on_loop
async def test_a_stream_of_notices_outlives_the_patience_for_answers() -> None:
    told = asyncio.Event()

    async def listen(request: Request, reply: Reply) -> None:
        key = request.frame["id"]
        tag = {META + "subscriptionId": key}
        await reply.stream()
        granted = {"_meta": tag, "notifications": request.frame["params"]["notifications"]}
        await reply.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": granted})
        await linger(0.4)
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": tag}}
        await reply.event(changed)
        told.set()
        await hang()

    stateless = Stateless(listen, tools={"listChanged": True})
    async with server(stateless) as url, client(url, idle_timeout_s=0.1) as peer:
        await peer.until(lambda: bool(peer.others))
    assert peer.others == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    assert len(stateless.posts("subscriptions/listen")) == 1


@on_loop
async def test_a_server_with_a_handshake_is_posted_initialize_alone_first() -> None:
    seen: list[str | None] = []

    async def serve(request: Request, reply: Reply) -> None:
        seen.append(request.rpc)
        error = {"code": -32602, "message": "clientInfo is odd"}
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": error}, status="400 Bad Request")

    async with server(serve) as url, client(url, opened=False) as peer:
        answered = await peer.initialize(REVISION)
    assert answered["error"]["message"] == "clientInfo is odd"
    assert seen == ["initialize"]


@on_loop
async def test_a_session_that_is_opened_for_requests_is_renewed_once_and_asked_again_for_what_stands() -> None:
    seen: list[tuple[str, str]] = []
    sessions = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal sessions
        session = request.headers.get("mcp-session-id", "")
        seen.append((request.rpc or request.method, session))
        if request.rpc == "initialize":
            sessions += 1
            has = {"resources": {"subscribe": True}}
            opened = {**hello(), "capabilities": has}
            await reply.result(request, opened, f"Mcp-Session-Id: s{sessions}")
        elif request.rpc == "tools/call" and session == "s1":
            await reply.status("404 Not Found")
        elif not await shake_hands(request, reply):
            await reply.result(request, {"content": []})

    meta = {META + "protocolVersion": NEWER, META + "clientCapabilities": {}}
    async with server(serve) as url, client(url, opened=False) as peer:
        peer.start("subscriptions/listen", notifications={"resourceSubscriptions": ["file:///a"]}, _meta=meta)
        await peer.until(lambda: any(name == "resources/subscribe" for name, _ in seen))
        assert "result" in await peer.ask("tools/call", name="x", _meta=meta)
    posts = [one for one in seen if one[0] not in OPENING]
    assert posts == [(name, key) for key in ("s1", "s2") for name in ("resources/subscribe", "tools/call")]
    assert sessions == 2
