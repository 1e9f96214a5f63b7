"""What a server may answer, and what it may not, as bytes; read on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import re

import pytest

from dragoman.errors import TransportError
from dragoman.transports.upstream.connection import HEAD_BYTES, HEADERS
from tests.support.waiting import linger
from tests.transports.upstream.raw import CHUNKED, OK, Line, ask, on_both_loops, raw_server, wire_to

KEPT, CLOSED = True, False

ANSWERS = {
    "a length": (OK, 200, b"ok", KEPT),
    "no reason phrase": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", KEPT),
    "an unknown status": (b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", 599, b"", KEPT),
    "line ends before it": (b"\r\n\r\n" + OK, 200, b"ok", KEPT),
    "lines that end with LF": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, b"ok", KEPT),
    "a folded header": (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", KEPT),
    "chunks": (CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 200, b"ok", KEPT),
    "chunks with extensions": (CHUNKED + b'1;a=b;c="d"\r\no\r\n1 ;x\r\nk\r\n0;last\r\n\r\n', 200, b"ok", KEPT),
    "chunks and trailers": (CHUNKED + b"2\r\nok\r\n0\r\nDigest: x\r\nServer-Timing: y\r\n\r\n", 200, b"ok", KEPT),
    "chunks and close": (CHUNKED.replace(b"OK", b"OK\r\nConnection: close") + b"0\r\n\r\n", 200, b"", CLOSED),
    "a length and close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", CLOSED),
    "no length": (b"HTTP/1.1 200 OK\r\n\r\nok", 200, b"ok", CLOSED),
    "no length and no body": (b"HTTP/1.1 200 OK\r\n\r\n", 200, b"", CLOSED),
    "a coding that changes nothing": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok", 200, b"ok", CLOSED),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nok", 200, b"ok", CLOSED),
    "HTTP/1.0 with a length": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", CLOSED),
    "HTTP/1.0 that stays": (
        OK.replace(b"1.1", b"1.0").replace(b"OK", b"OK\r\nConnection: keep-alive"),
        200,
        b"ok",
        KEPT,
    ),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", KEPT),
    "204 with a length": (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204, b"", KEPT),
    "304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, b"", KEPT),
    "100 before it": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok", KEPT),
    "100 and 103 before it": (b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\n" + OK, 200, b"ok", KEPT),
    "101": (b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nabc", 101, b"", CLOSED),
    "101 to nothing": (b"HTTP/1.1 101 S\r\n\r\n", 101, b"", CLOSED),
    "an upgrade on offer": (OK.replace(b"OK", b"OK\r\nUpgrade: h2c\r\nConnection: Upgrade"), 200, b"ok", KEPT),
    "too much": (OK + b"more", 200, b"ok", CLOSED),
    "another answer": (OK + OK.replace(b"ok", b"ko"), 200, b"ok", CLOSED),
    "too much after 204": (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", 204, b"", CLOSED),
}

FAILURES = {
    "nothing": (b"", "it closed the connection without an answer"),
    "half a status line": (b"HTTP/1.1 2", "it closed the connection in the middle of its answer"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", "it closed the connection in the middle of its answer"),
    "only an interim answer": (b"HTTP/1.1 100 C\r\n\r\n", "it closed the connection in the middle of its answer"),
    "half a body": (OK[:-1], "it closed the connection in the middle of its answer"),
    "no body": (OK[:-2], "it closed the connection in the middle of its answer"),
    "no last chunk": (CHUNKED + b"2\r\nok\r\n", "it closed the connection in the middle of its answer"),
    "half a chunk": (CHUNKED + b"5\r\nok", "it closed the connection in the middle of its answer"),
    "half a trailer": (CHUNKED + b"0\r\nX", "it closed the connection in the middle of its answer"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", "its answer is not HTTP: Expected HTTP/"),
    "HTML": (b"<html>hello</html>", "its answer is not HTTP: Expected HTTP/"),
    "HTTP/2": (b"HTTP/2 200\r\n\r\n", "its answer is not HTTP"),
    "a status that is none": (b"HTTP/1.1 099 No\r\n\r\n", "its answer is not HTTP: its status is 99"),
    "a status of zeros": (b"HTTP/1.1 000 No\r\n\r\n", "its answer is not HTTP: its status is 0"),
    "a long status": (b"HTTP/1.1 2000 OK\r\n\r\n", "its answer is not HTTP: Invalid response status"),
    "a bad chunk size": (CHUNKED + b"zz\r\n", "its answer is not HTTP: Invalid character in chunk size"),
    "a length and chunks": (CHUNKED.replace(b"OK", b"OK\r\nContent-Length: 2"), "its answer is not HTTP"),
    "a length after chunks": (CHUNKED + b"0\r\nContent-Length: 2\r\n\r\n", "its answer is not HTTP: Content-Length"),
    "two lengths": (OK.replace(b"OK", b"OK\r\nContent-Length: 3"), "its answer is not HTTP: Duplicate Content-Length"),
    "a length below nothing": (OK.replace(b"2\r", b"-2\r"), "its answer is not HTTP: Invalid character in Content"),
    "a length without end": (OK.replace(b"2\r", b"9" * 40 + b"\r"), "its answer is not HTTP"),
    "a coding": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", "another one than chunked"),
    "a coding in chunks": (
        CHUNKED.replace(b": chunked", b": gzip, chunked") + b"0\r\n\r\n",
        "another one than chunked",
    ),
    "a header without colon": (OK.replace(b"OK", b"OK\r\nnothing"), "its answer is not HTTP"),
}


@pytest.mark.parametrize("case", ANSWERS)
@on_both_loops
async def test_an_answer_is_read_to_its_end_and_no_further(case: str) -> None:
    said, status, body, kept = ANSWERS[case]
    ends = b"Content-Length" not in said and b"chunked" not in said and status == 200
    asked: list[int] = []

    async def handle(line: Line) -> None:
        while await line.request():
            asked.append(line.number)
            await line.say(said if len(asked) == 1 else OK)
            if ends and len(asked) == 1:
                return

    async with raw_server(handle) as url, wire_to(url) as wire:
        assert await ask(wire) == (status, body)
        assert await ask(wire) == (200, b"ok")
    assert asked == ([1, 1] if kept else [1, 2])


@pytest.mark.parametrize("case", FAILURES)
@on_both_loops
async def test_what_is_no_answer_is_named(case: str) -> None:
    said, reason = FAILURES[case]

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(said)

    async with raw_server(handle) as url, wire_to(url) as wire:
        with pytest.raises(TransportError, match=re.escape(reason)):
            await ask(wire)


@pytest.mark.parametrize(
    "said", [b"", OK[:10], OK[:-1], CHUNKED], ids=["nothing", "half a head", "half a body", "chunks"]
)
@on_both_loops
async def test_a_reset_is_named(said: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.reader.readuntil(b"\r\n\r\n")
        await line.say(said)
        await linger(0.05)
        line.reset()  # the body has not been read, which makes it a reset

    async with raw_server(handle) as url, wire_to(url) as wire:
        with pytest.raises(TransportError) as caught:
            await ask(wire, body=b"x" * 300_000)
    when = "in the middle of its answer" if said else "without an answer"
    assert re.search(f"(it reset|it closed|broke).*{when}", caught.value.reason), caught.value.reason


@pytest.mark.parametrize(
    ("beginning", "again"),
    [
        (b"HTTP/1.1 200 ", b"x" * 4096),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 4096),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-%s: y\r\n" % (b"y" * 2000)),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (CHUNKED + b"1;", b"x" * 4096),
        (CHUNKED + b"2\r\nok\r\n0\r\n", b"X: y\r\n"),
        (CHUNKED + b"2\r\nok\r\n0\r\nX: ", b"x" * 4096),
    ],
    ids=["phrase", "value", "headers", "large headers", "interim", "extension", "trailers", "trailer"],
)
@on_both_loops
async def test_what_does_not_end_is_cut(beginning: bytes, again: bytes) -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(beginning)
        for _ in range(4 * max(HEAD_BYTES // len(again), HEADERS)):
            await line.say(again)
            await asyncio.sleep(0)

    async with raw_server(handle) as url, wire_to(url) as wire:
        with pytest.raises(
            TransportError, match=r"its answer is not HTTP: (it has too many headers|its headers do not end)"
        ):
            await ask(wire)


@on_both_loops
async def test_as_many_headers_as_allowed_are_read() -> None:
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 200) for number in range(HEADERS - 1))

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK.replace(b"Content", headers + b"Content"))

    async with raw_server(handle) as url, wire_to(url) as wire:
        answer = await wire.send("POST", url, {}, b"{}")
        assert answer.header("X-0") == answer.header("x-254") == "y" * 200
        answer.close()


@on_both_loops
async def test_of_a_header_that_comes_twice_the_first_counts() -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK.replace(b"OK", b"OK\r\nMcp-Session-Id:  a \r\nmcp-session-id: b\r\nContent-Type: A/B ; c=d"))

    async with raw_server(handle) as url, wire_to(url) as wire:
        answer = await wire.send("POST", url, {}, b"{}")
        assert (answer.header("Mcp-Session-Id"), answer.media_type, answer.header("x")) == ("a", "a/b", "")
        assert (answer.length, answer.named_status) == (2, "200 OK")
        assert await answer.whole() == b"ok"
        answer.close()


@on_both_loops
async def test_a_server_whose_chunks_are_very_short_leaves_turns_to_others() -> None:
    """Each takes as long as a long one, and uvloop reads on before it looks at anybody else."""
    loop = asyncio.get_running_loop()

    async def handle(line: Line) -> None:
        await line.request()
        await line.say(CHUNKED + b"1\r\n \r\n" * 200_000 + b"0\r\n\r\n")
        await line.ended()

    async with raw_server(handle) as url, wire_to(url) as wire:
        began = loop.time()
        status, body = await ask(wire)
        assert (status, len(body)) == (200, 200_000)
        assert loop.time() - began > 0.4, "it was read at once"
