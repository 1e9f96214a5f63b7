"""The listening socket, and what becomes of its connections."""

from __future__ import annotations

import socket
import time

import pytest

from dragoman.errors import TransportClosed
from dragoman.transports.http.serve import Address, bind, describe
from tests.transports.http.stage import on_loop, serving


def test_a_free_port_is_picked_and_named() -> None:
    with bind(Address()) as listener:
        assert describe(listener, Address(), "/mcp") == f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


def test_an_address_with_colons_is_named_in_brackets() -> None:
    with bind(Address()) as listener:
        assert describe(listener, Address("::1"), "/").startswith("http://[::1]:")


def test_a_port_that_is_taken_is_an_error() -> None:
    with bind(Address()) as listener, pytest.raises(TransportClosed, match="cannot listen: Address already in use"):
        bind(Address(port=listener.getsockname()[1]))


def test_connections_do_not_wait_for_acknowledgements() -> None:
    # What asyncio looks at before it switches Nagle's algorithm off.
    with bind(Address()) as listener:
        assert listener.proto == socket.IPPROTO_TCP


@on_loop
async def test_an_answer_takes_no_forty_milliseconds() -> None:
    async with serving() as stage:
        await stage.open()
        times = []
        for key in range(5):
            before = time.perf_counter()
            await stage.call_and_answer(f"k{key}")
            times.append(time.perf_counter() - before)
        assert min(times) < 0.03
