"""HTTP+SSE of 2024-11-05, and finding out that a server speaks it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.transports.upstream.config import Kind
from tests.support.waiting import hang, pass_time
from tests.transports.upstream.stage import PATIENCE_S, Client, Reply, Request, client, hello, on_loop, server


class Old:
    """An HTTP+SSE server; everything can be made to go wrong."""

    def __init__(self, endpoint: str = "/messages?session=1", post_to_stream: str = "405 Method Not Allowed") -> None:
        self.endpoint = endpoint
        self.post_to_stream = post_to_stream
        self.status = "202 Accepted"
        self.seen: list[Request] = []
        self.stream: Reply | None = None
        self.asked = asyncio.Event()

    async def __call__(self, request: Request, reply: Reply) -> None:
        self.seen.append(request)
        if request.method == "GET":
            await reply.stream()
            await reply.event(self.endpoint, name="endpoint")
            self.stream = reply
            await hang()
        elif request.path == "/mcp":
            await reply.status(self.post_to_stream)
        else:
            await reply.status(self.status, body=b"Accepted")
            await self.answer(request)

    async def answer(self, request: Request) -> None:
        if self.status[0] != "2" or "id" not in request.frame or "method" not in request.frame:
            return
        if request.rpc == "silence":
            self.asked.set()
            return
        result = hello("2024-11-05") if request.rpc == "initialize" else {"echo": request.rpc}
        await self.say({"jsonrpc": "2.0", "id": request.frame["id"], "result": result})

    async def say(self, frame: Any) -> None:
        assert self.stream is not None
        await self.stream.event(frame, name="message")

    async def stream_raw(self, data: bytes) -> None:
        assert self.stream is not None
        await self.stream.raw(data)


@asynccontextmanager
async def joined(old: Old, **config: Any) -> AsyncIterator[Client]:
    async with server(old) as url, client(url, revision="2024-11-05", **config) as peer:
        yield peer


@on_loop
async def test_a_server_that_refuses_the_post_is_found_to_be_an_old_one() -> None:
    old = Old()
    async with joined(old) as peer:
        assert (await peer.ask("tools/list"))["result"] == {"echo": "tools/list"}
    assert [(r.method, r.path) for r in old.seen[:3]] == [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("POST", "/messages?session=1"),
    ]


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "405 Method Not Allowed", "415 Unsupported"])
@on_loop
async def test_these_statuses_are_evidence_of_an_old_server(status: str) -> None:
    async with joined(Old(post_to_stream=status)) as peer:
        assert "result" in await peer.ask("tools/list")


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "408 Timeout", "429 Too Many", "500 Oops"])
@on_loop
async def test_these_statuses_are_evidence_of_nothing(status: str) -> None:
    old = Old(post_to_stream=status)
    async with server(old) as url, client(url, opened=False) as peer:
        assert status[:3] in (await peer.initialize())["error"]["message"]
    assert [request.method for request in old.seen] == ["POST"]


@on_loop
async def test_a_400_with_a_json_rpc_error_is_the_answer() -> None:
    methods: list[str] = []

    async def serve(request: Request, reply: Reply) -> None:
        methods.append(request.method)
        error = {"code": -32600, "message": "not so"}
        await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, status="400 Bad Request")

    async with server(serve) as url, client(url, opened=False) as peer:
        assert (await peer.initialize())["error"] == {
            "code": -32600,
            "message": "not so",
            "data": {"httpStatus": 400},
        }
    assert methods == ["POST"]


@on_loop
async def test_a_server_that_is_neither_is_told_apart_from_one_that_is_down() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        await reply.status("404 Not Found", body=b"nothing here")

    async with server(serve) as url, client(url, opened=False) as peer:
        message = (await peer.initialize())["error"]["message"]
    assert message == (f"{url} is not an MCP server: to POST and GET it answered 404 Not Found: nothing here")


@on_loop
async def test_a_get_stream_without_endpoint_is_no_old_server() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if request.method == "POST":
            await reply.status("405 Method Not Allowed")
        else:
            await reply.stream()
            await hang()

    async with server(serve) as url, client(url, opened=False, connect_timeout_s=0.2) as peer:
        assert "no endpoint event came in time" in (await peer.initialize())["error"]["message"]


@on_loop
async def test_an_old_server_can_be_named_as_one() -> None:
    old = Old()
    async with joined(old, kind=Kind.SSE) as peer:
        assert "result" in await peer.ask("tools/list")
    assert old.seen[0].method == "GET"


@on_loop
async def test_a_streamable_server_can_be_named_as_one() -> None:
    async with server(Old()) as url, client(url, opened=False, kind=Kind.STREAMABLE_HTTP) as peer:
        assert "405 Method Not Allowed" in (await peer.initialize())["error"]["message"]


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:9/messages", "//evil.example/x", "file:///etc/passwd", "http://["]
)
@on_loop
async def test_an_endpoint_elsewhere_is_refused(endpoint: str) -> None:
    old = Old(endpoint)
    async with server(old) as url, client(url, opened=False) as peer:
        message = (await peer.initialize())["error"]["message"]
    assert "its endpoint" in message
    assert len(old.seen) == 2


@on_loop
async def test_an_absolute_endpoint_of_the_same_origin_is_taken() -> None:
    old = Old()
    async with server(old) as url:
        old.endpoint = url.replace("/mcp", "/else/where")
        async with client(url, revision="2024-11-05") as peer:
            assert "result" in await peer.ask("tools/list")
    assert old.seen[-1].path == "/else/where"


@on_loop
async def test_the_server_speaks_unasked() -> None:
    old = Old()
    async with joined(old) as peer:
        await old.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await peer.until(lambda: bool(peer.others))


@on_loop
async def test_the_user_s_headers_go_with_the_stream_and_with_posts() -> None:
    old = Old()
    async with joined(old, headers=(("X-Key", "k"),)) as peer:
        await peer.ask("tools/list")
    assert {request.headers.get("x-key") for request in old.seen} == {"k"}


@on_loop
async def test_a_post_that_is_refused_fails_its_request() -> None:
    old = Old()
    async with joined(old) as peer:
        old.status = "503 Service Unavailable"
        assert "503 Service Unavailable" in (await peer.ask("tools/list"))["error"]["message"]


@on_loop
async def test_a_stream_that_ends_ends_the_session() -> None:
    old = Old()
    async with joined(old) as peer:
        asked_id = peer.start("silence")
        await asyncio.wait_for(old.asked.wait(), PATIENCE_S)
        assert old.stream is not None
        old.stream.cut()
        assert "it closed the stream" in (await peer.answer(asked_id))["error"]["message"]


@on_loop
async def test_a_server_that_accepts_and_never_answers_times_out() -> None:
    async with joined(Old(), idle_timeout_s=0.3) as peer:
        assert "nothing came from it for 0.3 s" in (await peer.ask("silence"))["error"]["message"]
        assert "result" in await peer.ask("tools/list")


@pytest.mark.parametrize("withdraws", [False, True])
def test_a_server_that_waits_for_its_client_may_be_silent(withdraws: bool) -> None:
    @on_loop
    async def run() -> None:
        old = Old()
        async with joined(old, idle_timeout_s=0.3) as peer:
            asked = peer.start("silence")
            await asyncio.wait_for(old.asked.wait(), PATIENCE_S)
            await old.say({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
            await peer.until(lambda: any(frame.get("id") == "q" for frame in peer.others))
            await pass_time(0.8)
            assert asked not in peer.answers
            if withdraws:
                await old.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}})
            else:
                peer.send({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}})
            assert "nothing came from it for 0.3 s" in (await peer.answer(asked))["error"]["message"]

    run()


@on_loop
async def test_an_answer_that_is_too_long_fails_its_request() -> None:
    class Long(Old):
        async def answer(self, request: Request) -> None:
            if request.rpc == "tools/call":
                await self.say({"jsonrpc": "2.0", "id": request.frame["id"], "result": {"x": "y" * 5000}})
            else:
                await super().answer(request)

    async with joined(Long(), limit_bytes=2000) as peer:
        assert "larger than the limit of 2000 bytes" in (await peer.ask("tools/call"))["error"]["message"]
        assert "result" in await peer.ask("tools/list")


@on_loop
async def test_garbage_on_the_stream_hurts_nobody() -> None:
    old = Old()
    async with joined(old) as peer:
        await old.say("no json")
        await old.say(json.dumps([1, 2]))
        await old.say({"jsonrpc": "2.0", "id": "nobody", "result": {}})
        assert "result" in await peer.ask("tools/list")


@on_loop
async def test_half_an_answer_on_the_stream_fails_the_request_once() -> None:
    old = Old()
    async with joined(old, idle_timeout_s=0.3) as peer:
        asked = peer.start("silence")
        await asyncio.wait_for(old.asked.wait(), 5)
        await old.stream_raw(b'data: {"jsonrpc":"2.0","id":%d,"result":{"a":{}\n\n' % asked)
        assert "is not one whole JSON object" in (await peer.answer(asked))["error"]["message"]
        await pass_time(0.4)  # who was told already is not told of the silence too
        assert "result" in await peer.ask("tools/list")


@on_loop
async def test_an_event_over_the_limit_fails_the_request_once() -> None:
    old = Old()
    async with joined(old, idle_timeout_s=0.3, limit_bytes=2000) as peer:
        asked = peer.start("silence")
        await asyncio.wait_for(old.asked.wait(), 5)
        await old.stream_raw(b'data: {"jsonrpc":"2.0","id":%d,"result":{"a":"' % asked + b"x" * 4000 + b'"}}\n\n')
        assert "larger than the limit of 2000 bytes" in (await peer.answer(asked))["error"]["message"]
        await pass_time(0.4)
        assert "result" in await peer.ask("tools/list")


@on_loop
async def test_half_an_answer_to_initialize_opens_no_session() -> None:
    class Half(Old):
        async def say(self, frame: Any) -> None:
            await self.stream_raw(b"data: " + json.dumps(frame).encode()[:-2] + b"\n\n")

    async with server(Half()) as url, client(url, opened=False) as peer:
        assert "is not one whole JSON object" in (await peer.initialize("2024-11-05"))["error"]["message"]
