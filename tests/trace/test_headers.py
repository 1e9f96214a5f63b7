"""Headers of HTTP in a trace: those of both sides with the requests that they carried, and no secret among them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.trace.redact import REDACTED, redact_headers
from tests.proxy.conversation import READY, initialize, request
from tests.proxy.test_per_request import NEW, asks
from tests.proxy.test_scopes import SERVER, Client, Running
from tests.support import commands

PATIENCE_S = 60
SECRET = "secret-of-ann-0123456789"
ANOTHER = "another-secret-0123456789"


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("content-type", "application/json", "application/json"),
        ("mcp-protocol-version", NEW, NEW),
        ("mcp-param-auth", "what the frame calls a token", REDACTED),
        ("mcp-session-id", "0123", REDACTED),
        ("authorization", "Bearer abc", REDACTED),
        ("cookie", "a=b", REDACTED),
        ("set-cookie", "a=b", REDACTED),
        ("x-acme", "whatever it is", REDACTED),
        ("location", "https://example.com/secret/path", REDACTED),
        ("user-agent", "Bearer abcdefgh", f"Bearer {REDACTED}"),
        (
            "www-authenticate",
            'Bearer realm="mcp", error="invalid_token", resource_metadata="https://x/secret"',
            f'Bearer realm="mcp", error="invalid_token", resource_metadata="{REDACTED}"',
        ),
        ("www-authenticate", "Negotiate abcdefgh==, Basic", f"Negotiate {REDACTED}, Basic"),
        ("www-authenticate", 'Digest nonce=abc, realm="a"', f'Digest nonce="{REDACTED}", realm="a"'),
    ],
)
def test_only_headers_that_hold_no_secret_are_shown(name: str, value: str, left: str) -> None:
    assert redact_headers({name: value}) == {name: left}


def test_both_sides_have_the_headers_of_each_request_and_of_its_answer(tmp_path: Path) -> None:
    tokens, front, back = tmp_path / "tokens", tmp_path / "front", tmp_path / "back"
    tokens.write_text(f"ann {SECRET}\n")
    tokens.chmod(0o600)
    run = Running(tmp_path, "--auth-token-file", str(tokens), "--trace", str(front))
    try:
        url = f"http://127.0.0.1:{run.port}/mcp"
        sent = ("--header", f"Authorization: Bearer {SECRET}", "--header", f"X-Acme: {ANOTHER}")
        command = [sys.executable, "-m", "dragoman", "proxy", "--trace", str(back), "--url", url, *sent]
        said = [initialize("2025-06-18"), READY, request(1, "tools/call", name="t")]
        given = b"".join(json.dumps(frame).encode() + b"\n" for frame in said)
        commands.run(command, input=given, capture_output=True, timeout=PATIENCE_S, check=True)
    finally:
        run.stop()
    for path, side in ((front, "client"), (back, "server")):
        told = [line for line in lines_of(path) if line["direction"] == "http"]
        assert {line["side"] for line in told} == {side}
        (called,) = (line for line in told if line.get("ids") == [1] and "mcp-session-id" in line["request"])
        assert (called["method"], called["status"]) == ("POST", 200)
        assert called["request"]["content-type"] == "application/json"
        assert called["response"]["content-type"] == "application/json"
        assert called["request"]["authorization"] == called["request"]["x-acme"] == REDACTED
        assert {line["method"] for line in told} >= {"POST", "DELETE"}
        assert SECRET.encode() not in path.read_bytes()
        assert ANOTHER.encode() not in path.read_bytes()


def test_clients_without_sessions_that_use_one_id_are_told_apart_by_a_number(tmp_path: Path) -> None:
    run = Running(tmp_path, "--trace", str(tmp_path / "t"))
    try:
        for _ in range(2):
            client = Client(run.port)
            client.headers |= {"mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": "t"}
            assert "result" in client.post(asks(7, "tools/call", name="t"))
    finally:
        run.stop()
    lines = [line for line in lines_of(tmp_path / "t") if line["side"] == "client" and line.get("connection")]
    asked = [line["number"] for line in lines if line["direction"] == "received"]
    answered = [line["number"] for line in lines if line["direction"] == "sent"]
    carried = [number for line in lines if line["direction"] == "http" for number in line["ids"]]
    assert asked == answered == carried == [1, 2]
    assert {line["frame"]["id"] for line in lines if "frame" in line} == {7}


def test_behind_a_router_each_line_of_a_server_names_it(tmp_path: Path) -> None:
    config, path = tmp_path / "servers.json", tmp_path / "t"
    scripted = {"command": SERVER[0], "args": SERVER[1:]}
    config.write_text(json.dumps({"mcpServers": {"shop": scripted, "a, b": scripted}}))
    line = [sys.executable, "-m", "dragoman", "proxy", "--trace", str(path), "--config", str(config)]
    frames = [initialize("2025-06-18"), READY, request(1, "tools/list")]
    said = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    commands.run(line, input=said, capture_output=True, timeout=PATIENCE_S, check=True)
    lines = lines_of(path)
    assert {one.get("server") for one in lines} == {None, "shop", "a, b"}
    assert {one["session"] for one in lines} == {None}
    asked = [one["server"] for one in lines if one["direction"] == "sent" and "server" in one]
    assert {"shop", "a, b"} <= set(asked)
    ended = {one["server"] for one in lines if one["direction"] == "ended" and "server" in one}
    assert ended == {"shop", "a, b"}
    assert {one["revision"] for one in lines if one["direction"] == "translated"} >= {"2025-06-18"}
