"""The access log: a line for each call, whose it was, where it went and how it ended; and the log beside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.trace.access import AccessLog, write_line
from dragoman.trace.calls import CallWatch
from tests.proxy.conversation import (
    READY,
    Step,
    client,
    client_closes,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    opening,
    request,
    result,
    server,
)
from tests.proxy.test_per_request import NEW, asks
from tests.proxy.test_scopes import SERVER, Client, Running
from tests.support import commands
from tests.support.waiting import wait_until

PATIENCE_S = 60
CALL = request(2, "tools/call", name="buy", arguments={"password": "not-for-a-log"})
BOUGHT = result(2, {"content": [{"type": "text", "text": "a-secret-answer"}]})


def log_of(steps: Sequence[Step], path: Path, **config: Any) -> list[Any]:
    """Hold a conversation and give the lines of its access log."""
    log = AccessLog(str(path), is_json=True)
    hold(steps, calls=CallWatch((log,), "shop"), **config)
    log.close()
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def calls(answer: Any) -> list[Step]:
    return [client(CALL), expect_to_server(CALL), server(answer), expect_to_client(lambda _: True)]


def test_a_call_is_a_line_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    lines = log_of([*opening("2025-06-18", "2025-11-25"), *calls(BOUGHT)], tmp_path / "log")
    (line,) = (line for line in lines if line["event"] == "call")
    assert line["server_ms"] >= 0
    assert line["our_ms"] > 0
    assert line["request_bytes"] == len(json.dumps(CALL, separators=(",", ":"))) + 1
    assert line["answer_bytes"] == len(json.dumps(BOUGHT, separators=(",", ":"))) + 1
    wanted = {"method": "tools/call", "tool": "buy", "outcome": "ok", "server": "shop", "server_revision": "2025-11-25"}
    wanted |= {"client": "test 1", "client_revision": "2025-06-18"}
    assert wanted.items() <= line.items()
    assert b"secret" not in (tmp_path / "log").read_bytes()
    assert b"password" not in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize(
    ("answer", "outcome"), [(error(2, -32602), "-32602"), (result(2, {"content": [], "isError": True}), "tool_error")]
)
def test_a_call_that_fails_says_how(answer: Any, outcome: str, tmp_path: Path) -> None:
    lines = log_of([*opening("2025-06-18", "2025-06-18"), *calls(answer)], tmp_path / "log")
    assert [line["outcome"] for line in lines if line["event"] == "call"] == [outcome]


def test_sessions_begin_and_end(tmp_path: Path) -> None:
    steps = [*opening("2025-06-18", "2025-06-18"), client_closes(), expect_end(Outcome.CLIENT_CLOSED)]
    began, ended = log_of(steps, tmp_path / "log")
    assert (began["event"], began["client"]) == ("session began", "test 1")
    assert (ended["event"], ended["outcome"]) == ("session ended", "client_closed")
    assert ended["lasted_s"] >= 0


def test_a_name_cannot_look_like_something_else() -> None:
    line = write_line("call", {"client": 'a\nb" outcome=ok \x1b[31m', "tool": "ö" * 1000, "our_ms": 1.5}, is_json=False)
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert line.endswith(b" our_ms=1.5\n")
    assert b" outcome=ok" in line
    assert line.count(b"client='a\\nb\" outcome=ok \\x1b[31m'") == 1
    assert len(line) < 2000


def test_a_proxy_that_listens_logs_calls_with_their_people(tmp_path: Path) -> None:
    tokens, log, theirs = tmp_path / "tokens", tmp_path / "access", tmp_path / "log"
    tokens.write_text("ann secret-of-ann-0123456789\nben secret-of-ben-0123456789\n")
    tokens.chmod(0o600)
    options = ("--access-log", str(log), "--log-file", str(theirs), "--log-format", "json", "--log-level", "info")
    run = Running(tmp_path, "--scope", "principal", "--auth-token-file", str(tokens), *options)
    try:
        ann, ben = (Client(run.port, f"secret-of-{name}-0123456789") for name in ("ann", "ben"))
        ann.open("2025-06-18")
        assert "result" in ann.post(request(1, "tools/call", name="t"))
        wait_until(lambda: b'"event":"call"' in log.read_bytes())
        log.rename(tmp_path / "moved")
        wait_until(log.exists)
        ben.headers |= {"mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": "t"}
        assert "result" in ben.post(asks(1, "tools/call", name="t"))
        assert "result" in ann.post(request(2, "tools/list"))
        wait_until(lambda: log.read_bytes().count(b'"event":"call"') == 2)
    finally:
        told = run.stop()
    moved = [json.loads(line) for line in (tmp_path / "moved").read_bytes().splitlines()]
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [line["event"] for line in moved] == ["session began", "call"]
    assert {line["principal"] for line in moved} == {"ann"}
    assert {line["session"] for line in moved} == {"session 1 of ann"}
    assert [(line["principal"], line["method"]) for line in lines if line["event"] == "call"] == [
        ("ben", "tools/call"),
        ("ann", "tools/list"),
    ]
    assert lines[-1]["event"] == "session ended"
    ours = [json.loads(line) for line in theirs.read_bytes().splitlines()]
    assert {line["event"] for line in ours} == {"log"}
    assert any(line.get("session") == "session 1 of ann" for line in ours)
    assert " INFO " not in told
    assert b"secret-of" not in log.read_bytes() + theirs.read_bytes()


def test_a_call_through_a_router_has_a_line_for_its_server_too(tmp_path: Path) -> None:
    config, log = tmp_path / "servers.json", tmp_path / "access"
    scripted = {"command": SERVER[0], "args": SERVER[1:]}
    config.write_text(json.dumps({"mcpServers": {"shop": scripted}}))
    line = [sys.executable, "-m", "dragoman", "proxy", "--access-log", str(log), "--log-format", "json"]
    frames = [initialize("2025-06-18"), READY, request(1, "tools/call", name="t")]
    said = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    command = [*line, "--config", str(config)]
    commands.run(command, input=said, capture_output=True, timeout=PATIENCE_S, check=True)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    (front,) = (line for line in lines if line["event"] == "call")
    (back,) = (line for line in lines if line["event"] == "server call" and line["method"] == "tools/call")
    assert (front["tool"], front["client"], front["outcome"]) == ("t", "test 1", "ok")
    assert (back["tool"], back["server"], back["outcome"]) == ("t", "shop", "ok")
    assert "server" not in front
    assert "client" not in back


def test_stdout_is_for_the_protocol_or_for_the_log(tmp_path: Path) -> None:
    done = commands.dragoman("proxy", "--access-log", "-", "--", "true")
    assert done.returncode == 2
    assert "stdout carries the protocol" in done.stderr


def test_a_log_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    for option in ("--access-log", "--log-file"):
        done = commands.dragoman("proxy", option, str(tmp_path / "no" / "log"), "--", "true")
        assert done.returncode == 2
        assert option in done.stderr
