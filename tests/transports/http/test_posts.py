"""Requests of one POST that wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dragoman.transports.http.streamable_session import PostedCall
from dragoman.transports.http.streams import Ledger, Stream
from tests.support.waiting import run
from tests.transports.http.stage import call, content, log_message, on_loop, serving, within

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def asked() -> PostedCall:
    return PostedCall(frozenset((b"1",)), True, False)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda one: (one.keys.clear(), one.answer(ANSWER)), ANSWER),
        (PostedCall.end, b""),
        (lambda one: one.forgo(b"1"), b""),
    ],
    ids=["answered", "given up", "cancelled"],
)
def test_a_call_that_is_over_already_becomes_a_stream_that_ends(
    end: Callable[[PostedCall], None], expected: bytes
) -> None:
    """Both are due at once where something else has held up the loop."""

    async def main() -> None:
        one, stream = asked(), Stream("p1", Ledger(lambda _: None, 1000, 10))
        end(one)
        one.become_stream(stream)
        assert one.connection is not None
        assert expected.strip() in stream.take(one.connection)
        assert stream.finished

    run(main())


@on_loop
async def test_a_stream_of_what_is_answered_at_once_ends() -> None:
    async with serving() as stage:
        await stage.open()
        reply = await within(asyncio.create_task(stage.post(call("x" * 2000), accept="text/event-stream")))
        (frame,) = await within(asyncio.create_task(reply.frames()))
        assert frame["error"]["code"] == -32600


@on_loop
async def test_very_many_frames_at_once_all_reach_the_post_that_waits() -> None:
    """None is dropped before it is the turn of whoever sends them."""
    async with serving() as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        stage.server.say(*(log_message(str(number)) for number in range(3000)))
        stage.server.answer(2, **content("done"))
        frames = await within(asyncio.create_task((await within(calling)).frames()))
        assert [frame["params"]["data"] for frame in frames[:-1]] == [str(number) for number in range(3000)]
