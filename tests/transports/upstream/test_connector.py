"""Reaching a host: several addresses, none, too late, and TLS that is none."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

import pytest

from dragoman.errors import TransportError
from dragoman.transports.upstream import connector as dialling
from dragoman.transports.upstream.connector import Address, dial, explain
from tests.support.ports import free_port
from tests.support.waiting import hang, run
from tests.transports.upstream.raw import OK, Line, ask, on_both_loops, raw_server, wire_to

PATIENT_S = 2.0


def listen(backlog: int = 8) -> tuple[socket.socket, Address]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
    return listener, (socket.AF_INET, listener.getsockname())


def closed_address() -> Address:
    return socket.AF_INET, ("127.0.0.1", free_port())


@on_both_loops
async def test_the_first_address_that_answers_is_taken() -> None:
    listener, there = listen()
    with listener, await dial([closed_address(), closed_address(), there, closed_address()]) as found:
        assert found.getpeername() == there[1]
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@on_both_loops
async def test_an_address_that_says_nothing_costs_a_moment_only() -> None:
    """A listener with a full queue drops what comes, as a firewall does."""
    silent, nowhere = listen(0)
    listener, there = listen()
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(nowhere[1])
    try:
        with listener, silent:
            async with asyncio.timeout(PATIENT_S):
                with await dial([nowhere, there]) as found:
                    assert found.getpeername() == there[1]
    finally:
        for filler in fillers:
            filler.close()


@on_both_loops
async def test_addresses_that_all_refuse_are_one_error() -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number says more
        await dial([closed_address(), closed_address()])
    assert caught.value.errno == errno.ECONNREFUSED


@on_both_loops
async def test_addresses_that_fail_in_their_own_ways_are_all_named() -> None:
    unroutable: Address = (socket.AF_INET, ("255.255.255.255", 1))
    with pytest.raises(OSError, match="; ") as caught:
        await dial([closed_address(), unroutable])
    assert explain(caught.value, "h").startswith("no connection: connection refused; ")


@on_both_loops
async def test_no_address_at_all_is_an_error() -> None:
    with pytest.raises(OSError):  # noqa: PT011 - it says nothing
        await dial([])


def test_families_take_turns() -> None:
    async def main() -> list[str]:
        found = [(socket.AF_INET6, 1, 6, "", (f"::{n}", 1, 0, 0)) for n in (1, 2)]
        found += [(socket.AF_INET, 1, 6, "", (f"127.0.0.{n}", 1)) for n in (1, 2, 3)]  # type: ignore[misc]

        async def getaddrinfo(*_: object, **__: object) -> object:
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
            return [address[1][0] for address in await dialling.resolve("h", 1)]

    assert run(main()) == ["::1", "127.0.0.1", "::2", "127.0.0.2", "127.0.0.3"]


@on_both_loops
async def test_a_name_of_the_machine_is_reached() -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(OK)

    async with raw_server(handle) as url, wire_to(url.replace("127.0.0.1", "localhost")) as wire:
        assert await ask(wire) == (200, b"ok")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (socket.gaierror(-2, "Name or service not known"), "the name h is not known"),
        (TimeoutError(), "no connection in time (--connect-timeout sets how long to wait)"),
        (
            TimeoutError(errno.ETIMEDOUT, "x"),
            "no connection in time (--connect-timeout sets how long to wait)",
        ),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "no connection: connection refused"),
        (OSError(errno.ENETUNREACH, "x"), "no connection: network is unreachable"),
        (ConnectionResetError(), "no connection: ConnectionResetError"),
        (
            ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong"),
            "no TLS connection: [SSL: WRONG_VERSION_NUMBER] wrong (does it speak plain HTTP there?)",
        ),
        (UnicodeError("label too long"), "its URL cannot be used: label too long"),
    ],
)
def test_what_goes_wrong_is_named(error: Exception, reason: str) -> None:
    assert reason in explain(error, "h")


@on_both_loops
async def test_a_server_without_tls_is_named() -> None:
    async def handle(line: Line) -> None:
        await line.reader.read(1)
        await line.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with raw_server(handle) as url, wire_to(url.replace("http", "https")) as wire:
        with pytest.raises(TransportError, match=r"no TLS connection: .*SSL"):
            await ask(wire)


@on_both_loops
async def test_a_handshake_that_does_not_end_is_not_waited_for() -> None:
    async def handle(line: Line) -> None:
        await line.reader.read(1)
        await hang()

    async with raw_server(handle) as url, wire_to(url.replace("http", "https"), connect_timeout_s=0.2) as wire:
        with pytest.raises(TransportError, match="no connection in time"):
            await ask(wire)


@on_both_loops
async def test_a_server_that_closes_during_the_handshake_is_named() -> None:
    async def handle(line: Line) -> None:
        await line.reader.read(1)

    async with raw_server(handle) as url, wire_to(url.replace("http", "https")) as wire:
        with pytest.raises(TransportError, match=r"no (TLS )?connection: "):
            await ask(wire)


@pytest.mark.parametrize("url", ["http://a..b/", "http://a b/", f"http://{'a' * 64}.b/"])
@on_both_loops
async def test_a_url_that_names_no_host_is_named(url: str) -> None:
    async with wire_to(url) as wire:
        with pytest.raises(TransportError, match=r"cannot be|not known|label"):
            await ask(wire)
