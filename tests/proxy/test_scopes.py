"""`dragoman proxy --listen … --scope …` as a process: how many servers its clients get, and what each of them hears."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conversation import READY, initialize, request
from tests.proxy.test_per_request import NEW, asks
from tests.support import commands
from tests.support.lines import Lines

SERVER = [sys.executable, str(Path(__file__).parent / "servers" / "scripted.py")]
PATIENCE_S = 60


class Running:
    """A proxy that listens, and how often it has started its server."""

    def __init__(self, folder: Path, *options: str, server: Sequence[str] = ()) -> None:
        self.note = folder / "starts"
        line = [sys.executable, "-m", "dragoman", "proxy", "--listen", "http://127.0.0.1:0", *options]
        has_other = "--url" in options or "--config" in options
        command = [] if has_other else ["--", *(server or (*SERVER, "--note", str(self.note)))]
        self.process = commands.start([*line, *command], stderr=subprocess.PIPE)
        self.lines = Lines(self.process.stderr, PATIENCE_S)
        told = self.lines.read().decode()
        while "listening on" not in told:
            assert told, "the proxy has not started"
            told = self.lines.read().decode()
        self.port = int(told.rsplit(":", 1)[1].split("/")[0])

    @property
    def starts(self) -> int:
        return len(self.note.read_text().split())

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        _, told = self.lines.rest(self.process, PATIENCE_S)
        return told.decode()


class Client:
    """A client that takes plain JSON or a stream, and has at most one request under way."""

    def __init__(self, port: int, token: str = "") -> None:
        self.port = port
        self.headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    def post(self, frame: Any) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/mcp", json.dumps(frame), self.headers)
            reply = connection.getresponse()
            body = reply.read().decode()
            self.headers |= {k: v for k, v in [("mcp-session-id", reply.getheader("mcp-session-id"))] if v}
        finally:
            connection.close()
        if reply.getheader("content-type") == "text/event-stream":
            data = [line[6:] for line in body.splitlines() if line.startswith("data: {")]
            return json.loads(data[-1])
        return json.loads(body) if body else None

    def open(self, revision: str) -> None:
        answer = self.post(initialize(revision))
        assert answer["result"]["protocolVersion"] == revision
        self.headers["mcp-protocol-version"] = revision
        self.post(READY)

    def end(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("DELETE", "/mcp", headers=self.headers)
        connection.getresponse().read()
        connection.close()


@pytest.mark.parametrize(("scope", "starts"), [("client", 2), ("shared", 1)])
def test_clients_get_as_many_servers_as_the_scope_says(scope: str, starts: int, tmp_path: Path) -> None:
    running = Running(tmp_path, "--scope", scope)
    try:
        clients = [Client(running.port), Client(running.port)]
        for client, revision in zip(clients, ("2025-11-25", "2025-03-26"), strict=True):
            client.open(revision)
        for client in clients:
            for key in (1, "1", "x"):
                answer = client.post(request(key, "tools/call", name="t", arguments={"of": key}))
                assert (answer["id"], answer["result"]["echo"]["arguments"]) == (key, {"of": key})
        assert running.starts == starts
    finally:
        told = running.stop()
    assert ("one server for all client sessions" in told) is (scope == "shared"), told


def test_who_shows_the_same_secret_shares_a_server(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann secret-of-ann-0123456789\nben secret-of-ben-0123456789\n")
    running = Running(tmp_path, "--scope", "principal", "--auth-token-file", str(tokens))
    try:
        for name, starts in (("ann", 1), ("ben", 2), ("ann", 2)):
            client = Client(running.port, f"secret-of-{name}-0123456789")
            client.open("2025-06-18")
            assert client.post(request(1, "tools/list"))["id"] == 1
            assert running.starts == starts
    finally:
        running.stop()


def test_a_server_that_dies_is_started_again_for_the_next_session(tmp_path: Path) -> None:
    running = Running(tmp_path, "--scope", "shared")
    try:
        client = Client(running.port)
        client.open("2025-06-18")
        assert client.post(request(1, "tools/call", name="die"))["error"]["code"] == -32000
        again = Client(running.port)
        again.open("2025-06-18")
        again.end()
        assert running.starts == 2
    finally:
        running.stop()


def test_a_scope_that_is_gone_is_a_usage_error_that_names_the_others() -> None:
    line = [
        sys.executable,
        "-m",
        "dragoman",
        "proxy",
        "--listen",
        "http://127.0.0.1:0",
        "--scope",
        "request",
        "--",
        "true",
    ]
    done = commands.run(line, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert re.search(rb"'?request'? \(choose from '?client'?, '?shared'?, '?principal'?\)", done.stderr)


def test_a_scope_without_clients_to_share_is_a_usage_error() -> None:
    line = [sys.executable, "-m", "dragoman", "proxy", "--scope", "shared", "--", "true"]
    done = commands.run(line, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert b"--scope shared needs --listen" in done.stderr


@pytest.mark.parametrize(("scope", "starts"), [("client", 2), ("principal", 2), ("shared", 1)])
def test_requests_without_a_session_get_as_many_servers_as_the_scope_says(
    scope: str, starts: int, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann secret-of-ann-0123456789\nben secret-of-ben-0123456789\n")
    running = Running(tmp_path, "--scope", scope, "--auth-token-file", str(tokens))
    try:
        for name in ("ann", "ben"):
            client = Client(running.port, f"secret-of-{name}-0123456789")
            client.headers |= {"mcp-method": "tools/list", "mcp-protocol-version": NEW}
            for key in (1, "x"):
                answer = client.post(asks(key, "tools/list"))
                assert (answer["id"], answer["result"]["resultType"]) == (key, "complete")
        assert running.starts == starts
    finally:
        running.stop()


@pytest.mark.parametrize(("options", "starts"), [((), 1), (("--server-revision", "2025-11-25"), 2)])
def test_a_proxy_behind_this_one_has_a_server_for_each_session_and_one_for_all_others(
    options: tuple[str, ...], starts: int, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann secret-of-ann-0123456789\nben secret-of-ben-0123456789\n")
    behind = Running(tmp_path)
    url = f"http://127.0.0.1:{behind.port}/mcp"
    try:
        running = Running(tmp_path, "--scope", "principal", "--auth-token-file", str(tokens), "--url", url, *options)
        try:
            for name in ("ann", "ben"):
                client = Client(running.port, f"secret-of-{name}-0123456789")
                client.headers |= {"mcp-method": "tools/list", "mcp-protocol-version": NEW}
                assert client.post(asks(1, "tools/list"))["result"]["resultType"] == "complete"
            assert behind.starts == starts
        finally:
            running.stop()
    finally:
        behind.stop()
