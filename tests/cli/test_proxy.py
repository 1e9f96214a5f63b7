"""`dragoman proxy` when something is wrong: one line on stderr says what, and what may help."""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from dragoman.cli.parsing import CommandParser
from dragoman.cli.proxy import add_arguments
from tests.cli.test_listen import INITIALIZE, SERVER
from tests.support import commands
from tests.support.lines import read_address

PATIENCE_S = 60.0
ANSWER = '{"jsonrpc":"2.0","id":1,'


def said_about(*arguments: str) -> list[str]:
    """Give what the proxy says on stderr about a server, to a client that stays until it is answered."""
    command = [sys.executable, "-m", "dragoman", "proxy", *arguments]
    with commands.start(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        with suppress(BrokenPipeError):
            process.stdin.close()
        said = process.stderr.read().splitlines()
        assert process.wait(PATIENCE_S) in (3, 4, 5, 127)
    return said


def program(text: str) -> list[str]:
    return ["--", sys.executable, "-c", text]


SAYS_NO = f"""
import sys; input()
print('{ANSWER}"error":{{"code":-32603,"message":"no licence"}}}}', flush=True); sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (program("exit(7)"), "the server exited with status 7"),
        (program(SAYS_NO), r"initialize was refused: no licence \(-32603\)"),
        (
            ["--init-timeout", "0.3", *program("import time; time.sleep(99)")],
            r"initialisation timed out after 0\.3 s waiting for the server's answer to initialize; --init-timeout sets",
        ),
        (["--", "nosuch-server"], "nosuch-server: command not found$"),
        (
            ["--", f"{sys.executable} -m nosuch"],
            "command not found: write the command and its arguments as words of their own",
        ),
        (["--url", "http://127.0.0.1:1/mcp"], "http://127.0.0.1:1/mcp: no connection: connection refused"),
    ],
)
def test_a_server_that_fails_is_one_line_on_stderr(arguments: list[str], words: str) -> None:
    *before, line = said_about(*arguments)
    assert re.match(f"ERROR dragoman.proxy: the session failed: .*{words}", line)
    # A client may stay although it was refused: this is said at once.
    refused = ["WARNING dragoman.session: the server refused initialize: no licence (-32603)"]
    assert before == (refused if "was refused" in words else [])


@contextmanager
def host_that_says(reply: bytes) -> Iterator[int]:
    """Listen at a port, and say the same to everybody once they have said something."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(PATIENCE_S)
                    connection.recv(65536)
                    connection.sendall(reply)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_S)


PAGE = b"Content-Type: text/html\r\nContent-Length: 9\r\nConnection: close\r\n\r\n<html>hi\n"


@pytest.mark.parametrize(
    ("scheme", "reply", "words"),
    [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", r"no TLS connection: .*\(does it speak plain HTTP there\?\)"),
        ("http", b"220 mail.example ready\r\n", "its answer is not HTTP"),
        (
            "http",
            b"HTTP/1.1 200 OK\r\n" + PAGE,
            r"claims to be text/html \(a web page: is the path of the URL right\?\)",
        ),
        (
            "http",
            b"HTTP/1.1 404 Not Found\r\n" + PAGE,
            r"is not an MCP server: to POST and GET it answered 404 Not Found: text/html \(a web page",
        ),
        (
            "http",
            b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            r"401 Unauthorized: it wants credentials, or others than it got \(--header sends them, or `headers` of its",
        ),
        ("ws", b"HTTP/1.1 404 Not Found\r\n" + PAGE, "no WebSocket: it answered 404"),
    ],
)
def test_a_host_that_is_not_an_mcp_server_is_one_line_on_stderr(scheme: str, reply: bytes, words: str) -> None:
    with host_that_says(reply) as port:
        (line,) = said_about("--no-sign-in", "--url", f"{scheme}://127.0.0.1:{port}/mcp")
    assert re.match(f"ERROR dragoman.proxy: the session failed: .*{words}", line)


def test_a_line_of_the_server_that_is_not_a_frame_is_shown_shortened_and_escaped() -> None:
    text = "input(); print('Starting \\x1b[31m\\u2028 ' + 'x' * 500, flush=True); exit(3)"
    first, _ = said_about(*program(text))
    shown = r"'Starting \\x1b\[31m\\u2028 x{60,120}'\.\.\."
    said = "the server printed a line that is not JSON-RPC, which is left out; its log belongs on stderr"
    assert re.fullmatch(rf"WARNING dragoman\.exchange: {said}: {shown}", first)


@contextmanager
def listening_for(*server: str, **tokens: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `--listen` in front of a server; give the process and its URL."""
    command = [sys.executable, "-m", "dragoman", "proxy", "--listen", "http://127.0.0.1:0", *server]
    with commands.start(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **tokens}) as process:
        try:
            yield process, read_address(process.stderr)
        finally:
            process.kill()


def post(url: str, frame: Any = INITIALIZE, **headers: str) -> tuple[int, str]:
    """Post a frame; give the status and the body, or the id of the session where one opens."""
    given = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = urllib.request.Request(url, json.dumps(frame).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            return reply.status, reply.headers.get("mcp-session-id") or reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_behind_a_listener_lines_say_when_whose_and_why() -> None:
    with listening_for(*program("exit(7)"), DRAGOMAN_AUTH_TOKEN="secret-of-theirs") as (process, url):
        for _ in range(2):
            post(url, x_api_key="secret-of-theirs")
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE_S)
    time, place = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", r"ERROR dragoman\.proxy \[session %d of environment\]"
    why = "the session failed: the server exited with status 7"
    assert re.fullmatch("".join(f"{time} {place % number}: {why}\n" for number in (1, 2)), said)


def test_a_path_where_nothing_is_says_where_to_go() -> None:
    with listening_for("--", *SERVER) as (_, url):
        status, body = post(f"{url}/")
    way = "MCP is served over Streamable HTTP at /mcp, HTTP+SSE at /sse, WebSocket at /ws"
    assert (status, json.loads(body)["error"]["message"]) == (404, f"there is nothing at this path; {way}")


LOSSY = """
import json, sys
tools = [{"name": "a", "title": "A", "inputSchema": {"type": "object"}}]
for line in sys.stdin:
    frame = json.loads(line)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if "id" in frame:
        result = hello if frame["method"] == "initialize" else {"tools": tools}
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)
        tools.append({**tools[0], "icons": [{"src": "x:y"}]}) if frame["id"] == 7 else None
"""


@pytest.mark.parametrize("level", ["info", "warning"])
def test_a_loss_that_repeats_is_said_once_and_then_counted(level: str) -> None:
    hello = {**INITIALIZE["params"], "protocolVersion": "2024-11-05"}  # type: ignore[dict-item]
    frames = [
        {**INITIALIZE, "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": key, "method": "tools/list"} for key in range(2, 10)),
    ]
    said = "".join(json.dumps(frame) + "\n" for frame in frames)
    done = commands.dragoman("proxy", "--log-level", level, *program(LOSSY), input=said)
    lossy = "INFO dragoman.translate: tools/list result, 2025-11-25 to 2024-11-05: dropped"
    said = [line.partition(" (")[0] for line in done.stderr.splitlines() if "dropped" in line or "lost" in line]
    expected = [
        f"{lossy} /result/tools/0/title",
        f"{lossy} /result/tools/1/icons",
        "WARNING dragoman.proxy: 6 more frames lost what is named above",
    ]
    assert said == (expected if level == "info" else []), "cosmetic losses are no warnings"


def test_behind_a_shared_server_each_line_is_about_the_session_that_it_concerns() -> None:
    noisy = LOSSY.replace("for line in", "print('ready', flush=True)\nfor line in")
    hello = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "2024-11-05"}}  # type: ignore[dict-item]
    with listening_for("--scope", "shared", "--log-level", "info", *program(noisy)) as (process, url):
        opened = [post(url, hello)[1] for _ in range(2)]
        for session in opened:
            post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
        for session in reversed(opened):
            post(url, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, mcp_session_id=session)
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE_S)
    found = re.findall(r"(?:WARNING|INFO) (dragoman\.\w+) \[(.*?)\]: (the shared server printed|tools/list)", said)
    assert found == [
        ("dragoman.sharing", "shared server", "the shared server printed"),
        ("dragoman.translate", "session 2", "tools/list"),
        ("dragoman.translate", "session 1", "tools/list"),
    ]


def test_at_a_terminal_it_says_what_it_waits_for() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "proxy", "--", *SERVER]
    with commands.start(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.terminate()
    os.close(ours)
    os.close(theirs)
    assert said.startswith(b"dragoman proxy: waiting for an MCP client on stdin. It is meant to be started by one")


def test_a_server_can_be_said_to_have_no_handshake() -> None:
    parser = CommandParser()
    add_arguments(parser)
    assert parser.parse_args(["--server-revision", "2026-07-28", "--", "x"]).server_revision == "2026-07-28"


def test_a_client_cannot_be_said_to_have_no_handshake(capsys: pytest.CaptureFixture[str]) -> None:
    parser = CommandParser()
    add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--client-revision", "2026-07-28", "--", "x"])
    assert "no handshake" in capsys.readouterr().err
