"""Servers that do what they should not: the rows of `docs/faults.md`. Nothing hangs, and the reason is named."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.transports.upstream.stage import Reply, Request, client, hello, on_loop, server, shake_hands

Misbehave = Callable[[Request, Reply], Awaitable[None]]


def after_handshake(misbehave: Misbehave) -> Misbehave:
    """Shake hands, then misbehave."""

    async def serve(request: Request, reply: Reply) -> None:
        if request.rpc == "ping":
            await reply.result(request, {})
        elif not await shake_hands(request, reply):
            await misbehave(request, reply)

    return serve


async def call(misbehave: Misbehave, **config: Any) -> dict[str, Any]:
    """Give the error that a call of a misbehaving server ends with; the session has to go on after it."""
    async with server(after_handshake(misbehave)) as url, client(url, **config) as peer:
        answer = await peer.ask("tools/call")
        assert "result" in await peer.ask("ping")
    error: dict[str, Any] = answer["error"]
    return error


async def open_with(serve: Misbehave, **config: Any) -> dict[str, Any]:
    """Give the error that `initialize` ends with, and the session with it."""
    async with server(serve) as url, client(url, opened=False, **config) as peer:
        answer = await peer.initialize()
        await peer.until(lambda: peer.end is not None)
    error: dict[str, Any] = answer["error"]
    return error


def answer_to(request: Request, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request.frame["id"], "result": result}


@pytest.mark.parametrize(
    ("status", "named"),
    [
        ("401 Unauthorized", "401 Unauthorized: it wants credentials"),
        ("403 Forbidden", "403 Forbidden: it does not let us in"),
        ("429 Too Many Requests", "429 Too Many Requests"),
        ("500 Internal Server Error", "500 Internal Server Error: boom"),
        ("502 Bad Gateway", "502 Bad Gateway: boom"),
        ("503 Service Unavailable", "503 Service Unavailable: boom"),
        ("599 Whatever", "599: boom"),
    ],
)
@on_loop
async def test_a_status_fails_the_request_and_no_more(status: str, named: str) -> None:
    error = await call(lambda request, reply: reply.status(status, body=b"boom\n"))
    assert named in error["message"]
    assert error["data"] == {"httpStatus": int(status[:3])}


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "500 Internal Server Error", "503 Busy"])
@on_loop
async def test_a_status_that_is_evidence_of_nothing_ends_the_handshake(status: str) -> None:
    methods: list[str] = []

    async def serve(request: Request, reply: Reply) -> None:
        methods.append(request.method)
        await reply.status(status)

    error = await open_with(serve)
    assert status[:3] in error["message"]
    assert methods == ["POST"]


@on_loop
async def test_an_error_of_the_server_keeps_its_code_and_words_and_gets_the_id() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        error = {"code": -32001, "message": "who are you", "data": {"a": 1}}
        await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, status="400 Bad Request")

    assert await call(misbehave) == {"code": -32001, "message": "who are you", "data": {"a": 1}}


@on_loop
async def test_a_refused_connection_is_named() -> None:
    async with client("http://127.0.0.1:1/mcp", opened=False) as peer:
        error = (await peer.initialize())["error"]
    assert error["message"] == "http://127.0.0.1:1/mcp: no connection: connection refused"


@on_loop
async def test_a_server_that_went_away_fails_requests_until_it_is_back() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if not await shake_hands(request, reply):
            await reply.result(request, {})
            reply.cut()

    async with server(serve) as url:
        joined = client(url, end_session=False)
        peer = await joined.__aenter__()
        assert "result" in await peer.ask("tools/list")
    gone = await peer.ask("tools/list")
    async with server(serve, int(url.split(":")[2].split("/")[0])):
        back = await peer.ask("tools/list")
        await joined.__aexit__(None, None, None)
    assert "no connection: connection refused" in gone["error"]["message"]
    assert "result" in back


@on_loop
async def test_a_silent_server_times_out() -> None:
    error = await call(lambda request, reply: asyncio.sleep(60), idle_timeout_s=0.2)
    assert error["message"].endswith("nothing came from it for too long")


@on_loop
async def test_a_stream_that_falls_silent_times_out() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await asyncio.sleep(60)

    assert "nothing came from it for too long" in (await call(misbehave, idle_timeout_s=0.2))["message"]


@on_loop
async def test_a_server_that_comments_is_not_silent() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        for _ in range(8):
            await reply.raw(b": still here\r\n\r\n")
            await asyncio.sleep(0.1)
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "at last"}})
        reply.cut()

    assert (await call(misbehave, idle_timeout_s=0.4))["message"] == "at last"


@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=utf-8", "application/xml", ""])
@on_loop
async def test_a_wrong_content_type_is_named(content_type: str) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        body = json.dumps(answer_to(request)).encode()
        await reply.status("200 OK", *([f"Content-Type: {content_type}"] if content_type else []), body=body)

    message = (await call(misbehave))["message"]
    assert "its answer must be application/json or text/event-stream, and claims to be" in message
    assert (content_type.partition(";")[0] or "application/octet-stream") in message or "nothing" in message


@on_loop
async def test_an_accepted_request_without_answer_is_an_error() -> None:
    error = await call(lambda request, reply: reply.status("202 Accepted"))
    assert "it answered 202 Accepted, without a response" in error["message"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"jsonrpc":"2.0","method":"x"}'])
@on_loop
async def test_a_body_that_holds_no_answer_is_an_error(body: bytes) -> None:
    error = await call(lambda request, reply: reply.status("200 OK", "Content-Type: application/json", body=body))
    assert "its answer holds no response to the request" in error["message"]


@on_loop
async def test_an_answer_with_another_id_is_an_error() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.json({"jsonrpc": "2.0", "id": 999, "result": {}})

    assert "its answer holds no response to the request" in (await call(misbehave))["message"]


@on_loop
async def test_an_answer_that_comes_twice_is_handed_on_without_another_error() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "one"}})
        await reply.event({"jsonrpc": "2.0", "id": "nobody", "result": {}})
        reply.cut()

    assert (await call(misbehave))["message"] == "one"


@on_loop
async def test_garbage_between_events_is_passed_over() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b"WELCOME to our server!\r\n\r\ndata: no json\r\n\r\n")
        await reply.raw(b"event: odd\r\ndata: {}\r\n\r\n: comment\r\n\r\n")
        await reply.raw(b"\x00\xff\xfe\r\ndata: \xff\xfe\r\n\r\n")
        await reply.event({"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "found"}})
        reply.cut()

    assert (await call(misbehave))["message"] == "found"


@on_loop
async def test_half_an_event_is_no_answer() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b"data: " + json.dumps(answer_to(request)).encode())
        reply.cut()

    message = (await call(misbehave))["message"]
    assert "it closed the stream before the answer; it cannot be resumed" in message


@on_loop
async def test_invalid_utf_8_in_an_answer_is_named_where_it_is_translated() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply, revision="2025-11-25"):
            return
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"tools":["\xff"]}}' % request.frame["id"]
        await reply.status("200 OK", "Content-Type: application/json", body=body)

    async with server(serve) as url, client(url, revision="2024-11-05") as peer:
        assert "not UTF-8: byte 0xff" in (await peer.ask("tools/list"))["error"]["message"]


@on_loop
async def test_a_body_over_the_limit_is_not_read() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.head("200 OK", "Content-Type: application/json", "Content-Length: 104857600")
        await asyncio.sleep(60)

    assert "a frame is larger than the limit of 1000 bytes" in (await call(misbehave, limit_bytes=1000))["message"]


@on_loop
async def test_a_body_of_unknown_length_over_the_limit_is_cut() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.head("200 OK", "Content-Type: application/json", "Connection: close")
        while True:
            await reply.raw(b"x" * 65536)

    assert "larger than the limit" in (await call(misbehave, limit_bytes=1_000_000))["message"]


@on_loop
async def test_an_event_of_100_mb_is_refused_in_bounded_memory() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b'data: {"jsonrpc":"2.0","id":%d,"result":{"x":"' % request.frame["id"])
        for _ in range(1600):
            await reply.raw(_BLOCK)
        await reply.raw(b'"}}\r\n\r\n')
        reply.cut()

    tracemalloc.start()
    error = await call(misbehave, limit_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "a frame is larger than the limit of 1000000 bytes" in error["message"]
    assert peak < 20_000_000


_BLOCK = b"x" * 65536


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@on_loop
async def test_a_compressed_answer_is_read_all_the_same(coding: str) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        error = {"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": 1, "message": "small"}}
        body = (gzip.compress if coding == "gzip" else zlib.compress)(json.dumps(error).encode())
        await reply.status("200 OK", "Content-Type: application/json", f"Content-Encoding: {coding}", body=body)

    assert (await call(misbehave))["message"] == "small"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@on_loop
async def test_a_compressed_bomb_is_cut(content_type: str) -> None:
    bomb = gzip.compress(b"data: " + b"x" * 50_000_000)

    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.status("200 OK", f"Content-Type: {content_type}", "Content-Encoding: gzip", body=bomb)

    tracemalloc.start()
    error = await call(misbehave, limit_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert re.search("larger than the limit|cannot be resumed", error["message"])
    assert peak < 20_000_000


@on_loop
async def test_an_unknown_compression_is_named() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.status("200 OK", "Content-Type: application/json", "Content-Encoding: br", body=b"xx")

    assert "compressed in a way that nobody asked for: 'br'" in (await call(misbehave))["message"]


@on_loop
async def test_a_broken_compressed_body_is_named() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.status("200 OK", "Content-Type: application/json", "Content-Encoding: gzip", body=b"no gzip at all")

    assert "its compressed answer cannot be read" in (await call(misbehave))["message"]


@on_loop
async def test_a_redirect_to_another_origin_gets_no_headers_of_ours() -> None:
    stolen: list[Request] = []

    async def steal(request: Request, reply: Reply) -> None:
        stolen.append(request)
        await reply.status("200 OK")

    async with server(steal) as elsewhere:
        error = await call(
            lambda request, reply: reply.status("307 Temporary Redirect", f"Location: {elsewhere}"),
            headers=(("Authorization", "Bearer secret"),),
        )
    assert "another origin" in error["message"]
    assert elsewhere in error["message"]
    assert not stolen


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "303 See Other"])
@on_loop
async def test_a_redirect_to_another_method_is_refused(status: str) -> None:
    error = await call(lambda request, reply: reply.status(status, "Location: /elsewhere"))
    assert "to another method is not followed" in error["message"]


@on_loop
async def test_a_redirect_in_circles_ends() -> None:
    error = await call(lambda request, reply: reply.status("308 Permanent Redirect", "Location: /mcp"))
    assert "redirects more than 3 times" in error["message"]


@on_loop
async def test_closing_without_an_answer_is_named() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        reply.cut()

    assert "it closed the connection without an answer" in (await call(misbehave))["message"]


@on_loop
async def test_closing_in_the_middle_of_an_answer_is_named() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.head("200 OK", "Content-Type: application/json", "Content-Length: 500")
        await reply.raw(b'{"jsonrpc"')
        reply.cut()

    assert "it closed the connection in the middle of its answer" in (await call(misbehave))["message"]


@on_loop
async def test_an_answer_that_is_no_http_is_named() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        reply.cut()

    assert "its answer is no HTTP" in (await call(misbehave))["message"]


@on_loop
async def test_headers_that_never_end_are_cut() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            await reply.raw(_BLOCK)

    assert "its answer is no HTTP" in (await call(misbehave))["message"]


@on_loop
async def test_a_stream_that_is_cut_is_resumed() -> None:
    asked_id = 0

    async def misbehave(request: Request, reply: Reply) -> None:
        nonlocal asked_id
        await reply.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        if request.method == "POST":
            asked_id = request.frame["id"]
            event = b'id: 5\r\nretry: 50\r\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\r\n\r\ndata: {"js'
            await reply.raw(b"%x\r\n%s" % (len(event) + 100, event))
        else:
            assert request.headers["last-event-id"] == "5"
            event = b'data: {"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"resumed"}}\r\n\r\n' % asked_id
            await reply.raw(b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event))
        reply.cut()

    assert (await call(misbehave))["message"] == "resumed"


@on_loop
async def test_a_stream_that_cannot_be_resumed_is_an_error() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        if request.method == "POST":
            await reply.stream()
            await reply.event(event_id="5", retry="10")
            reply.cut()
        else:
            await reply.status("405 Method Not Allowed")

    message = (await call(misbehave))["message"]
    assert "it cannot be resumed: it answered 405 Method Not Allowed" in message


@on_loop
async def test_resuming_is_tried_again_where_it_fails_for_now() -> None:
    tries = 0
    asked_id = 0

    async def misbehave(request: Request, reply: Reply) -> None:
        nonlocal tries, asked_id
        if request.method == "POST":
            asked_id = request.frame["id"]
            await reply.stream()
            await reply.event(event_id="5", retry="10")
            reply.cut()
        elif (tries := tries + 1) < 3:
            await reply.status("503 Service Unavailable")
        else:
            await reply.stream()
            error = {"code": 1, "message": "third time"}
            await reply.event({"jsonrpc": "2.0", "id": asked_id, "error": error})
            reply.cut()

    assert (await call(misbehave))["message"] == "third time"


@on_loop
async def test_a_server_that_closes_every_poll_at_once_is_given_up() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        if request.method == "POST":
            await reply.event(event_id="5", retry="0")
        reply.cut()

    assert "nothing came from it for too long" in (await call(misbehave, idle_timeout_s=0.5))["message"]


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
async def test_a_session_id_that_is_no_id_is_refused() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        await reply.result(request, hello(), "Mcp-Session-Id: two words")

    assert "Mcp-Session-Id is not made of visible ASCII" in (await open_with(serve))["message"]


@on_loop
async def test_a_get_stream_that_fails_is_tried_again_and_hurts_nobody() -> None:
    gets = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal gets
        if request.method == "GET":
            gets += 1
            await reply.status("500 Internal Server Error")
        elif not await shake_hands(request, reply):
            await reply.result(request, {})

    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/list")
    assert gets == 1


@on_loop
async def test_a_notification_that_is_refused_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with server(after_handshake(lambda request, reply: reply.status("500 Oops"))) as url, client(url) as peer:
        peer.notify("notifications/roots/list_changed")
        assert "result" in await peer.ask("ping")
        await peer.until(lambda: True)
        async with asyncio.timeout(5):
            while "not delivered" not in caplog.text:
                await asyncio.sleep(0.01)
    assert "notifications/roots/list_changed of the client not delivered" in caplog.text
