"""Closing: what was said last is heard, and nobody is waited for without end."""

from __future__ import annotations

import asyncio
import socket

from dragoman.transports.http.corked import Corked
from tests.transports.http.stage import on_loop, within


class Far(asyncio.Protocol):
    """The end of a connection whose other end is played by a test."""

    def __init__(self) -> None:
        self.lost = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


async def pair(is_unheard: bool) -> tuple[Corked, Far, socket.socket]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    transport, protocol = await asyncio.get_running_loop().create_connection(Far, sock=ours)
    return Corked(transport, lambda: is_unheard, 0.1), protocol, theirs


@on_loop
async def test_a_client_that_does_not_take_the_rest_is_cut_off() -> None:
    corked, far, client = await pair(is_unheard=False)
    corked.write(b"x" * 5_000_000)
    corked.close()
    assert corked.is_closing()
    await within(far.lost)
    client.close()


@on_loop
async def test_a_client_that_takes_the_rest_gets_all_of_it() -> None:
    corked, far, client = await pair(is_unheard=False)
    corked.write(b"x" * 1_000_000)
    corked.close()
    got, loop = 0, asyncio.get_running_loop()
    while part := await within(loop.sock_recv(client, 65536)):
        got += len(part)
    assert got == 1_000_000
    await within(far.lost)
    corked.forget()
    client.close()


@on_loop
async def test_a_client_that_is_still_sending_hears_the_end_before_the_connection_closes() -> None:
    corked, far, client = await pair(is_unheard=True)
    corked.write(b"no")
    corked.close()
    corked.write(b"never")
    assert (await within(asyncio.get_running_loop().sock_recv(client, 100)), corked.is_lingering) == (b"no", True)
    client.send(b"what nobody wants")
    assert await within(asyncio.get_running_loop().sock_recv(client, 100)) == b""
    assert not far.lost.done()
    client.close()
    await within(far.lost)
    corked.forget()
