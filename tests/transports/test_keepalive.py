"""Keepalive on connections that we open, that we accept, and on what is no TCP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from urllib.parse import urlsplit

import pytest

from dragoman.transports.http.serve import Address, bind
from dragoman.transports.keepalive import IDLE_S, INTERVAL_S, PROBES, keep_alive
from tests.transports.upstream.stage import Reply, Request, client, hello, on_loop, server
from tests.transports.upstream.test_websocket import socket_server

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the names and the inheritance are Linux's")


def options(connection: socket.socket) -> tuple[int, ...]:
    """Give whether it is on, after how long, how often and how many times it probes."""
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    on = connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    return bool(on), *(connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names)


@LINUX
def test_a_socket_gets_every_option() -> None:
    with socket.socket() as connection:
        keep_alive(connection)
        assert options(connection) == (True, IDLE_S, INTERVAL_S, PROBES)


def test_what_is_no_tcp_is_left_alone() -> None:
    one, other = socket.socketpair()
    with one, other:
        keep_alive(one)
        one.sendall(b"x")
        other.settimeout(60)
        assert other.recv(1) == b"x"


@LINUX
def test_accepted_connections_inherit_it() -> None:
    with bind(Address()) as listener, socket.create_connection(listener.getsockname()[:2]):
        listener.settimeout(60)
        accepted, _ = listener.accept()
        with accepted:
            assert options(accepted) == (True, IDLE_S, INTERVAL_S, PROBES)


@LINUX
@pytest.mark.parametrize("loop_factory", ["asyncio", "uvloop"])
def test_sockets_of_event_loops_can_have_it(loop_factory: str) -> None:
    library = pytest.importorskip(loop_factory)

    async def talk() -> None:
        with bind(Address()) as listener:
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            connection = writer.get_extra_info("socket")
            keep_alive(connection)
            assert options(connection) == (True, IDLE_S, INTERVAL_S, PROBES)
            writer.close()

    with asyncio.Runner(loop_factory=library.new_event_loop) as runner:
        runner.run(talk())


def options_of_connections_to(url: str) -> list[tuple[int, ...]]:
    """Give the options of each socket of this process that is connected to the port of a URL."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as connection:
            if connection.getpeername()[1:2] == (urlsplit(url).port,):
                found.append(options(connection))
    return found


@LINUX
@on_loop
async def test_connections_to_websocket_servers_have_it() -> None:
    async with socket_server() as (url, _), client(url):
        assert set(options_of_connections_to(url)) == {(True, IDLE_S, INTERVAL_S, PROBES)}


@LINUX
@on_loop
async def test_connections_to_http_servers_have_it() -> None:
    async def serve(request: Request, reply: Reply) -> None:
        if request.rpc == "initialize":
            await reply.result(request, hello())
        else:
            await reply.status("202 Accepted" if request.body else "405 Method Not Allowed")

    async with server(serve) as url, client(url):
        assert set(options_of_connections_to(url)) == {(True, IDLE_S, INTERVAL_S, PROBES)}
