"""Servers that do what they should not, as `docs/internals/faults.md` has it: nothing hangs, the reason is named."""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
import zlib

import pytest

from tests.support.ports import free_port
from tests.support.waiting import hang, pass_time
from tests.transports.upstream.stage import (
    BLOCK,
    Reply,
    Request,
    after_handshake,
    answer_to,
    call,
    client,
    on_loop,
    open_with,
    server,
    shake_hands,
)


@pytest.mark.parametrize(
    ("status", "named"),
    [
        ("401 Unauthorized", "401 Unauthorized: it wants credentials"),
        ("403 Forbidden", "or it serves clients under another name or address only; it says 'boom'"),
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
    unanswered = {"dragoman/unanswered": True} if status[0] == "5" else {}
    assert error["data"] == {"httpStatus": int(status[:3]), **unanswered}


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize(
    ("said", "seconds"),
    [("17", 17), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("soon", None), ("-1", None), ("\u00b2", None)],
)
@on_loop
async def test_after_how_many_seconds_to_try_again_is_passed_on(status: str, said: str, seconds: int | None) -> None:
    retry = f"Retry-After: {said}"
    error = await call(lambda request, reply: reply.status(status, retry, body=b"boom\n"))
    assert error["data"].get("retryAfterSeconds") == seconds
    assert ("try again in" in error["message"]) is (seconds is not None)
    own = {"code": 5, "message": "busy"}
    for data, told in (({"why": 1}, {"why": 1}), ({"retryAfterSeconds": 3}, {}), ("later", None)):
        body = {"jsonrpc": "2.0", "id": None, "error": {**own, "data": data}}
        error = await call(lambda request, reply, body=body: reply.json(body, retry, status=status))
        wanted = {} if seconds is None else {"retryAfterSeconds": seconds}
        assert error["data"] == (data if told is None else {**wanted, **data})


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
async def test_a_401_says_which_credentials_are_wanted() -> None:
    challenge = 'Bearer resource_metadata="https://auth.example/meta"'
    error = await call(lambda request, reply: reply.status("401 No", f"WWW-Authenticate: {challenge}"))
    assert challenge in error["message"]


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

    port = free_port()
    async with server(serve, port) as url:
        joined = client(url, end_session=False)
        peer = await joined.__aenter__()
        assert "result" in await peer.ask("tools/list")
    gone = await peer.ask("tools/list")
    async with server(serve, port):
        back = await peer.ask("tools/list")
        await joined.__aexit__(None, None, None)
    assert "no connection: connection refused" in gone["error"]["message"]
    assert "result" in back


@on_loop
async def test_a_silent_server_times_out() -> None:
    error = await call(lambda request, reply: hang(), idle_timeout_s=0.2)
    assert error["message"].endswith("nothing came from it for too long")


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
        await hang()

    assert "a frame is larger than the limit of 1000 bytes" in (await call(misbehave, limit_bytes=1000))["message"]


@on_loop
async def test_a_body_of_unknown_length_over_the_limit_is_cut() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.head("200 OK", "Content-Type: application/json", "Connection: close")
        while True:
            await reply.raw(b"x" * 65536)

    assert "larger than the limit" in (await call(misbehave, limit_bytes=1_000_000))["message"]


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
    assert f"say --url {elsewhere}" in error["message"]
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

    assert "its answer is not HTTP" in (await call(misbehave))["message"]


@on_loop
async def test_headers_that_never_end_are_cut() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            await reply.raw(BLOCK)

    assert "its answer is not HTTP" in (await call(misbehave))["message"]


@on_loop
async def test_a_notification_whose_receipt_does_not_end_counts_as_delivered(caplog: pytest.LogCaptureFixture) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.head("202 Accepted", "Content-Length: 5")

    async with server(after_handshake(misbehave)) as url, client(url) as peer:
        peer.notify("notifications/progress", progressToken="t", progress=1)
        await pass_time(1.2)  # as long as a receipt is waited for
        assert "result" in await peer.ask("ping")
    assert "not delivered" not in caplog.text
