"""Clients and balancers that speak HTTP/1.0: they know no chunks and no word before the answer."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.waiting import pass_time
from tests.transports.http.stage import call, content, log_message, on_loop, serving, within
from tests.transports.http.wire import EventReader, connect, read_reply


def write(stage_port: int, line: str, body: bytes = b"", **headers: str) -> bytes:
    """Write a request as HTTP/1.0 has it."""
    given = {"host": f"127.0.0.1:{stage_port}", "content-length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"{line} HTTP/1.0\r\n{lines}\r\n".encode() + body


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@on_loop
async def test_a_stream_has_no_chunks_and_ends_with_its_connection(connection: str) -> None:
    """ "A server MUST NOT send a response containing Transfer-Encoding unless the corresponding request indicates
    HTTP/1.1 (or later minor revisions)" (RFC 9112, 6.1)."""
    async with serving() as stage:
        await stage.open()
        headers = stage.headers({"content_type": "application/json", "connection": connection})
        reader, writer = await connect(stage.port)
        writer.write(write(stage.port, "POST /mcp", json.dumps(call(2)).encode(), **headers))
        await stage.server.hear()
        stage.server.say(log_message("half"))
        stage.server.answer(2, **content("done"))
        reply = await read_reply(reader, writer)
        events = EventReader().feed(await within(reader.read()))
        assert (reply.status, reply.headers.get("transfer-encoding")) == (200, None)
        assert (reply.headers["connection"], reply.headers["content-type"]) == ("close", "text/event-stream")
        assert [event.frame.get("id") for event in events if event.data] == [None, 2]


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
@on_loop
async def test_a_stream_of_its_own_has_no_chunks(path: str) -> None:
    async with serving() as stage:
        await stage.open()
        headers = stage.headers({"accept": "text/event-stream"})
        reader, writer = await connect(stage.port)
        writer.write(write(stage.port, f"GET {path}", **headers))
        reply = await read_reply(reader, writer)
        assert reply.headers.get("transfer-encoding") is None
        if path == "/mcp":
            stage.server.say(log_message("first"))
        assert (await within(reader.readline())).startswith(b"event:")


@on_loop
async def test_no_word_comes_before_the_answer() -> None:
    """ "A server that receives a 100-continue expectation in an HTTP/1.0 request MUST ignore that expectation" (RFC
    9110, 10.1.1)."""
    async with serving() as stage:
        await stage.open()
        headers = stage.headers({"content_type": "application/json", "expect": "100-continue"})
        head, _, body = write(stage.port, "POST /mcp", json.dumps(call(2)).encode(), **headers).partition(b"{")
        reader, writer = await connect(stage.port)
        writer.write(head)
        answering = asyncio.create_task(read_reply(reader, writer))
        await pass_time(0.05)  # a word would come now
        writer.write(b"{" + body)
        await stage.server.hear()
        stage.server.answer(2, **content("done"))
        assert (await within(answering)).status == 200
