"""Requests of one POST that wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dragoman.transports.http.calls import Call
from dragoman.transports.http.streams import Connection, Ledger, Stream
from tests.transports.http.stage import call, on_loop, serving, within

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def asked() -> Call:
    return Call(frozenset((b"1",)), frozenset(), True, False, asyncio.get_running_loop().create_future())


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda one: one.answer(frozenset((b"1",)), ANSWER), ANSWER),
        (Call.give_up, b""),
        (lambda one: one.forgo(b"1"), b""),
    ],
    ids=["answered", "given up", "cancelled"],
)
def test_a_call_that_is_over_already_becomes_a_stream_that_ends(end: Callable[[Call], None], expected: bytes) -> None:
    """Both are due at once where something else has held up the loop."""

    async def main() -> None:
        one, stream, connection = asked(), Stream("p1", Ledger(lambda _: None, 1000, 10)), Connection()
        end(one)
        one.become_stream(stream)
        stream.attach(connection)
        assert expected.strip() in stream.take(connection)
        assert stream.finished

    asyncio.run(main())


@on_loop
async def test_a_stream_of_what_is_answered_at_once_ends() -> None:
    async with serving() as stage:
        await stage.open()
        reply = await within(asyncio.create_task(stage.post(call("x" * 2000), accept="text/event-stream")))
        (frame,) = await within(asyncio.create_task(reply.frames()))
        assert frame["error"]["code"] == -32600
