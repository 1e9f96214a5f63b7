"""`dragoman status`, `/healthz` and `/readyz`: what they say about proxies that run as processes."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import request
from tests.proxy.test_processes import running
from tests.proxy.test_restarts import OPENING, call, command, hear_answer
from tests.proxy.test_scopes import Client, Running
from tests.support import commands
from tests.support.waiting import wait_until

NEWEST = HANDSHAKE_REVISIONS[-1]
PATIENCE_S = 60


def ask(*arguments: str) -> tuple[int, str, str]:
    line = [sys.executable, "-m", "dragoman", "status", *arguments]
    done = commands.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def fetch(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        return reply.status, json.loads(body) if body.startswith(b"{") else None
    finally:
        connection.close()


def test_a_proxy_on_standard_streams_tells_at_a_socket(tmp_path: Path) -> None:
    where = str(tmp_path / "status")
    with running(command=command(tmp_path, 999), options=("--status", where)) as run:
        run.open(NEWEST)
        assert "result" in call(run, 10, "tool")
        assert stat.S_IMODE(os.stat(where).st_mode) == 0o600
        code, told, _ = ask(where)
        (server,) = json.loads(ask(where, "--json")[1])["servers"]
        assert run.end()[0] == 0
    assert code == 0
    assert told.splitlines()[0] == "ready"
    assert told.splitlines()[1].split() == ["server", "state", "revision", "clients", "restarts", "trouble"]
    known = {"name": "", "state": "ready", "revision": NEWEST, "era": "handshake"}
    assert server == {**known, "clients": 1, "restarts": 0, "trouble": ""}
    assert not os.path.exists(where)
    assert ask(where)[0] == 3


def test_a_server_that_was_started_again_says_why(tmp_path: Path) -> None:
    where = str(tmp_path / "status")
    with running(command=command(tmp_path, OPENING), options=("--status", where, "--restarts", "3")) as run:
        run.open(NEWEST)
        assert "error" in call(run, 10, "tool")
        assert "result" in call(run, 11, "tool")
        code, told, _ = ask(where)
        assert run.end()[0] == 0
    assert code == 0
    assert told.splitlines()[2].split()[:5] == ["-", "ready", NEWEST, "1", "1"]
    assert "status 1" in told


def test_a_server_that_does_not_come_back_makes_the_proxy_not_ready(tmp_path: Path) -> None:
    where, server = str(tmp_path / "status"), tmp_path / "server"
    server.write_text(f"#!{sys.executable}\n{Path(command(tmp_path, 0)[1]).read_text()}")
    server.chmod(0o700)
    line = [str(server), str(tmp_path), str(OPENING)]
    with running(command=line, options=("--status", where, "--restarts", "30")) as run:
        run.open(NEWEST)
        server.unlink()
        assert "error" in call(run, 10, "tool")
        run.say(request(11, "tools/list"))
        assert "error" in hear_answer(run, 11)
        code, told, _ = ask(where)
        assert run.end()[0] == 0
    assert code == 1
    assert told.startswith("not ready\n")
    assert "restarting" in told


@pytest.mark.parametrize("scope", ["client", "shared"])
def test_a_proxy_that_listens_tells_over_http(tmp_path: Path, scope: str) -> None:
    run = Running(tmp_path, "--scope", scope)
    try:
        assert fetch(run.port, "/healthz") == (200, {"status": "ok"})
        assert fetch(run.port, "/readyz") == (200, {"ready": True, "servers": [], "problems": {}, "turned_away": {}})
        assert "no servers run at present" in ask(f"http://127.0.0.1:{run.port}")[1]
        clients = [Client(run.port), Client(run.port)]
        for client in clients:
            client.open(NEWEST)
        servers = fetch(run.port, "/readyz")[1]["servers"]
        assert [server["clients"] for server in servers] == ([2] if scope == "shared" else [1, 1])
        assert {server["revision"] for server in servers} == {NEWEST}
        code, told, _ = ask(f"http://127.0.0.1:{run.port}/mcp")
        assert (code, len(told.splitlines())) == (0, 3), "servers that are alike are one line"
        if scope == "client":
            for client in clients:
                client.end()
            wait_until(lambda: fetch(run.port, "/readyz")[1]["servers"] == [])
        assert fetch(run.port, "/readyz", "POST")[0] == 405
        assert fetch(run.port, "/readyz", "HEAD") == (200, None)
    finally:
        run.stop()


def test_servers_are_shown_to_those_who_are_let_in(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("alice a-secret-that-nobody-guesses\n")
    secrets.chmod(0o600)
    run = Running(tmp_path, "--auth-token-file", str(secrets))
    try:
        assert fetch(run.port, "/healthz") == (200, {"status": "ok"})
        assert fetch(run.port, "/readyz") == (200, {"ready": True})
        assert fetch(run.port, "/mcp")[0] == 401
        assert fetch(run.port, "/readyz", host="elsewhere.example")[0] == 421
        url = f"http://127.0.0.1:{run.port}"
        assert "--token" in ask(url)[1]
        assert "no servers run at present" in ask(url, "--token", "a-secret-that-nobody-guesses")[1]
    finally:
        run.stop()


def test_a_socket_that_a_killed_proxy_left_behind_is_replaced_and_one_in_use_is_not(tmp_path: Path) -> None:
    where = tmp_path / "status"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(where))
    left.close()
    with running(command=command(tmp_path, 999), options=("--status", str(where))) as run:
        run.open(NEWEST)
        with running(command=command(tmp_path, 999), options=("--status", str(where))) as other:
            assert other.end()[0] == 1
            assert "another proxy uses it" in other.stderr
        assert ask(str(where))[0] == 0
        assert run.end()[0] == 0


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    where = tmp_path / "status"
    where.write_text("mine")
    with running(command=command(tmp_path, 999), options=("--status", str(where))) as run:
        assert run.end()[0] == 1
    assert "something else is there" in run.stderr
    assert where.read_text() == "mine"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("ftp://127.0.0.1", "expected http"),
        ("/nowhere/at/all", "No such file or directory: no proxy listens there"),
        ("http://127.0.0.1:9", ":9: Connection refused: no proxy listens there"),
    ],
)
def test_who_does_not_answer(where: str, words: str) -> None:
    code, told, error = ask(where, "--timeout", "5")
    assert (code, told) == (3, "")
    assert words in error


@pytest.mark.parametrize(
    "said",
    [
        b"hello\n",
        b"[" * 100_000,
        b'{"ready":true,"servers":[{"name":"x"}]}',
        b'{"ready":true,"servers":5}',
        b'{"ready":true,"problems":[]}',
    ],
)
def test_something_else_that_answers(said: bytes, tmp_path: Path) -> None:
    child, connection = asked_at(tmp_path / "other")
    with connection:
        connection.sendall(said)
    told, error = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, told) == (3, "")
    assert "not a proxy of ours" in error
    assert "Traceback" not in error


def test_something_that_answers_without_end(tmp_path: Path) -> None:
    """A byte now and then: each came in time, and the whole never did."""
    child, connection = asked_at(tmp_path / "other", "--timeout", "1")
    with connection, contextlib.suppress(OSError):
        for _ in range(PATIENCE_S * 10):
            connection.sendall(b"x")
            try:
                child.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                continue
    assert child.returncode == 3, "it waits for ever"
    assert "timed out" in child.communicate()[1]


def asked_at(path: Path, *arguments: str) -> tuple[subprocess.Popen[str], socket.socket]:
    """Have `status` ask at a socket; give the process, and the connection that is to answer."""
    line = [sys.executable, "-m", "dragoman", "status", str(path), *arguments]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        child = commands.start(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        listener.settimeout(PATIENCE_S)
        return child, listener.accept()[0]


def test_the_token_goes_nowhere_else() -> None:
    asked: list[str | None] = []

    class Redirects(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            self.send_response(302 if len(asked) == 1 else 404)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Redirects) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ask(f"http://127.0.0.1:{server.server_port}", "--token", "t0p-secret")
        server.shutdown()
    assert asked == ["Bearer t0p-secret", None]
