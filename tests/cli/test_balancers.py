"""The examples for balancers: one of two proxies is stopped under load, and no call fails."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.test_listen import ROOT, SERVER, listening
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

EXAMPLES = ROOT / "examples" / "service"
PLACES = ("127.0.0.1:8000", "127.0.0.1:8081", "127.0.0.1:8082")
COMMANDS = {
    "haproxy.cfg": ("haproxy", "-f"),
    "nginx.conf": ("nginx", "-g", "daemon off; pid {folder}/pid; error_log {folder}/log;", "-e", "{folder}/log", "-c"),
    "Caddyfile": ("caddy", "run", "--adapter", "caddyfile", "--config"),
}
BALANCERS = [
    pytest.param(
        file,
        marks=pytest.mark.skipif(shutil.which(command[0]) is None, reason=f"{command[0]} is not installed"),
        id=command[0],
    )
    for file, command in COMMANDS.items()
]
NAMES = tuple(f"user-{number}" for number in range(6))
CALLS_AFTER = 30
"""How many calls each client makes after the signal, at least: the last of them with one proxy alone."""


class Client(threading.Thread):
    """Calls one tool after the other, until it is told to stop."""

    def __init__(self, port: int, name: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.port, self.secret, self.stop = port, f"secret-of-{name}-0001", stop
        self.calls, self.failed = 0, list[str]()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        for number in itertools.count(1):
            if self.stop.is_set():
                break
            told = self.call(connection, number)
            self.calls += 1
            if '"result"' not in told:
                self.failed.append(told)
        connection.close()

    def call(self, connection: http.client.HTTPConnection, number: int) -> str:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        frame = {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": "tool_1", "arguments": {"path": "p"}, "_meta": meta},
        }
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "tool_1",
            "Authorization": f"Bearer {self.secret}",
        }
        try:
            connection.request("POST", "/mcp", json.dumps(frame), headers)
            answer = connection.getresponse()
            return f"{answer.status} {answer.read().decode()}"
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return repr(error)


@contextmanager
def balancer(file: str, folder: Path, places: dict[str, int]) -> Iterator[None]:
    """Run a balancer by its example, at other ports."""
    text = (EXAMPLES / file).read_text()
    for place, port in places.items():
        assert place in text
        text = text.replace(place, f"127.0.0.1:{port}")
    (folder / file).write_text(text)
    command = [part.format(folder=folder) for part in COMMANDS[file]]
    log = folder / "output"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(folder / file)],
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(places[PLACES[0]]))
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text("".join(f"{name} secret-of-{name}-0001\n" for name in NAMES))
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("file", BALANCERS)
def test_one_of_two_is_stopped_and_no_call_fails(file: str, tokens: Path, tmp_path: Path) -> None:
    ports = dict(zip(PLACES, (free_port() for _ in PLACES), strict=True))
    with ExitStack() as stack:
        proxies = [
            stack.enter_context(
                listening(
                    *("--auth-token-file", str(tokens), "--scope", "principal", "--shutdown-delay", "3"),
                    url=f"http://127.0.0.1:{ports[place]}",
                    server=[*SERVER[:-1], "2026-07-28"],
                )
            )
            for place in PLACES[1:]
        ]
        stack.enter_context(balancer(file, tmp_path, ports))
        stop = threading.Event()
        stack.callback(stop.set)
        clients = [Client(ports[PLACES[0]], name, stop) for name in NAMES]
        for client in clients:
            client.start()
        wait_until(lambda: all(client.calls >= CALLS_AFTER for client in clients))
        proxies[0].process.send_signal(signal.SIGTERM)
        assert proxies[0].process.wait(PATIENCE_S) == 143
        before = [client.calls for client in clients]
        wait_until(lambda: all(c.calls >= b + CALLS_AFTER for c, b in zip(clients, before, strict=True)))
        stop.set()
        for client in clients:
            client.join(PATIENCE_S)
        failed = [told for client in clients for told in client.failed]
        if file == "nginx.conf":  # it learns that an instance has ended from the first request that it cannot send
            assert len(failed) <= len(clients)
            failed = [told for told in failed if not told.startswith("502")]
        assert failed == []
