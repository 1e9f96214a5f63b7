"""Closing: what was said last is heard, and nobody is waited for without end."""

from __future__ import annotations

import asyncio
import select
import socket
import struct

import pytest

from dragoman.transports.http.closing import ClosingTransport, has_gone
from tests.transports.http.stage import on_loop, within


class Far(asyncio.Protocol):
    """The end of a connection whose other end is played by a test."""

    def __init__(self) -> None:
        self.lost = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


async def pair(is_unheard: bool) -> tuple[ClosingTransport, Far, socket.socket]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    transport, protocol = await asyncio.get_running_loop().create_connection(Far, sock=ours)
    return ClosingTransport(transport, lambda: is_unheard, 0.1), protocol, theirs


@on_loop
async def test_a_client_that_does_not_take_the_rest_is_cut_off() -> None:
    closer, far, client = await pair(is_unheard=False)
    closer.write(b"x" * 5_000_000)
    closer.close()
    assert closer.is_closing()
    await within(far.lost)
    client.close()


@on_loop
async def test_a_client_that_takes_the_rest_gets_all_of_it() -> None:
    closer, far, client = await pair(is_unheard=False)
    closer.write(b"x" * 1_000_000)
    closer.close()
    got, loop = 0, asyncio.get_running_loop()
    while part := await within(loop.sock_recv(client, 65536)):
        got += len(part)
    assert got == 1_000_000
    await within(far.lost)
    closer.lose()
    client.close()


@on_loop
async def test_a_client_that_has_cut_its_connection_is_waited_for_no_longer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    transport, far = await asyncio.get_running_loop().create_connection(Far, sock=ours)
    closer = ClosingTransport(transport, lambda: True, 0.1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    closer.close()
    await within(far.lost)
    closer.lose()


@on_loop
async def test_a_client_that_is_still_sending_hears_the_end_before_the_connection_closes() -> None:
    closer, far, client = await pair(is_unheard=True)
    closer.write(b"no")
    closer.close()
    closer.write(b"never")
    assert (await within(asyncio.get_running_loop().sock_recv(client, 100)), closer.is_lingering) == (b"no", True)
    client.send(b"what nobody wants")
    assert await within(asyncio.get_running_loop().sock_recv(client, 100)) == b""
    assert not far.lost.done()
    client.close()
    await within(far.lost)
    closer.lose()


@pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="this system does not say so")
@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_peer_that_closed_behind_what_nobody_has_read_has_gone_where_a_goodbye_counts(says_goodbye: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
        with ours:
            client.sendall(b"what nobody has read")
            assert not has_gone(ours, says_goodbye)
            client.close()
            assert has_gone(ours, says_goodbye) is says_goodbye


@pytest.mark.skipif(not hasattr(select, "poll"), reason="this system does not say so")
def test_a_peer_that_was_cut_off_has_gone_without_a_goodbye() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
        with ours:
            client.sendall(b"what nobody has read")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            assert has_gone(ours, says_goodbye=False)


def test_a_system_without_poll_says_nothing_of_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll", raising=False)
    ours, theirs = socket.socketpair()
    theirs.close()
    assert not has_gone(ours, says_goodbye=True)
    ours.close()
