"""Through proxies that others wrote, before TLS and without: proxy.py; squid and tinyproxy where they are installed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dragoman.errors import TransportError
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.transports.upstream.raw import OK, Line, ask, on_both_loops, raw_server, wire_to
from tests.transports.upstream.test_tls import certificate, context  # noqa: F401

SETTINGS = {
    "squid": """\
http_port 127.0.0.1:{port}
visible_hostname localhost
pid_filename none
cache deny all
access_log none
cache_log {folder}/log
coredump_dir {folder}
shutdown_lifetime 0 seconds
auth_param basic program /bin/sh {folder}/helper
auth_param basic children 1
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
""",
    "tinyproxy": """\
Port {port}
Listen 127.0.0.1
Timeout 60
MaxClients 20
BasicAuth ann secret
LogFile "{folder}/log"
""",
}
HELPER = 'while read -r line; do if [ "$line" = "ann secret" ]; then echo OK; else echo ERR; fi; done\n'
OPTIONS = {"squid": ("-N", "-f"), "tinyproxy": ("-d", "-c")}
PLAIN = (
    *(sys.executable, "-m", "proxy", "--hostname", "127.0.0.1", "--port", "0", "--basic-auth", "ann:secret"),
    *("--num-acceptors", "1", "--num-workers", "1", "--threaded", "--log-file", "log", "--port-file", "port"),
)
"""proxy.py, which comes by pip. It writes the port that it has found to a file, once it listens."""
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin", "/usr/sbin"))


@pytest.fixture(params=[*sorted(SETTINGS), "proxy.py"])
def proxy(request: pytest.FixtureRequest) -> Iterator[tuple[Path, list[str]]]:
    """The command of a proxy that wants credentials, and the file that has the port where it will listen."""
    name = request.param
    if name == "proxy.py":
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "port", [*PLAIN]
        return
    program = shutil.which(name, path=PLACES)
    if program is None:
        pytest.skip(f"{name} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)  # squid becomes somebody else, where it is started by root
        port = free_port()
        file, helper = Path(folder) / "settings", Path(folder) / "helper"
        file.write_text(SETTINGS[name].format(port=port, folder=folder))
        helper.write_text(HELPER)
        (Path(folder) / "port").write_text(f"{port}\n")
        yield Path(folder) / "port", [program, *OPTIONS[name], str(file)]


async def answer_all(line: Line) -> None:
    while await line.request():
        await line.say(OK)


@contextlib.asynccontextmanager
async def running(proxy: tuple[Path, list[str]]) -> AsyncIterator[str]:
    """Run it on loopback; give its address."""
    port, command = proxy
    process = await asyncio.create_subprocess_exec(
        *command, stdout=-3, stderr=-3, cwd=port.parent, start_new_session=True
    )
    try:
        await until(lambda: port.exists() and port.read_text().endswith("\n"), 30)
        number = int(port.read_text())
        if command[0] == sys.executable:
            port.unlink()  # the next one of this test will have another
        else:
            await until(lambda: _listens(number))
        yield f"127.0.0.1:{number}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # it may have children
        await process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize("with_tls", [True, False])
@on_both_loops
async def test_a_server_is_reached_with_credentials(
    certificate: Path,  # noqa: F811
    proxy: tuple[Path, list[str]],
    with_tls: bool,
) -> None:
    options = {"ssl": context(certificate)} if with_tls else {}
    async with raw_server(answer_all, **options) as url, running(proxy) as address:
        config = {"proxy": f"http://ann:secret@{address}", "ca_file": str(certificate)}
        async with wire_to(url, **config) as wire:
            assert await ask(wire) == (200, b"ok")
            assert await ask(wire) == (200, b"ok")


@pytest.mark.parametrize(
    ("credentials", "said"), [("", "it wants credentials"), ("ann:wrong@", "it does not accept the user")]
)
@pytest.mark.parametrize("with_tls", [True, False])
@on_both_loops
async def test_without_good_credentials_it_is_the_proxy_that_wants_some(
    certificate: Path,  # noqa: F811
    proxy: tuple[Path, list[str]],
    credentials: str,
    said: str,
    with_tls: bool,
) -> None:
    options = {"ssl": context(certificate)} if with_tls else {}
    async with raw_server(answer_all, **options) as url, running(proxy) as address:
        config = {"proxy": f"http://{credentials}{address}", "ca_file": str(certificate)}
        async with wire_to(url, **config) as wire:
            with pytest.raises(TransportError, match=rf"the proxy {address} \(as configured\): {said}"):
                await ask(wire)
