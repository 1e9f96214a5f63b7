"""Bodies in many short chunks, on several connections at once: others have a turn between pieces, on both sides."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.transports.http.connection import ServedConnection
from dragoman.transports.pieces import PARTS_AT_ONCE, parse_pieces, rest_after
from dragoman.transports.upstream.connection import HttpConnection
from tests.support.waiting import run, until
from tests.transports.http.stage import content, on_loop, serving, text_of
from tests.transports.http.wire import connect
from tests.transports.upstream.test_connection import Socket

MANY = 16
MOST_PARTS = 2 * MANY * 1000
"""How many parts may be parsed until others have a turn: of each connection, some of the first that came."""


def in_chunks(body: bytes) -> bytes:
    """Write a body with a chunk for each byte."""
    return b"".join(b"1\r\n%b\r\n" % bytes([byte]) for byte in body) + b"0\r\n\r\n"


async def most_at_once(count: Callable[[], int], is_over: Callable[[], bool]) -> int:
    """Give how many more there were at most from one turn of the loop to the next."""
    most = before = 0
    while not is_over():
        await asyncio.sleep(0)
        most, before = max(most, count() - before), count()
    return most


@on_loop
async def test_clients_with_very_short_chunks_leave_turns_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, on_body = 0, ServedConnection.on_body

    def count(connection: ServedConnection, body: bytes) -> None:
        nonlocal parts
        parts += 1
        on_body(connection, body)

    monkeypatch.setattr(ServedConnection, "on_body", count)
    async with serving() as stage:
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        flood = head + b"transfer-encoding: chunked\r\n\r\n" + in_chunks(b" " * 30_000)
        peers = [socket.create_connection(("127.0.0.1", stage.port)) for _ in range(MANY)]
        try:
            sent = 0
            for peer in peers:
                peer.setblocking(False)
                sent += peer.send(flood)
            assert sent > MANY * 40_000, "else it shows nothing"
            assert await most_at_once(lambda: parts, lambda: parts >= sent // 7) < MOST_PARTS
        finally:
            for peer in peers:
                peer.close()


@on_loop
async def test_a_body_in_very_short_chunks_is_the_same_body_and_what_follows_is_served() -> None:
    async with serving() as stage:
        await stage.open()
        reader, writer = await connect(stage.port)
        posts = b""
        for key in (7, 8):
            call = {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": {"name": "x" * 3000 + str(key)}}
            named = stage.headers({"host": "localhost", "content-type": "application/json"})
            lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if name != "accept")
            head = f"POST /mcp HTTP/1.1\r\n{lines}accept: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            posts += head.encode() + in_chunks(json.dumps(call).encode())
        writer.write(posts)
        for key in (7, 8):
            heard = await stage.server.hear()
            assert heard["params"]["name"] == "x" * 3000 + str(key)
            stage.server.answer(key, **content(f"answer {key}"))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            assert text_of(json.loads(await reader.readexactly(length))) == f"answer {key}"
        writer.close()


def begin(answer: bytes) -> tuple[HttpConnection, Any, list[bool]]:
    freed: list[bool] = []
    connection = HttpConnection("peer", lambda _, again: freed.append(again), lambda _: None)
    connection.connection_made(Socket())
    response = connection.begin(b"", None, lambda: None, None)
    connection.data_received(answer)
    return connection, response, freed


def test_an_answer_in_very_short_chunks_is_parsed_in_pieces_and_whole_in_the_end() -> None:
    async def main() -> None:
        body = bytes(range(256)) * 40
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + in_chunks(body)
        begun = [begin(answer) for _ in range(MANY)]
        assert all(not response.complete and len(response.show()) < 1000 for _, response, _ in begun)
        await until(lambda: all(response.complete for _, response, _ in begun))
        assert {bytes(response.show()) for _, response, _ in begun} == {body}

    run(main())


def test_what_follows_an_answer_in_pieces_is_not_the_next_one() -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = head + in_chunks(b"x" * 500)
        filled = answer.replace(b"OK", b"OK" + b"K" * (4096 - len(answer)))
        assert len(filled) == 4096
        _, response, freed = begin(filled + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        assert response.complete
        response.close()
        assert freed == [False], "the connection is of no use any more"

    run(main())


def test_connections_rest_behind_each_other() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        rests = [rest_after(loop, 1000) for _ in range(5)]
        assert all(later > before for before, later in itertools.pairwise(rests))

    run(main())


def test_pieces_are_all_that_came() -> None:
    data = bytes(range(256)) * 700
    parsed: list[bytes] = []

    def take(piece: bytes) -> bool:
        parsed.append(piece)
        return len(parsed) < 2

    assert b"".join((*parsed, parse_pieces(data, take))) == data[sum(map(len, parsed)) :]
    assert b"".join(parsed) == data[: sum(map(len, parsed))]
    assert len(parsed) == 2
    assert PARTS_AT_ONCE > 10, "bodies that are not odd are read at once"
