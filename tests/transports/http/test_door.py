"""From accept on: TLS handshakes have a deadline, count, and hold nothing up."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.transports.http import door, sessions
from dragoman.transports.http.config import FrontConfig, Limits, Patience
from dragoman.transports.http.door import Door
from dragoman.transports.http.serve import Address, bind
from dragoman.transports.http.site import Budget, Site
from tests.support.waiting import pass_time
from tests.transports.http.stage import on_loop, serving, until, within
from tests.transports.http.wire import connect, read_reply

ASK = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n"
HELLO_BEGINS = b"\x16\x03\x01\x02\x00\x01\x00"
HURRIED = Patience(headers_s=0.3, body_s=0.3)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-nodes", "-days", "1", "-keyout", str(path.with_name("key.pem")), "-out", str(path)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *options, *subject]
    try:
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl to make a certificate")
    return path


def over_tls(certificate: Path) -> Address:
    return Address(certificate=str(certificate), key=str(certificate.with_name("key.pem")))


async def connect_tls(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


@on_loop
async def test_requests_are_served_over_tls(certificate: Path) -> None:
    async with serving(FrontConfig(patience=HURRIED), over_tls(certificate)) as stage:
        reader, writer = await connect_tls(stage.port)
        writer.write(ASK)
        assert (await read_reply(reader, writer)).status == 404
        writer.transport.abort()


@pytest.mark.parametrize("said", [b"", HELLO_BEGINS, b"GET / HTTP/1.1\r\n\r\n"])
@on_loop
async def test_a_handshake_that_does_not_end_is_cut_off(certificate: Path, said: bytes) -> None:
    async with serving(FrontConfig(patience=HURRIED), over_tls(certificate)) as stage:
        reader, writer = await connect(stage.port)
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            assert b"HTTP" not in await within(reader.read())
        assert not stage.connections


@on_loop
async def test_silence_after_the_handshake_is_cut_off(certificate: Path) -> None:
    async with serving(FrontConfig(patience=HURRIED), over_tls(certificate)) as stage:
        reader, writer = await connect_tls(stage.port)
        assert await within(reader.read()) == b""
        writer.transport.abort()
        await until(lambda: not stage.connections)


@on_loop
async def test_connections_in_their_handshake_count(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "SURPLUS", 1)
    async with serving(FrontConfig(limits=Limits(connections=2)), over_tls(certificate)) as stage:
        silent = [await connect(stage.port) for _ in range(2)]
        reader, writer = await connect_tls(stage.port)
        writer.write(ASK)
        assert (await read_reply(reader, writer)).status == 503
        reader, fourth = await connect(stage.port)
        silent.append((reader, fourth))
        writer.transport.abort()
        await until(lambda: not stage.connections)
        for _, other in silent:
            other.close()


@on_loop
async def test_handshakes_do_not_hold_up_the_end(certificate: Path) -> None:
    loop = asyncio.get_running_loop()
    async with serving(address=over_tls(certificate)) as stage:
        silent = [socket.create_connection(("127.0.0.1", stage.port)) for _ in range(5)]
        for connection in silent[2:]:
            connection.sendall(HELLO_BEGINS)
        done = [await connect_tls(stage.port) for _ in range(3)]
        await until(lambda: len(stage.connections) == 3)
        for reader, _ in done:
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # says no goodbye
        began = loop.time()
    assert loop.time() - began < 2.0
    for connection in silent:
        connection.close()
    for _, writer in done:
        writer.transport.abort()


class Exhausted:
    """A listening socket of a process that has no descriptor left, once."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.refused = 0

    def accept(self) -> Any:
        if not self.refused:
            self.refused += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self.listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listener, name)


@on_loop
async def test_accepting_rests_while_the_system_has_no_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "_REST_S", 0.05)
    listener = Exhausted(bind(Address()))
    config = FrontConfig()
    site = Site(None, config, Budget(config.limits.memory_bytes, config.limits.body_bytes))
    entrance = Door(listener, None, site)  # type: ignore[arg-type]
    entrance.open()
    _, writer = await connect(listener.getsockname()[1])
    await until(lambda: bool(site.connections))
    assert listener.refused == 1
    assert "no connection can be accepted: OSError: [Errno 24] Too many open files" in caplog.text
    entrance.close()
    writer.close()


async def leave_before(port: int, _: Path) -> None:
    _, writer = await connect(port)
    writer.close()


async def leave_after(port: int, _: Path) -> None:
    _, writer = await connect_tls(port)
    writer.transport.abort()


async def leave_a_websocket(port: int, certificate: Path) -> None:
    reader, writer = await connect_tls(port)
    writer.write(
        b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    assert (await read_reply(reader, writer)).status == 404
    writer.transport.abort()


@pytest.mark.parametrize("leave", [leave_before, leave_after, leave_a_websocket])
@on_loop
async def test_whoever_made_the_front_may_tidy_up_after_many_connections_have_ended(
    leave: Callable[[int, Path], Awaitable[None]], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CONNECTIONS", 3)
    tidied: list[int] = []
    config = FrontConfig(patience=Patience(tidy_s=0.01))
    async with serving(config, over_tls(certificate), tidy=lambda: tidied.append(1)) as stage:
        for _ in range(2):
            await leave(stage.port, certificate)
        await until(lambda: not stage.connections)
        await pass_time(0.05)
        assert not tidied
        await leave(stage.port, certificate)
        await until(lambda: bool(tidied))
