"""Clients that are bad on purpose, at the HTTP side that faces them. Rows of docs/internals/faults.md name them."""

from __future__ import annotations

import asyncio
import json
import logging
import tracemalloc

import pytest

from dragoman.transports.http.config import FrontConfig, Limits, Patience
from tests.support.waiting import linger, pass_time
from tests.transports.http.stage import (
    Stage,
    call,
    content,
    initialize,
    log_message,
    on_loop,
    serving,
    text_of,
    until,
    within,
)
from tests.transports.http.wire import connect, hang_up, read_reply, request, send_raw


def read_by_the_standard_library(text: str) -> bool:
    """Whether it reads text of this depth; that differs between releases of Python, within 3.12 too."""
    try:
        json.loads(text)
    except RecursionError:
        return False
    return True


TOO_DEEP = -32600 if read_by_the_standard_library('{"x":' * 5_001 + "1" + "}" * 5_001) else -32700
"""What it reads is too deep for us all the same."""

HURRIED = FrontConfig(
    patience=Patience(headers_s=0.2, body_s=0.2, stall_s=0.3, stream_after_s=0.05),
    limits=Limits(body_bytes=100_000, header_bytes=4096, high_water_bytes=200_000, replay_bytes=200_000),
)


async def still_serves(stage: Stage) -> None:
    assert text_of(await stage.call_and_answer("after")) == "hello"


@pytest.mark.parametrize("said", [b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: "])
@on_loop
async def test_headers_that_never_end_are_cut_off(said: bytes) -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        for byte in said:
            writer.write(bytes([byte]))
            await linger(0.001)
        answer = await within(reader.read())
        assert answer.startswith(b"HTTP/1.1 408") == bool(said)
        await still_serves(stage)


@on_loop
async def test_a_body_that_never_ends_is_cut_off() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reply = await request(stage.port, "POST", "/mcp", stage.headers({"content-length": "100"}), b'{"json')
        assert (reply.status, reply.headers["connection"]) == (408, "close")
        assert stage.server.hears_nothing()
        await still_serves(stage)


@on_loop
async def test_half_a_body_and_a_disconnect_is_no_message() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        before = set(stage.connections)
        _, writer = await connect(stage.port)
        await until(lambda: stage.connections - before)
        head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {stage.session}\r\ncontent-length: 100\r\n"
        writer.write(f'{head}content-type: application/json\r\n\r\n{{"jsonrpc":"2.0","id":5,'.encode())
        await writer.drain()
        writer.close()
        await until(lambda: not stage.connections - before)
        assert stage.server.hears_nothing()
        await still_serves(stage)


@pytest.mark.parametrize("chunked", [False, True])
@on_loop
async def test_a_body_that_is_too_large_is_refused(chunked: bool) -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        body = b'"' + b"x" * 200_000 + b'"'
        headers = stage.headers({})
        if chunked:
            headers |= {"content-length": "", "transfer-encoding": "chunked"}
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        reply = await request(stage.port, "POST", "/mcp", headers, body)
        assert reply.status == 413
        await still_serves(stage)


@on_loop
async def test_a_compressed_body_is_refused_unread() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reply = await stage.post(b"\x1f\x8b" + b"\0" * 1000, content_encoding="gzip")
        assert reply.status == 415
        await still_serves(stage)


@pytest.mark.parametrize("count", [1, 200])
@on_loop
async def test_headers_that_are_too_large_or_too_many_are_refused(count: int) -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        many = {f"x-{number}": "y" * (6000 // count) for number in range(count)}
        assert (await request(stage.port, "GET", "/mcp", many)).status == 431
        await still_serves(stage)


@on_loop
async def test_endless_headers_are_not_kept() -> None:
    async with serving(HURRIED) as stage:
        reader, writer = await connect(stage.port)
        writer.write(b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 50_000)
        assert (await within(reader.readline())).startswith(b"HTTP/1.1 431")


CHUNKED = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"


@on_loop
async def test_trailers_are_no_headers() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        ping = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
        body = b"%x\r\n%s\r\n0\r\nmcp-session-id: another\r\norigin: http://evil.example\r\n\r\n" % (len(ping), ping)
        head = CHUNKED + b"mcp-session-id: " + stage.session.encode() + b"\r\n\r\n"
        assert (await send_raw(stage.port, head + body)).status == 202


@pytest.mark.parametrize("said", [b"2\r\n{}\r\n0\r\nx: ", b"2\r\n{}\r\n0\r\nx: y\r\n", b"2;"])
@on_loop
async def test_endless_trailers_are_not_kept(said: bytes) -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        writer.write(CHUNKED + b"mcp-session-id: " + stage.session.encode() + b"\r\n\r\n" + said)
        await writer.drain()
        await pass_time(0.05)
        writer.write(b"y" * 50_000)
        assert (await within(reader.readline())).startswith(b"HTTP/1.1 431")


@on_loop
async def test_a_client_whose_chunks_are_very_short_leaves_turns_to_others() -> None:
    """Each takes as long as a long one, and uvloop reads on before it looks at anybody else."""
    loop = asyncio.get_running_loop()
    async with serving() as stage:
        await stage.open()
        note = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
        parts = b"1\r\n \r\n" * 200_000
        body = parts + b"%x\r\n%s\r\n0\r\n\r\n" % (len(note), note)
        head = CHUNKED + b"mcp-session-id: " + stage.session.encode() + b"\r\n\r\n"
        began = loop.time()
        assert (await send_raw(stage.port, head + body)).status == 202
        assert loop.time() - began > 0.4, "it was read at once"


@pytest.mark.parametrize("asked", [b"GET /healthz", b"POST /nothing", b"POST /mcp"])
@on_loop
async def test_what_comes_to_an_answered_request_without_end_is_not_read(asked: bytes) -> None:
    """Chunks of a byte are six: no more bytes of them are read than a body may have."""
    async with serving(FrontConfig(limits=HURRIED.limits, patience=Patience(body_s=3600.0))) as stage:
        reader, writer = await connect(stage.port)
        writer.write(asked + b" HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\n \r\n")
        assert (await within(reader.readline())).startswith(b"HTTP/1.1 ")
        began = asyncio.get_running_loop().time()
        writer.write(b"1\r\n \r\n" * 20_000)
        await until(lambda: not stage.connections or writer.transport.is_closing())
        assert asyncio.get_running_loop().time() - began < 60.0
        writer.close()


@on_loop
async def test_blank_lines_do_not_keep_a_connection_open() -> None:
    async with serving(HURRIED) as stage:
        reader, writer = await connect(stage.port)
        writer.write(b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n")
        reply = await read_reply(reader, writer)
        assert [part async for part in reply.parts()]
        writer.write(b"\r\n")
        assert await within(reader.read()) == b""


@pytest.mark.parametrize("path", ["/mcp", "/message"])
@on_loop
async def test_bodies_for_a_server_that_does_not_read_wait_in_their_sockets(path: str) -> None:
    async with serving(FrontConfig(patience=Patience(body_s=1.0))) as stage:
        if path == "/mcp":
            await stage.open()
        else:
            stream = await request(stage.port, "GET", "/sse", {"accept": "text/event-stream"})
            path = str((await within(stream.event())).data)
        session = next(iter(stage.front.sessions.all()))
        session.transport.pause_reading()
        frame = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "y" * 3_000_000}}
        posts = [asyncio.create_task(stage.post(frame, path)) for _ in range(4)]
        await pass_time(1.5)  # longer than a body may take where it is the client that does not send
        assert not any(post.done() for post in posts)
        assert sum(connection.in_body for connection in stage.connections) == 4
        session.transport.resume_reading()
        assert [(await within(post)).status for post in posts] == [202] * 4


NO_REQUEST = [
    b"POST /mcp HT",
    b"\0\0\r\n\r\n",
    b"POST /mcp HTTP/9.9\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\ncontent-length: x\r\n\r\n",
]


@pytest.mark.parametrize("said", NO_REQUEST)
@on_loop
async def test_what_is_no_request_does_not_get_into_the_answer_to_the_one_before(said: bytes) -> None:
    """Responses come "in the same order that the corresponding requests were received" (RFC 9112, 9.3.2)."""
    async with serving(HURRIED) as stage:
        await stage.open()
        head = f"GET /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {stage.session}\r\n\r\n"
        reader, writer = await connect(stage.port)
        writer.write(head.encode())
        assert (await read_reply(reader, writer)).status == 200
        writer.write(said)
        (connection,) = (one for one in stage.connections if one.turn is not None and not one.turn.is_complete)
        await until(lambda: connection.flow.is_paused)
        writer.write(b"and more of it" * 1000)
        assert (await stage.delete()).status < 300
        stream, end, behind = (await within(reader.read())).partition(b"0\r\n\r\n")
        assert end
        assert b"HTTP" not in stream
        assert behind.startswith((b"HTTP/1.1 400", b"HTTP/1.1 408"))


def post_of(stage: Stage, frame: object, head: str = "") -> bytes:
    body = json.dumps(frame).encode()
    given = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (given | stage.headers({})).items())
    return f"POST /mcp HTTP/1.1\r\n{lines}{head}\r\n".encode() + body


@pytest.mark.parametrize("said", NO_REQUEST)
@pytest.mark.parametrize("comes_later", [False, True])
@on_loop
async def test_a_request_is_answered_before_what_comes_behind_it_is_refused(said: bytes, comes_later: bool) -> None:
    """What "does not match the HTTP-message grammar" gets "a 400 (Bad Request) response", and the connection is closed
    (RFC 9112, 2.2); but it is no part of the request before it, whose length has said where that ends (6.3).
    """
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        first = post_of(stage, call(7))
        writer.write(first if comes_later else first + said)
        assert (await stage.server.hear())["id"] == 7
        if comes_later:
            writer.write(said)
        await pass_time(0.5)  # longer than a head may take
        stage.server.answer(7, **content("first"))
        heard = await within(reader.read())
        answer, refused = heard.split(b"HTTP/1.1 ")[1:]
        assert answer.startswith(b"200")
        assert b"first" in answer
        assert refused.startswith((b"400", b"408"))
        assert b"connection: close" in refused
        await until(lambda: not [one for one in stage.connections if one.pipeline])
        await still_serves(stage)


@on_loop
async def test_a_body_that_is_no_body_is_refused_behind_the_answers_before() -> None:
    """Of three requests at once the last is broken in its body: two answers, and 400; none of it reaches a server."""
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        head = post_of(stage, {}, "transfer-encoding: chunked\r\n").replace(b"content-length: 2\r\n", b"")
        writer.write(post_of(stage, call(7)) + post_of(stage, call(8)) + head[:-2] + b"no size\r\n" + head)
        for key in (7, 8):
            assert (await stage.server.hear())["id"] == key
            stage.server.answer(key, **content("done"))
        assert [part[:3] for part in (await within(reader.read())).split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"400"]
        assert stage.server.hears_nothing()
        await still_serves(stage)


@on_loop
async def test_who_says_that_it_closes_is_told_nothing_of_what_it_sends_behind() -> None:
    """A server that has closed for "close" does "not process any further requests" (RFC 9112, 9.6)."""
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        writer.write(post_of(stage, call(7), "connection: close\r\n") + b"\0\0\r\n\r\n")
        assert (await stage.server.hear())["id"] == 7
        stage.server.answer(7, **content("first"))
        (answer,) = (await within(reader.read())).split(b"HTTP/1.1 ")[1:]
        assert answer.startswith(b"200")


@on_loop
async def test_requests_before_their_turn_are_not_read_without_end() -> None:
    async with serving() as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        head = f"GET /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {stage.session}\r\n\r\n".encode()
        writer.write(head)
        assert (await read_reply(reader, writer)).status == 200
        connection = next(one for one in stage.connections if not one.turn.is_complete)
        for _ in range(10):
            writer.write(head * 5)
            await pass_time(0.01)
        assert len(connection.pipeline) < 10
        reader, writer = await connect(stage.port)
        writer.write(head.replace(b"GET /mcp", b"GET /nothing") * 200)
        statuses = [part[:3] for part in (await within(reader.read())).split(b"HTTP/1.1 ")[1:]]
        assert set(statuses[:-1]) == {b"404"}
        assert len(statuses) < 110
        assert statuses[-1] == b"400"


@on_loop
async def test_requests_in_turn_are_all_answered() -> None:
    async with serving() as stage:
        head = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n"
        reader, writer = await connect(stage.port)
        writer.write(head * 90)
        writer.write(head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert (await within(reader.read())).count(b"HTTP/1.1 404") == 91


@pytest.mark.parametrize(
    "value", [b"a\r\n b", b"a\0b", b"a\x01b", b"\xff\xfe", b"x" * 3000, b"../../etc/passwd", b"' OR 1=1 --"]
)
@on_loop
async def test_what_is_injected_into_a_header_stays_there(value: bytes) -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        for name in (b"mcp-session-id", b"last-event-id", b"mcp-protocol-version"):
            known = b"" if name == b"mcp-session-id" else b"mcp-session-id: " + stage.session.encode() + b"\r\n"
            head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" + known
            reply = await send_raw(stage.port, head + name + b": " + value + b"\r\ncontent-length: 2\r\n\r\n{}")
            assert 400 <= reply.status < 500
            assert set(reply.headers) <= {"date", "content-type", "content-length", "connection"}
        await still_serves(stage)


@on_loop
async def test_what_is_no_http_is_refused() -> None:
    async with serving(HURRIED) as stage:
        assert (await send_raw(stage.port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")).status == 400


@on_loop
async def test_a_length_and_chunks_together_are_refused() -> None:
    async with serving(HURRIED) as stage:
        both = (
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        assert (await send_raw(stage.port, both)).status == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\xff\xfe{}", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"x":' * 5_000 + b"1" + b"}" * 5_001, TOO_DEEP),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"x":' * 500 + b"1" + b"}" * 501, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"id":2}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"method":"initialize"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{}}', -32600),
        (b'{"jsonrpc":"2.0","method":"ping","params":{},"id":1,"id":2}', -32600),
        (b'{"jsonrpc":"2.0","method":"ping","params":{},"id":1,"x":1,"id":2}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"x":1,"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}]', -32600),
    ],
)
@on_loop
async def test_what_is_no_message_gets_400_and_no_further(body: bytes, code: int) -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reply = await stage.post(body)
        assert reply.status == 400
        assert (await reply.frame())["error"]["code"] == code
        assert stage.server.hears_nothing()
        await still_serves(stage)


@on_loop
async def test_an_answer_that_nobody_asked_for_is_passed_or_dropped_but_harmless() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        assert (await stage.post({"jsonrpc": "2.0", "id": "never", "result": {}})).status == 202
        calling = stage.call(2)
        while (await stage.server.hear()).get("id") != 2:
            pass
        stage.server.answer(99, **content("nobody asked"))
        stage.server.answer(2, **content("hello"))
        assert text_of(await (await within(calling)).frame()) == "hello"


@on_loop
async def test_a_delete_that_is_replayed_finds_nothing() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        assert [(await stage.delete()).status for _ in range(3)] == [204, 404, 404]


@on_loop
async def test_one_clients_delete_leaves_others_alone() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        first, stage.session = stage.session, ""
        kept = stage.servers.pop()
        await stage.open()
        await stage.delete()
        stage.session, stage.servers = first, [kept]
        await still_serves(stage)


@on_loop
async def test_a_reader_that_takes_nothing_holds_the_server_back_and_is_cut_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with serving(HURRIED) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        reply.reader._transport.pause_reading()  # type: ignore[attr-defined]
        while not stage.server.paused:
            stage.server.say(log_message("x" * 90_000))
            await asyncio.sleep(0)
        await until(lambda: not stage.server.paused)  # nobody reads any more: nobody is waited for
        await until(lambda: all(not session.visits for session in stage.front.sessions.all()))
        stage.server.answer(2, **content("done"))
        await still_serves(stage)
    assert "took nothing from its stream" in caplog.text


@on_loop
async def test_a_large_answer_that_nobody_takes_holds_the_server_back_and_is_cut_off() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        body = json.dumps(call(2)).encode()
        head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\ncontent-length: {len(body)}\r\n"
        head += f"content-type: application/json\r\nmcp-session-id: {stage.session}\r\n\r\n"
        writer.write(head.encode() + body)
        await stage.server.hear()
        stage.server.answer(2, **content("x" * 30_000_000))
        (session,) = stage.front.sessions.all()
        await until(lambda: session.transport.held)  # type: ignore[attr-defined]
        await until(lambda: not session.visits and not session.transport.held)  # type: ignore[attr-defined]
        await still_serves(stage)


@on_loop
async def test_a_large_answer_arrives_whole() -> None:
    async with serving() as stage:
        await stage.open()
        assert len(text_of(await stage.call_and_answer(2, "x" * 5_000_000))) == 5_000_000


@on_loop
async def test_memory_stays_bounded_while_nobody_reads() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        tracemalloc.start()
        for _ in range(300):
            stage.server.say(log_message("x" * 100_000))
            await asyncio.sleep(0)
        await until(lambda: tracemalloc.get_traced_memory()[0] < 5_000_000)
        tracemalloc.stop()


@on_loop
async def test_many_that_connect_and_leave_leave_nothing() -> None:
    async with serving(HURRIED) as stage:
        before = len(asyncio.all_tasks())
        await stage.open()
        for key in range(20):
            reply = await within(stage.call(key))
            reply.leave()
        while not stage.server.hears_nothing():
            await stage.server.hear()
        await until(lambda: all(not session.visits for session in stage.front.sessions.all()))
        await stage.delete()
        for _ in range(20):
            opening = await connect(stage.port)
            opening[1].write(b"POST /mcp HTTP/1.1\r\n")
            opening[1].close()
        stage.server.exit()
        await until(lambda: not len(stage.front.sessions))
        await until(lambda: len(asyncio.all_tasks()) == before)


@on_loop
async def test_an_initialize_whose_client_leaves_keeps_no_session() -> None:
    async with serving(HURRIED) as stage:
        opening = asyncio.create_task(stage.post(initialize()))
        await until(lambda: bool(stage.servers))
        await stage.server.hear()
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await hang_up()
        stage.server.exit()
        await until(lambda: not len(stage.front.sessions))


@on_loop
async def test_connections_are_kept_for_the_next_request() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        for _ in range(3):
            writer.write(b"GET /elsewhere HTTP/1.1\r\nhost: localhost\r\n\r\n")
            reply = await read_reply(reader, writer)
            assert reply.status == 404
            await reader.readexactly(int(reply.headers["content-length"]))


@on_loop
async def test_a_message_in_an_event_cannot_forge_another() -> None:
    async with serving(HURRIED) as stage:
        await stage.open()
        reply = await within(stage.call(2))
        await stage.server.hear()
        forged = (
            '{"jsonrpc":"2.0","method":"notifications/message",\r"params":{"level":"info","data":"a\\n\\ndata: b"}}\n'
        )
        stage.server.end.write(forged.encode())
        stage.server.answer(2, **content("\r\n\r\nid: 7\r\nretry: 1\r\n\r\n"))
        frames = await reply.frames()
        assert frames[0]["params"]["data"] == "a\n\ndata: b"
        assert text_of(frames[1]) == "\r\n\r\nid: 7\r\nretry: 1\r\n\r\n"
        assert call(2)["id"] == frames[1]["id"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /readyz RTSP/1.0\r\nHost: localhost",
        b"POST /mcp RTSP/1.0\r\nHost: localhost",
        b"SOURCE /mcp ICE/1.0\r\nHost: localhost",
        b"GET /readyz",
        b"GET /readyz HTTP/0.9\r\nHost: localhost",
        b"GET /readyz HTTP/2.0\r\nHost: localhost",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
@on_loop
async def test_what_is_not_http_1_or_has_another_coding_is_refused(head: bytes, size: int) -> None:
    async with serving() as stage:
        reader, writer = await connect(stage.port)
        data = head + b"\r\n\r\n"
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await asyncio.sleep(0)
        said = await within(reader.read())
        assert said.startswith(b"HTTP/1.1 400 ")
        writer.close()
