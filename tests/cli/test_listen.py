"""`dragoman proxy --listen` as a process: its first line, its flags, its end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import commands
from tests.support.lines import Lines
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, str(ROOT / "bench" / "server.py"), "2025-06-18"]
PROXY = [sys.executable, "-m", "dragoman", "proxy"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
PATIENCE_S = 60


class Listening:
    def __init__(
        self,
        *options: str,
        url: str = "http://127.0.0.1:0",
        server: list[str] = SERVER,
        proxy: list[str] = PROXY,
        **environment: str,
    ) -> None:
        self.process = commands.start(
            [*proxy, "--listen", url, *options, *(["--", *server] if server else [])],
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self.lines = Lines(self.process.stderr, PATIENCE_S)
        self.first_line = self.lines.read().decode()
        self.url = self.first_line.removeprefix("listening on ").strip()

    def post(self, frame: Any, url: str = "", **headers: str) -> tuple[int, dict[str, str], Any]:
        given = {"content-type": "application/json", **{name.replace("_", "-"): v for name, v in headers.items()}}
        request = urllib.request.Request(url or self.url, json.dumps(frame).encode(), given)
        context = ssl._create_unverified_context() if self.url.startswith("https") else None
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S, context=context) as reply:
                body = reply.read()
                if reply.headers.get_content_type() == "text/event-stream":  # as an answer comes that takes long
                    body = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()][
                        -1
                    ]
                return reply.status, dict(reply.headers), json.loads(body) if body else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), json.loads(error.read())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.lines.rest(self.process, PATIENCE_S)
        return self.process.returncode, said.decode()


@contextmanager
def listening(*options: str, url: str = "http://127.0.0.1:0", **more: Any) -> Iterator[Listening]:
    proxy = Listening(*options, url=url, **more)
    try:
        yield proxy
    finally:
        if proxy.process.poll() is None:
            proxy.process.kill()
        proxy.process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize("secret", ["", "  ", "two words", "schlüssel"])
def test_a_secret_that_no_client_can_show_is_refused(secret: str) -> None:
    """Above all an empty one: it is a secret that did not arrive, and would let everybody in."""
    with listening(DRAGOMAN_AUTH_TOKEN=secret) as proxy:
        assert proxy.first_line.startswith("dragoman proxy: $DRAGOMAN_AUTH_TOKEN: expected a secret of visible ASCII")
        assert proxy.process.wait(PATIENCE_S) == 1


def test_what_to_mind_about_a_scope_is_said_once_after_the_first_line() -> None:
    with listening("--scope", "shared") as proxy:
        assert proxy.first_line.startswith("listening on http://")
        assert proxy.post(INITIALIZE)[0] == 200
        _, said = proxy.end()
        assert said.count("per session") == 1


TALKS_TWICE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        told = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told})
        print(answer if asked["method"] == "initialize" else answer + answer, flush=True)
"""


def test_two_texts_on_one_line_of_a_server_are_not_the_body_of_an_answer() -> None:
    with listening(server=[sys.executable, "-c", TALKS_TWICE]) as proxy:
        _, headers, _ = proxy.post(INITIALIZE)
        session = headers["mcp-session-id"]
        proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
        _, _, answer = proxy.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, mcp_session_id=session)
        assert (answer["id"], answer["error"]["code"]) == (2, -32603)
        proxy.end()


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_serves_and_ends_in_order(number: signal.Signals) -> None:
    with listening() as proxy:
        assert re.fullmatch(r"listening on http://127\.0\.0\.1:[1-9][0-9]*/mcp\n", proxy.first_line)
        status, headers, answer = proxy.post(INITIALIZE)
        assert (status, answer["result"]["protocolVersion"]) == (200, "2025-06-18")
        assert headers["mcp-session-id"]
        (child,) = children_of(proxy.process.pid)
        code, said = proxy.end(number)
        assert code == 128 + number
        assert "Traceback" not in said
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\ncontent-length: 9\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    ],
)
def test_what_is_half_sent_does_not_keep_it_from_ending_in_order(said: bytes) -> None:
    with listening() as proxy:
        assert proxy.post(INITIALIZE)[0] == 200
        (child,) = children_of(proxy.process.pid)
        with socket.create_connection(("127.0.0.1", int(proxy.url.split(":")[2].split("/")[0]))) as client:
            client.sendall(said)
            assert proxy.post(INITIALIZE)[0] == 200  # by then it has been taken
            code, errors = proxy.end()
        assert code == 128 + signal.SIGTERM
        assert "Traceback" not in errors
        assert not Path(f"/proc/{child}").exists()


def test_every_session_has_a_child_that_ends_with_it() -> None:
    with listening() as proxy:
        first = proxy.post(INITIALIZE)[1]["mcp-session-id"]
        proxy.post(INITIALIZE)
        assert len(children_of(proxy.process.pid)) == 2
        request = urllib.request.Request(proxy.url, method="DELETE", headers={"mcp-session-id": first})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            assert reply.status == 204
        wait_until(lambda: len(children_of(proxy.process.pid)) == 1)


def test_paths_limits_and_origins_can_be_chosen() -> None:
    with listening("--mcp-path", "/here", "--max-body", "1k", "--allow-origin", "https://a.example") as proxy:
        assert proxy.url.endswith("/here")
        assert proxy.post({"x": "y" * 2000})[0] == 413
        assert proxy.post(INITIALIZE, origin="https://b.example")[0] == 403
        assert proxy.post(INITIALIZE, origin="https://a.example")[0] == 200


def machine_address() -> str:
    """Give an address that this machine has beside loopback; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other address")
        return str(probe.getsockname()[0])


def test_on_a_wildcard_it_is_reached_by_the_machines_own_addresses_and_names() -> None:
    with listening(url="http://0.0.0.0:0") as proxy:
        port = proxy.url.split(":")[2].split("/")[0]
        for host in (machine_address(), "127.0.0.1"):
            assert proxy.post(INITIALIZE, f"http://{host}:{port}/mcp")[0] == 200
        assert proxy.post(INITIALIZE, f"http://127.0.0.1:{port}/mcp", host=socket.gethostname())[0] == 200
        assert proxy.post(INITIALIZE, f"http://127.0.0.1:{port}/mcp", host="evil.example")[0] == 421
        _, said = proxy.end()
    assert "add --allow-host evil.example" in said


def test_secrets_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada from-the-file\n")
    with listening("--auth-token-file", str(tokens)) as proxy:
        assert proxy.post(INITIALIZE)[0] == 401
        assert proxy.post(INITIALIZE, authorization="Bearer from-the-file")[0] == 200
    with listening(DRAGOMAN_AUTH_TOKEN="from-the-environment") as proxy:
        assert proxy.post(INITIALIZE, x_api_key="from-the-file")[0] == 401
        assert proxy.post(INITIALIZE, x_api_key="from-the-environment")[0] == 200


def test_it_serves_tls(tmp_path: Path) -> None:
    certificate = tmp_path / "both.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-nodes", "-days", "1", "-keyout", str(tmp_path / "key.pem"), "-out", str(certificate)]
    made = commands.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *options, *subject], capture_output=True, timeout=60
    )
    if made.returncode:
        pytest.skip("no openssl to make a certificate")
    files = ("--tls-cert", str(certificate), "--tls-key", str(tmp_path / "key.pem"))
    with listening(*files, url="https://127.0.0.1:0") as proxy:
        assert proxy.url.startswith("https://")
        assert proxy.post(INITIALIZE)[0] == 200


@pytest.mark.parametrize("scope", ["client", "shared"])
@pytest.mark.parametrize(
    ("server", "reason"), [("/opt/no-such-command", "command not found"), ("/", "cannot be run: permission denied")]
)
def test_clients_are_told_that_the_server_cannot_be_started_but_not_where_it_is(
    server: str, reason: str, scope: str
) -> None:
    with listening("--scope", scope, server=[server, "argument"]) as proxy:
        status, _, answer = proxy.post(INITIALIZE)
        assert (status, answer["error"]["message"]) == (200, f"the server: {reason}")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(proxy.url.replace("/mcp", "/readyz"), timeout=PATIENCE_S)
        assert list(json.loads(caught.value.read())["problems"].values()) == [f"the server: {reason}"]
        assert f"{server}: {reason}" in proxy.end()[1]


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("scope", ["client", "shared"])
def test_clients_are_not_told_the_url_of_the_server(scheme: str, scope: str) -> None:
    """Its path may be a secret, and its host is known to nobody outside."""
    with listening("--scope", scope, "--url", f"{scheme}://127.0.0.1:1/s/hush", server=[]) as proxy:
        _, _, answer = proxy.post(INITIALIZE)
        assert answer["error"]["message"] == "the server: no connection: connection refused"
        assert "hush" not in proxy.end()[1]


@pytest.mark.parametrize(
    ("mode", "secret", "said"),
    [
        (0o600, "a-secret-of-a-good-length", None),
        (0o644, "a-secret-of-a-good-length", "tokens can be read by every user of this machine: chmod 600 "),
        (0o602, "a-secret-of-a-good-length", "tokens can be written by every user of this machine: chmod 600 "),
        (0o600, "too-short", "the secret of ada can be guessed, with fewer than 16 characters: try openssl rand"),
    ],
)
def test_secrets_that_others_may_learn_are_warned_of(mode: int, secret: str, said: str | None, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada {secret}\n")
    tokens.chmod(mode)
    with listening("--auth-token-file", str(tokens), "--inherit-env", "safe") as proxy:
        assert proxy.first_line.startswith("listening on ")
        log = proxy.end()[1]
    assert said in log if said else not log
    assert log.count("WARNING") == (said is not None)
    assert secret not in log


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["--listen", "127.0.0.1:80"], 2, "expected http://HOST:PORT"),
        (["--listen", "http://127.0.0.1"], 2, "expected http://HOST:PORT"),
        (["--listen", "http://127.0.0.1:0/mcp"], 2, "expected http://HOST:PORT"),
        (["--listen", "http://me@127.0.0.1:0"], 2, "expected http://HOST:PORT"),
        (["--listen", "https://127.0.0.1:0"], 2, "expected --tls-cert"),
        (["--listen", "https://127.0.0.1:0", "--tls-cert", "/no/such/file"], 2, "there is no file '/no/such/file'"),
        (["--listen", "https://127.0.0.1:0", "--tls-cert", __file__], 1, "expected a chain and its key, in PEM"),
        (["--listen", "http://127.0.0.1:0", "--tls-cert", __file__], 2, "expected --tls-cert with https://"),
        (["--listen", "http://127.0.0.1:0", "--tls-key", __file__], 2, "--tls-key means nothing without --tls-cert"),
        (["--listen", "http://192.0.2.1:0"], 1, "cannot listen"),
        (["--listen", "http://127.0.0.1:0", "--auth-token-file", "/no/such/file"], 2, "there is no file"),
        (["--listen", "http://127.0.0.1:0", "--auth-token-file", "/"], 2, "expected a file, found the directory '/'"),
        (["--listen", "http://127.0.0.1:0", "--auth-token-file", os.devnull], 1, "expected at least one secret"),
        (["--listen", "http://127.0.0.1:0", "--mcp-path", ""], 2, "expected a path"),
        (["--listen", "http://127.0.0.1:0", "--mcp-path", "/sse"], 2, "expected different paths"),
        (["--listen", "http://127.0.0.1:0", "--mcp-path", "/message"], 2, "expected different paths"),
        (["--listen", "http://127.0.0.1:0", "--allow-host", "http://a.example"], 2, "expected NAME, NAME:PORT or *"),
        (["--listen", "http://127.0.0.1:0", "--allow-origin", "a.example"], 2, "expected SCHEME://HOST"),
        (["--listen", "http://127.0.0.1:0", "--allow-origin", "https://*.a.example"], 2, "expected SCHEME://HOST"),
        (["--auth-token-file", __file__], 2, "--auth-token-file means nothing without --listen"),
        (["--server-idle", "5"], 2, "--server-idle means nothing without --listen"),
        (["--max-body", "many"], 2, "expected a number of bytes"),
        (["--max-sessions", "0"], 2, "expected a whole number above 0"),
        (["--sse-path", "sse"], 2, "expected a path"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(options: list[str], code: int, reason: str) -> None:
    done = commands.run([*PROXY, *options, "--", *SERVER], capture_output=True, timeout=PATIENCE_S, text=True)
    assert done.returncode == code
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_over_stdio_nothing_of_http_is_imported() -> None:
    program = (
        "import sys; from dragoman.cli import main\n"
        "try: main(['proxy', '--', 'true'])\n"
        "finally: print({'uvicorn', 'httptools', 'websockets', 'uvloop'} & set(sys.modules), file=sys.stderr)"
    )
    done = commands.run(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stderr.splitlines()[-1] == "set()"
