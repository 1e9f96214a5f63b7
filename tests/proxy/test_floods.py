"""Peers that ask without end: what is kept of it has an end."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.exact_json import encode_line
from dragoman.pool import Scope
from tests.proxy.conversation import (
    READY,
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    initialized,
    opening,
    request,
    result,
    server,
)
from tests.support.waiting import run
from tests.transports.house import House, hear, say, settle, until

LIMIT_BYTES = 400_000
FLOOD = b"".join(encode_line(request(key, "sampling/createMessage")) for key in range(1000))


@pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED])
def test_a_server_that_asks_without_end_and_reads_nothing_is_given_up(scope: Scope) -> None:
    """The client declares nothing, so each question is refused; nobody takes the refusals."""

    async def main() -> None:
        house = House(scope)
        try:
            guest = await house.enter(limit_bytes=LIMIT_BYTES)
            guest.say(initialize("2024-11-05"))
            await until(lambda: house.servers)
            say(house.servers[0], initialized("2025-11-25", (await hear(house.servers[0]))["id"]))
            await hear(guest)
            guest.say(READY)
            guest.say(request(1, "tools/call", name="t"))
            await settle()
            last = house.servers[-1]
            last.transport.pause_reading()
            kept = [0]
            for _ in range(40):
                say(last, FLOOD)
                await settle(3)
                kept.append(last.transport._inbox_bytes)
            assert an_error(1, -32000, "reads nothing")(await hear(guest))
            assert max(kept) < 256 * 1024 + LIMIT_BYTES + 300 * len(FLOOD) // 100
        finally:
            await house.close()

    run(main())


def test_a_server_that_takes_a_break_is_not_given_up() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        try:
            guest = await house.open()
            peer = house.servers[0]
            await hear(peer)
            peer.transport.pause_reading()
            for key in range(8):
                guest.say(request(key, "tools/call", name="t", arguments={"x": "y" * 100_000}))
                await settle()
            peer.transport.resume_reading()
            for _ in range(8):
                say(peer, result((await hear(peer))["id"], {"content": []}))
            assert [(await hear(guest))["id"] for _ in range(8)] == list(range(8))
        finally:
            await house.close()

    run(main())


def test_how_many_requests_may_be_unanswered_can_be_chosen() -> None:
    hold(
        [
            *opening("2024-11-05", "2025-11-25", ["sampling"]),
            client(request(1, "ping")),
            expect_to_server(request(1, "ping")),
            client(request(2, "ping")),
            expect_to_client(an_error(2, -32000, "more than 1 requests of the client")),
            server(request("a", "ping")),
            expect_to_client(request("a", "ping")),
            server(request("b", "ping")),
            expect_to_server(an_error("b", -32000, "more than 1 requests of the server")),
        ],
        open_requests=1,
    )


def test_a_client_that_asks_without_end_is_told_so_and_the_rest_goes_on() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        try:
            guest = await house.open()
            peer = house.servers[0]
            await hear(peer)
            guest.say(b"".join(encode_line(request(key, "ping")) for key in range(5000)))
            await until(lambda: guest.lines.qsize() == 5000 - 4096)
            asked: list[Any] = [await hear(peer) for _ in range(4096)]
            answered = [await hear(guest) for _ in range(5000 - 4096)]
            assert all(an_error(frame["id"], -32000, "4096")(frame) for frame in answered)
            say(peer, result(asked[0]["id"], {}))
            assert await hear(guest) == result(0, {})
            guest.say(request("again", "ping"))
            assert (await hear(peer))["id"] == "again"
        finally:
            await house.close()

    run(main())
