"""`dragoman proxy --config FILE`: real processes, over stdio and HTTP, with a file that changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import commands
from tests.support.lines import read_address
from tests.support.waiting import wait_until

SERVER = str(Path(__file__).parent.parent / "client" / "echo_server.py")
PATIENCE_S = 60


def write(path: Path, servers: dict[str, Any]) -> None:
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def echo(*arguments: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, "--few", *arguments]}


class Routed:
    """A `dragoman proxy --config FILE`, with a session open."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "dragoman", "proxy", "--log-level", "info", "--config", str(path)]
        self.log = path.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = commands.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.last = 0
        info = {"name": "test", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        self.say({"method": "notifications/initialized"})

    def say(self, body: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.last += 1
        self.say({"id": self.last, "method": method, "params": params})
        return self.read_until(lambda frame: frame.get("id") == self.last)

    def read_until(self, is_it: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            frame: dict[str, Any] = json.loads(line)
            if is_it(frame):
                return frame
        raise AssertionError(self.log.read_text())

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["result"]["tools"]]

    def says(self, text: str) -> bool:
        return text in self.log.read_text(encoding="utf-8")

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return code


def test_a_file_that_changes_is_taken_in_and_a_broken_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    write(path, {"a": echo()})
    routed = Routed(path)
    try:
        assert routed.tools() == ["echo", "fail"]
        write(path, {"a": echo(), "b": echo("--revision", "2024-11-05")})
        routed.read_until(lambda frame: frame.get("method") == "notifications/tools/list_changed")
        wait_until(lambda: routed.tools() == ["a_echo", "a_fail", "b_echo", "b_fail"])
        path.write_text('{"mcpServers": {"a": {"command": 5}}}', encoding="utf-8")
        os.kill(routed.process.pid, signal.SIGHUP)
        wait_until(lambda: routed.says("what was read before stays"))
        assert routed.says("line 1, column 34: expected command of server 'a' to be a string")
        answer = routed.ask("tools/call", name="b_echo", arguments={"x": 1})
        assert answer["result"]["content"] == [{"type": "text", "text": '{"x": 1}'}]
    finally:
        code = routed.close()
    assert code == 0


def test_a_server_that_exits_is_said_in_the_log_and_the_other_answers(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    write(path, {"a": {"command": sys.executable, "args": [SERVER]}, "b": echo()})
    routed = Routed(path)
    try:
        assert "error" in routed.ask("tools/call", name="exit", arguments={})
        wait_until(lambda: routed.says("a cannot be used: "))
        assert routed.tools() == ["b_echo", "b_fail"]
    finally:
        routed.close()


def test_a_file_that_is_broken_from_the_start_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"comand": "x"}}}', encoding="utf-8")
    done = commands.dragoman("proxy", "--config", str(path))
    assert done.returncode == 2
    assert f"dragoman proxy: {path}: line 1, column 23: server 'a' has the key 'comand', and no command" in done.stderr


@pytest.mark.parametrize("more", [["--url", "http://127.0.0.1:1/mcp"], ["--", "server"]])
def test_a_file_and_a_server_are_too_much(more: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    write(path, {})
    done = commands.dragoman("proxy", "--config", str(path), *more)
    assert done.returncode == 2
    assert "found both" in done.stderr


def test_clients_over_http_have_servers_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    write(path, {"a": echo(), "b": echo()})
    command = [sys.executable, "-m", "dragoman", "proxy", "--listen", "http://127.0.0.1:0", "--config", str(path)]
    with commands.start(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = read_address(process.stderr)
            for revision in ("2025-03-26", "2025-11-25"):
                asked = [sys.executable, "-m", "dragoman", "call", "b_echo", "text=1", "--json", "--url", url]
                done = commands.run(
                    [*asked, "--revision", revision], capture_output=True, timeout=PATIENCE_S, check=False, text=True
                )
                assert '{\\"text\\": \\"1\\"}' in done.stdout, done.stderr
        finally:
            process.terminate()
            process.stderr.read()
