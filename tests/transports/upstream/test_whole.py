"""Half an answer is no answer, wherever it was cut: between equal revisions, where bytes pass as they are."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from tests.support.waiting import hang
from tests.transports.upstream.stage import Reply, Request, call, client, on_loop, server, shake_hands

NOT_WHOLE = "is not one whole JSON object"


def body_of(request: Request, size: int) -> bytes:
    result = {"content": [{"type": "text", "text": 'say "{[\n' * (size // 8)}]}
    return json.dumps({"jsonrpc": "2.0", "id": request.frame["id"], "result": result}).encode()


SIZES = pytest.mark.parametrize("size", [8, 8_000, 800_000])
KEPT = pytest.mark.parametrize("kept", [0.5, 0.99, -1, -3])


def cut(body: bytes, kept: float) -> bytes:
    return body[: int(len(body) * kept) if kept > 0 else int(kept)]


@SIZES
@KEPT
@on_loop
async def test_half_a_body_fails_the_request(size: int, kept: float) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.status("200 OK", "Content-Type: application/json", body=cut(body_of(request, size), kept))

    assert NOT_WHOLE in (await call(misbehave))["message"]


@SIZES
@on_loop
async def test_a_body_without_length_that_is_cut_fails_the_request(size: int) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.head("200 OK", "Content-Type: application/json", "Connection: close")
        await reply.raw(cut(body_of(request, size), 0.9))
        reply.cut()

    assert NOT_WHOLE in (await call(misbehave))["message"]


@on_loop
async def test_a_body_without_length_is_searched_although_it_seems_whole() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"text":"' % request.frame["id"]
        await reply.head("200 OK", "Content-Type: application/json", "Connection: close")
        await reply.raw(head + b"x" * 5000 + b"}]}}")  # within the text, and as many brackets as are open
        reply.cut()

    assert NOT_WHOLE in (await call(misbehave))["message"]


@on_loop
async def test_chunks_that_are_cut_fail_the_request() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        body = body_of(request, 8)
        await reply.head("200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked")
        await reply.raw(b"%x\r\n%s\r\n" % (len(body), body))  # all of it, but nobody says so
        reply.cut()

    assert "it closed the connection in the middle of its answer" in (await call(misbehave))["message"]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("lost", [1, 4, 8, 40])
@on_loop
async def test_a_compressed_body_that_is_cut_fails_the_request(coding: str, lost: int) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        packed = (gzip.compress if coding == "gzip" else zlib.compress)(body_of(request, 8_000))
        headers = ("Content-Type: application/json", f"Content-Encoding: {coding}")
        await reply.status("200 OK", *headers, body=packed[:-lost])

    assert "its compressed answer ends in the middle" in (await call(misbehave))["message"]


@on_loop
async def test_a_compressed_stream_that_is_cut_fails_the_request() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        packed = gzip.compress(b"data: " + body_of(request, 8_000) + b"\n\n")
        await reply.stream("Content-Encoding: gzip")
        await reply.raw(packed[: len(packed) // 2])
        reply.cut()

    assert "its compressed answer ends in the middle" in (await call(misbehave))["message"]


@SIZES
@KEPT
@on_loop
async def test_an_event_whose_json_is_cut_fails_the_request_at_once(size: int, kept: float) -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b"id: 1\ndata: " + cut(body_of(request, size), kept) + b"\n\n")
        await hang()

    assert NOT_WHOLE in (await call(misbehave))["message"]


@on_loop
async def test_an_event_that_was_cut_is_not_what_a_stream_is_resumed_after() -> None:
    resumed: list[str] = []

    async def serve(request: Request, reply: Reply) -> None:
        if request.method == "GET" and "last-event-id" in request.headers:
            resumed.append(request.headers["last-event-id"])
            await reply.stream()
            await reply.raw(b"id: 2\ndata: " + body_of(asked[0], 8) + b"\n\n")
            reply.cut()
        elif not await shake_hands(request, reply):
            asked.append(request)
            await reply.stream()
            await reply.raw(b"id: 1\nretry: 1\ndata\n\nid: 2\ndata: " + body_of(request, 8))
            reply.cut()

    asked: list[Request] = []
    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/call")
    assert resumed == ["1"]


@on_loop
async def test_a_notification_that_is_cut_does_not_fail_the_request(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if not await shake_hands(request, reply):
            await reply.stream()
            await reply.raw(b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"a":{}}\n\n')
            await reply.raw(b"data: " + body_of(request, 8) + b"\n\n")
            reply.cut()

    async with server(serve) as url, client(url) as peer:
        assert "result" in await peer.ask("tools/call")
        assert not peer.others
    assert NOT_WHOLE in caplog.text


@on_loop
async def test_two_texts_in_one_event_fail_the_request() -> None:
    async def misbehave(request: Request, reply: Reply) -> None:
        await reply.stream()
        await reply.raw(b"data: " + body_of(request, 8) + b"\ndata: " + body_of(request, 8) + b"\n\n")
        await hang()

    assert NOT_WHOLE in (await call(misbehave))["message"]


@pytest.mark.parametrize("indent", [None, 1])
@SIZES
@on_loop
async def test_a_whole_answer_passes_however_it_is_framed(size: int, indent: int | None) -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        body = json.dumps(json.loads(body_of(request, size)), indent=indent).encode() + b"\n"
        match request.rpc:
            case "length":
                await reply.status("200 OK", "Content-Type: application/json", body=body)
            case "gzip":
                packed = gzip.compress(body[:20]) + gzip.compress(body[20:])
                await reply.status("200 OK", "Content-Type: application/json", "Content-Encoding: gzip", body=packed)
            case "close":
                await reply.head("200 OK", "Content-Type: application/json", "Connection: close")
                await reply.raw(body)
                reply.cut()
            case _:
                await reply.stream()
                await reply.raw(b"".join(b"data: " + line + b"\n" for line in body.splitlines()) + b"\n")
                reply.cut()

    async with server(serve) as url, client(url) as peer:
        answers: list[dict[str, Any]] = [await peer.ask(kind) for kind in ("length", "gzip", "close", "stream")]
    for answer in answers:
        assert len(answer["result"]["content"][0]["text"]) == size
