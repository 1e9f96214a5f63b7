"""`dragoman config check`: what it prints, and the exit codes that the page lists."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.commands import dragoman

SERVER = str(Path(__file__).parent.parent / "client" / "echo_server.py")
LONGEST_S = 60


def check(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return dragoman("config", "check", str(path), *arguments)


def write(path: Path, servers: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def test_every_server_is_tried(tmp_path: Path) -> None:
    echo = {"command": sys.executable, "args": [SERVER, "--revision", "2025-03-26"]}
    servers = {"a": echo, "none": {"command": "/no/such/program"}, "off": {"command": "x", "disabled": True}}
    done = check(write(tmp_path / "mcp.json", servers))
    assert done.stdout.splitlines() == [
        "a: ok: echo 1, revision 2025-03-26, 6 tools, 2 resources",
        "none: FAILED: /no/such/program: command not found",
        "off: disabled",
    ]
    assert done.returncode == 1


def test_a_right_file_gives_0_as_json(tmp_path: Path) -> None:
    done = check(write(tmp_path / "mcp.json", {"a": {"command": "x"}}), "--no-connect", "--json")
    assert json.loads(done.stdout)["servers"] == [{"name": "a", "line": 1, "disabled": False}]
    assert done.returncode == 0


def test_a_broken_file_is_explained(tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", {"a": {"command": 5}, "b": {}})
    done = check(path)
    assert done.stderr.splitlines() == [
        f"{path}: line 1, column 34: expected command of server 'a' to be a string, found the number 5; write \"5\"",
        f"{path}: line 1, column 38: server 'b' has neither command nor url; "
        'write "command": "program", or "url": "https://host/mcp" for a server on the network',
    ]
    assert done.returncode == 2
    problems = json.loads(check(path, "--json").stdout)["problems"]
    assert [(one["line"], one["column"]) for one in problems] == [(1, 34), (1, 38)]


def test_an_entry_that_cannot_be_used_is_left_out_with_its_place_and_the_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "mcp.json", {"a": {"command": "x"}, "b": {"comand": "y"}})
    done = check(path, "--no-connect")
    assert done.stdout.splitlines() == [
        "a: not tried: x",
        "b: LEFT OUT: line 1, column 46: server 'b' has the key 'comand', and no command; write \"command\"",
    ]
    assert done.returncode == 1
    told = json.loads(check(path, "--no-connect", "--json").stdout)
    assert [one["remedy"] for one in told["problems"]] == ['write "command"']
    assert [one.get("error", "") for one in told["servers"]] == [
        "",
        "line 1, column 46: server 'b' has the key 'comand', and no command",
    ]


def test_the_other_commands_say_which_server_is_left_out(tmp_path: Path) -> None:
    echo = {"command": sys.executable, "args": [SERVER]}
    path = write(tmp_path / "mcp.json", {"a": echo, "b": {"url": "http://a/", "headers": {"A": "${NO_SUCH_NAME}"}}})
    done = dragoman("list", "prompts", "--config", str(path), "--json")
    assert "the environment has no variable NO_SUCH_NAME" in done.stderr
    assert "'b' is left out" in done.stderr
