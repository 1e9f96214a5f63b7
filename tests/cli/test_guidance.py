"""What a command says to somebody who has made a mistake: what to write instead, before anything is sent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import dragoman
from tests.docs.test_options import parser_of
from tests.support import commands

SERVER = str(Path(__file__).parent.parent / "client" / "echo_server.py")
STDIO = ["--", sys.executable, SERVER]
LONGEST_S = 60


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["list", "python3", "server.py"], "dragoman list -- python3 server.py"),
        (["call", "add", "python3", "server.py"], "dragoman call add -- python3 server.py"),
        (["proxy", "python3", "-u", "x", "--no-era-cache"], "dragoman proxy -- python3 -u x --no-era-cache"),
        (["check", "--no-such", "thing"], "dragoman check -- COMMAND ..."),
    ],
)
def test_a_command_without_dashes_before_it_is_shown_with_them(arguments: list[str], shown: str) -> None:
    done = commands.dragoman(*arguments)
    assert done.returncode == 2
    assert f"a server's command comes after `--`: {shown}" in " ".join(done.stderr.split())


def test_the_proxy_starts_a_command_whose_dashes_were_lost_on_the_way() -> None:
    """Python's `mcp-proxy` takes every `--` out of the command that it is given."""
    program = [sys.executable, "-c", "import sys; print('begun', file=sys.stderr)"]
    done = commands.dragoman("proxy", "--log-level", "info", *program)
    assert "begun" in done.stderr


@pytest.mark.parametrize("page", [["--inspect"], ["--inspect", "http://127.0.0.1:1"], ["--open", "--inspect"]])
@pytest.mark.parametrize("dashes", [["--"], []])
def test_an_option_whose_value_may_be_left_out_takes_nothing_of_the_command(page: list[str], dashes: list[str]) -> None:
    given = parser_of("proxy").parse_args([*page, *dashes, sys.executable, "-c", "1"])
    assert given.command == [sys.executable, "-c", "1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["call", "eco"], "the server has no tool 'eco'; did you mean echo?"),
        (["call", "zzz"], "the server has no tool 'zzz'; it has: echo, fail, "),
        (["call", "echo", "cuont=3"], "echo has no argument 'cuont'; did you mean count?; it is echo(count?: int, "),
    ],
)
def test_what_a_server_does_not_have_is_said_before_it_is_asked_for(arguments: list[str], said: str) -> None:
    done = commands.dragoman(*arguments, *STDIO)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("revision", ["any", "2025-11-25", "2026-07-28"])
def test_a_silent_server_is_a_timeout_in_every_revision(revision: str) -> None:
    silent = "import sys; [None for line in sys.stdin]"
    done = commands.dragoman("list", "--timeout", "1", "--revision", revision, "--", sys.executable, "-c", silent)
    assert (done.returncode, "timed out after 1 s" in done.stderr) == (5, True), done.stderr


def test_a_person_is_told_that_a_silent_server_is_waited_for() -> None:
    silent = "import sys, time; time.sleep(100)"
    done = commands.dragoman("list", "--timeout", "6", "--", sys.executable, "-c", silent)
    assert "the server has not answered for 5 s; still waiting, because it may be starting" in done.stderr
    assert done.returncode == 5


def test_losses_are_no_news_for_a_person_who_lists() -> None:
    server = [sys.executable, SERVER, "--revision", "2025-11-25"]
    asked = ["list", "--revision", "2026-07-28"]
    plain, told = (commands.dragoman(*asked, *more, "--", *server) for more in ([], ["--log-level=info"]))
    assert "dragoman.translate" not in plain.stderr
    assert "WARNING dragoman.translate" not in told.stderr


def test_with_a_file_each_tool_is_shown_with_its_server(tmp_path: Path) -> None:
    servers = {name: {"command": sys.executable, "args": [SERVER, "--few"]} for name in ("here", "far")}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    done = commands.dragoman("list", "tools", "--config", str(tmp_path / "mcp.json"))
    lines = [line.split()[:2] for line in done.stdout.splitlines()[2:]]
    assert [(server, tool.partition("(")[0]) for server, tool in lines] == [
        *(("here", "here_echo"), ("here", "here_fail")),
        *(("far", "far_echo"), ("far", "far_fail")),
    ]


def test_the_package_shows_what_it_has() -> None:
    assert {"connect", "connect_sync"} <= set(dir(dragoman))
