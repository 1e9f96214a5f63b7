"""Through a proxy that others wrote, where it is installed: tinyproxy, before a server with TLS and one without."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.errors import TransportError
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.transports.upstream.raw import OK, Line, ask, on_both_loops, raw_server, wire_to
from tests.transports.upstream.test_tls import certificate, context  # noqa: F401

PROGRAM = shutil.which("tinyproxy", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin", "/usr/sbin")))

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="tinyproxy is not installed")


async def answer_all(line: Line) -> None:
    while await line.request():
        await line.say(OK)


@contextlib.asynccontextmanager
async def tinyproxy(folder: Path) -> AsyncIterator[str]:
    """Run it on loopback; give its address. It wants credentials."""
    assert PROGRAM is not None
    port, file, log = free_port(), folder / "tinyproxy.conf", folder / "log"
    settings = f'Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nBasicAuth ann secret\nLogFile "{log}"\n'
    file.write_text(settings)
    process = await asyncio.create_subprocess_exec(PROGRAM, "-d", "-c", str(file), stdout=-3, stderr=-3)
    try:
        await until(lambda: _listens(port))
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize("with_tls", [True, False])
@on_both_loops
async def test_a_server_is_reached_with_credentials(
    certificate: Path,  # noqa: F811
    tmp_path: Path,
    with_tls: bool,
) -> None:
    options = {"ssl": context(certificate)} if with_tls else {}
    async with raw_server(answer_all, **options) as url, tinyproxy(tmp_path) as address:
        config = {"proxy": f"http://ann:secret@{address}", "ca_file": str(certificate)}
        async with wire_to(url, **config) as wire:
            assert await ask(wire) == (200, b"ok")
            assert await ask(wire) == (200, b"ok")


@on_both_loops
async def test_without_credentials_it_is_the_proxy_that_wants_some(
    certificate: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    async with raw_server(answer_all, ssl=context(certificate)) as url, tinyproxy(tmp_path) as address:
        config = {"proxy": f"http://{address}", "ca_file": str(certificate)}
        async with wire_to(url, **config) as wire:
            with pytest.raises(TransportError, match=rf"the proxy {address} \(as configured\): it wants credentials"):
                await ask(wire)
