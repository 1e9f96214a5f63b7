"""`dragoman proxy --url`: the options, and a session through the command itself."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from unittest.mock import patch

import pytest

from dragoman.cli import main
from dragoman.cli.routing import make_router
from dragoman.config import parse_config
from dragoman.proxy import ProxyConfig
from dragoman.transports.warden import Warden
from dragoman_spec import DEFAULT_RULES
from tests.support import commands
from tests.transports.upstream.stage import Reply, Request, on_loop, server, shake_hands


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "expected a server: either `-- COMMAND`, `--url URL` or `--config FILE`"),
        (
            ["--url", "http://h/", "--", "cat"],
            "expected a server: either `-- COMMAND`, `--url URL` or `--config FILE`; found both",
        ),
        (["--header", "X=y", "--", "cat"], "--header means nothing without --url"),
        (["--insecure", "--", "cat"], "--insecure means nothing without --url"),
        (["--url", "ftp://h/"], "expected a URL that begins with http, https, ws or wss, found 'ftp'"),
        (["--url", "http://h/", "--header", "X"], "expected NAME=VALUE or 'NAME: VALUE'"),
        (["--url", "http://h/", "--header", "X=$DRAGOMAN_NOT_SET"], "no variable DRAGOMAN_NOT_SET"),
        (["--url", "http://h/", "--ca-file", "/nowhere"], "there is no file '/nowhere'"),
        (["--url", "http://h/", "--ca-file", "/"], "expected a file, found the directory '/'"),
        (["--url", "http://h/", "--ca-file", __file__], "expected certificates in PEM, found none in"),
        (["--url", "http://h/", "--client-cert", __file__], "expected certificates in PEM, found none in"),
        (["--url", "http://h/", "--client-key", "/nowhere"], "there is no file '/nowhere'"),
        (["--url", "http://h/", "--client-key", __file__], "--client-key means nothing without --client-cert"),
        (["--url", "http://h/", "--proxy", "socks5://p:1"], "expected http://HOST:PORT or https://HOST:PORT"),
        (["--url", "http://h/", "--idle-timeout", "0"], "expected a number of seconds above 0"),
        (["--url", "http://h/", "--upstream", "carrier-pigeon"], "invalid choice"),
        (["--url", "WSS://h/", "--upstream", "sse"], "--upstream chooses between the HTTP transports"),
    ],
)
def test_a_command_line_that_cannot_be_is_explained(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["proxy", *arguments])
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("rule", ["restore-id-type", "assume-logging"])
def test_a_rule_that_is_off_is_off_for_each_url_of_a_file(rule: str) -> None:
    configuration = parse_config('{"mcpServers": {"far": {"url": "http://127.0.0.1:9/mcp"}}}')
    rules = DEFAULT_RULES - {rule}
    given = {"listen": None, "stderr": None, "child_words": None, "invitations": None, "scope": "client"}
    args = argparse.Namespace(configuration=configuration, **given)
    with patch("dragoman.router.Router") as router:
        make_router(args, ProxyConfig(rules=rules), Warden())
    with patch("dragoman.transports.upstream.connect.open_upstream") as opened:
        router.call_args.args[2](configuration.servers[0])()
    assert opened.call_args.args[0].restore_ids is ("restore-id-type" in rules)


@on_loop
async def test_a_session_at_a_url() -> None:
    seen: list[Request] = []

    async def serve(request: Request, reply: Reply) -> None:
        seen.append(request)
        if not await shake_hands(request, reply, "very-secret-session"):
            await reply.result(request, {"tools": []})

    async with server(serve) as url:
        command = [sys.executable, "-m", "dragoman", "proxy", "--url", f"{url}?key=secret-key", "--log-level", "debug"]
        process = await asyncio.create_subprocess_exec(
            *command,
            "--header",
            "Authorization=Bearer $TOKEN",
            env={"TOKEN": "secret-token"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        frames = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _hello("2024-11-05")},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
        out, log = await process.communicate(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
    assert process.returncode == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert {request.headers["authorization"] for request in seen} == {"Bearer secret-token"}
    assert b"secret" not in log


def _hello(revision: str) -> dict[str, object]:
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}}


def test_a_server_that_is_not_there_is_named() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _hello("2025-11-25")}
    process = commands.dragoman("proxy", "--url", "http://127.0.0.1:1/mcp", input=json.dumps(frame) + "\n")
    assert process.returncode == 3
    assert "http://127.0.0.1:1/mcp: no connection: connection refused" in process.stdout
