"""Requests on one connection whose heads are the same bytes: read once, and nothing else is taken for one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.transports.http.config import FrontConfig, Patience
from dragoman.transports.known_heads import KnownHead, know_head
from tests.support.waiting import linger, until
from tests.transports.http.stage import Stage, call, on_loop, serving, text_of, within
from tests.transports.http.wire import connect, read_reply
from tests.transports.upstream.raw import on_both_loops

HEAD = b"POST /mcp HTTP/1.1\r\nhost: x\r\nContent-Length: %d\r\naccept: a\r\n\r\n"


def known(body: bytes = b"{}", head: bytes = HEAD) -> KnownHead[str]:
    found = know_head(head % len(body) + body, body, "meaning")
    assert found is not None
    return found


@pytest.mark.parametrize("body", [b"", b"{}", b"x" * 12345, b"\r\n\r\n", HEAD % 3 + b"abc"])
def test_another_body_is_found(body: bytes) -> None:
    assert known().find_body(HEAD % len(body) + body) == body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD % 2,
        HEAD % 2 + b"{",
        HEAD % 2 + b"{}\n",
        HEAD % 2 + b"{}" + HEAD % 2 + b"{}",
        (HEAD % 2)[:-2] + b"x: y\r\n\r\n{}",
        (HEAD % 2).replace(b"accept", b"Accept") + b"{}",
        (HEAD % 2).replace(b": 2", b": +2") + b"{}",
        (HEAD % 2).replace(b": 2", b": 2 ") + b"{}",
        (HEAD % 2).replace(b": 2", b":  2") + b"{}",
        (HEAD % 2).replace(b": 2", b": ") + b"{}",
        (HEAD % 2).replace(b": 2", b": 0000000000000002") + b"{}",
        (HEAD % 2).replace(b": 2", b": 2\r\ncontent-length: 2") + b"{}",
        (HEAD % 2).replace(b"/mcp", b"/sse") + b"{}",
    ],
)
def test_anything_else_is_not_taken_for_it(data: bytes) -> None:
    assert known().find_body(data) is None


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\ncontent-length:  %d \r\n\r\n",
        b"POST / HTTP/1.1\ncontent-length: %d\n\n",
        b"POST / HTTP/1.1\r\nx-content-length: %d\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n",
    ],
)
def test_a_head_that_is_written_in_another_way_is_read_each_time(head: bytes) -> None:
    assert know_head(head % 2 + b"{}", b"{}", None) is None


def test_a_head_whose_body_came_in_another_piece_is_not_known() -> None:
    assert know_head(b"{}", b"{}", None) is None
    assert know_head(HEAD % 4 + b"{}", b"{}", None) is None


class Caller:
    """A client with one connection, which writes the same head each time."""

    def __init__(self, stage: Stage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stage, self.reader, self.writer = stage, reader, writer

    def write(self, frame: Any, *more: str) -> bytes:
        body = json.dumps(frame).encode()
        headers = [
            *(f"{name}: {value}" for name, value in self.stage.headers({}).items()),
            *("host: localhost", "content-type: application/json", f"content-length: {len(body)}", *more),
        ]
        return "\r\n".join(["POST /mcp HTTP/1.1", *headers, "", ""]).encode() + body

    async def begin(self, key: Any, *more: str, **params: Any) -> None:
        """Send a call, and see that the server hears it."""
        self.writer.write(self.write(call(key, **params), *more))
        assert (await self.stage.server.hear())["id"] == key

    async def end(self, key: Any, text: str) -> None:
        """Answer a call, and see that the answer comes."""
        self.stage.server.answer(key, content=[{"type": "text", "text": text}])
        reply = await within(read_reply(self.reader, self.writer))
        frame = json.loads(b"".join([part async for part in reply.parts()]))
        assert (frame["id"], text_of(frame)) == (key, text)

    async def call(self, key: Any, *more: str, **params: Any) -> None:
        await self.begin(key, *more, **params)
        await self.end(key, f"answer {key}")


async def calling(stage: Stage) -> Caller:
    """Open a session, and a connection whose head is known by now."""
    await stage.open()
    caller = Caller(stage, *await connect(stage.port))
    await caller.call(2)
    port = caller.writer.get_extra_info("sockname")[1]
    (connection,) = (one for one in stage.connections if one.known is not None and one.client[1] == port)
    caller.connection = connection  # type: ignore[attr-defined]
    await caller.call(3)
    return caller


@on_loop
async def test_many_calls_of_one_connection_get_their_answers() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        for key in range(4, 40):
            await caller.call(key, text="x" * key * 7)
        await caller.call("a text")


@on_loop
async def test_a_head_with_one_more_header_is_read() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        await caller.call(4, "x-more: 1")
        await caller.call(5)
        caller.writer.write(caller.write(call(6), "mcp-session-id: somebody-elses"))
        assert (await within(read_reply(caller.reader, caller.writer))).status == 400


@on_loop
async def test_a_request_in_two_pieces_and_two_requests_in_one_are_served() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        whole = caller.write(call(4))
        for start, end in ((0, 30), (30, len(whole) - 5), (len(whole) - 5, len(whole))):
            caller.writer.write(whole[start:end])
            await linger(0.02)
        assert (await stage.server.hear())["id"] == 4
        await caller.end(4, "in pieces")
        caller.writer.write(caller.write(call(5)) + caller.write(call(6)) + caller.write(call(7)))
        for key in (5, 6, 7):
            assert (await stage.server.hear())["id"] == key
            await caller.end(key, f"one of three: {key}")
        await caller.call(8)


@on_loop
async def test_a_request_that_comes_before_the_answer_to_the_one_before_waits_for_it() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        await caller.begin(4)
        caller.writer.write(caller.write(call(5)))
        await linger(0.02)
        assert stage.server.hears_nothing()
        await caller.end(4, "the first")
        assert (await stage.server.hear())["id"] == 5
        await caller.end(5, "the second")
        await caller.call(6)


@pytest.mark.parametrize("more", [b"no HTTP\r\n\r\n", None])
@on_both_loops
async def test_a_request_that_waits_is_refused_before_the_end_behind_it_is_read(more: bytes | None) -> None:
    async with serving() as stage:
        caller = await calling(stage)
        await caller.begin(4)
        caller.writer.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\ncontent-length: 0\r\n\r\n")
        await linger(0.02)
        if more is None:
            caller.writer.write_eof()
        else:
            caller.writer.write(more)
        await linger(0.02)
        await caller.end(4, "the first")
        assert (await within(read_reply(caller.reader, caller.writer))).status == 406


@on_loop
async def test_a_call_that_takes_long_is_answered_with_a_stream_and_the_next_is_served() -> None:
    async with serving(FrontConfig(patience=Patience(stream_after_s=0.05))) as stage:
        caller = await calling(stage)
        for key in (4, 5):
            await caller.begin(key)
            reply = await within(read_reply(caller.reader, caller.writer))
            assert reply.headers["content-type"] == "text/event-stream"
            stage.server.answer(key, content=[{"type": "text", "text": "late"}])
            (frame,) = await within(reply.frames())
            assert text_of(frame) == "late"
        await caller.call(6)


@on_loop
async def test_each_of_several_long_calls_becomes_a_stream() -> None:
    """One timer serves them all."""
    async with serving(FrontConfig(patience=Patience(stream_after_s=0.1))) as stage:
        first = await calling(stage)
        second = Caller(stage, *await connect(stage.port))
        await first.begin(4)
        await linger(0.05)
        await second.begin(5)
        for caller, key in ((first, 4), (second, 5)):
            reply = await within(read_reply(caller.reader, caller.writer))
            assert reply.headers["content-type"] == "text/event-stream"
            stage.server.answer(key, content=[{"type": "text", "text": "late"}])
            (frame,) = await within(reply.frames())
            assert frame["id"] == key


@on_loop
async def test_what_looks_like_a_known_request_in_the_middle_of_another_is_a_part_of_that() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        caller.writer.write(b"DELETE /nowhere HTTP/1.1\r\nx-more: ")
        await until(lambda: caller.connection.in_headers)
        caller.writer.write(caller.write(call(4)))
        assert (await within(read_reply(caller.reader, caller.writer))).status == 404
        assert stage.server.hears_nothing()


@on_loop
async def test_a_call_that_takes_longer_than_a_connection_may_idle_is_answered() -> None:
    async with serving(FrontConfig(patience=Patience(stream_after_s=600))) as stage:
        caller = await calling(stage)
        caller.connection.idle_s = 0.1
        caller.connection._idle.stop()
        await caller.call(4)
        await caller.begin(5)
        await linger(0.3)
        await caller.end(5, "after all")


@pytest.mark.parametrize("frame", [call(4), [call(4)], "no frame"])
@on_loop
async def test_a_session_that_is_over_is_over_on_a_connection_that_knows_it(frame: Any) -> None:
    async with serving() as stage:
        caller = await calling(stage)
        assert (await stage.delete()).status == 204
        caller.writer.write(caller.write(frame))
        assert (await within(read_reply(caller.reader, caller.writer))).status == 404


@pytest.mark.parametrize(
    "body", [b"[1", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b'{"jsonrpc":"2.0","id":4,"id":5,"method":"x"}']
)
@on_loop
async def test_a_body_that_is_wrong_is_refused_and_the_next_is_served(body: bytes) -> None:
    async with serving() as stage:
        caller = await calling(stage)
        head, _, _ = caller.write(call(4)).partition(b"content-length")
        caller.writer.write(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        reply = await within(read_reply(caller.reader, caller.writer))
        assert reply.status == 400
        assert [part async for part in reply.parts()]
        await caller.call(5)


@on_loop
async def test_a_client_that_leaves_a_known_call_leaves_nothing_behind() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        await caller.begin(4)
        caller.writer.close()
        await until(lambda: caller.connection not in stage.connections)  # type: ignore[attr-defined]
        stage.server.answer(4, content=[])
        assert text_of(await stage.call_and_answer(5)) == "hello"


@on_loop
async def test_a_connection_is_closed_once_nothing_was_asked_for_long_and_not_before() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        connection: Any = caller.connection  # type: ignore[attr-defined]
        connection.idle_s = 0.3
        connection._idle.stop()
        for key in range(4, 8):
            await caller.begin(key)
            await linger(0.15)
            await caller.end(key, "still there")
        assert await within(caller.reader.read()) == b""


@on_loop
async def test_a_client_that_wants_its_connection_closed_is_obeyed() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        await caller.call(4, "connection: close")
        assert await within(caller.reader.read()) == b""


@on_loop
async def test_the_end_of_a_head_that_came_in_pieces_is_not_taken_for_a_head() -> None:
    async with serving() as stage:
        await stage.open()
        caller = Caller(stage, *await connect(stage.port))
        first, second = caller.write(call(2)), caller.write(call(3))
        cut = first.index(b"content-type")
        caller.writer.write(first[:cut])
        await until(lambda: any(one.in_headers for one in stage.connections))
        caller.writer.write(first[cut:])
        assert (await stage.server.hear())["id"] == 2
        await caller.end(2, "in pieces")
        caller.writer.write(second[cut:])
        assert (await within(read_reply(caller.reader, caller.writer))).status == 400
        assert stage.server.hears_nothing()


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT"])
@on_loop
async def test_a_known_head_means_the_same_after_a_request_with_another_method(method: str) -> None:
    async with serving() as stage:
        caller = await calling(stage)
        caller.writer.write(f"{method} /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        head = await within(caller.reader.readuntil(b"\r\n\r\n"))
        assert head.startswith(b"HTTP/1.1 405")
        if method != "HEAD":
            await within(caller.reader.readexactly(int(head.lower().split(b"content-length:")[1].split()[0])))
        await caller.call(4)
        assert caller.connection.turn.scope["method"] == "POST"  # type: ignore[attr-defined]
        await caller.call(5)


@on_loop
async def test_white_space_behind_the_length_is_none_of_it_in_pieces_or_not() -> None:
    async with serving() as stage:
        caller = await calling(stage)
        for key, is_cut in ((4, False), (5, True)):
            head, _, body = caller.write(call(key)).partition(b"\r\n\r\n")
            caller.writer.write(head + b" \t\r\n\r\n")
            if is_cut:
                await until(lambda: caller.connection.in_body)  # type: ignore[attr-defined]
            caller.writer.write(body)
            assert (await stage.server.hear())["id"] == key
            await caller.end(key, "spacious")
