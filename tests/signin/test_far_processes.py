"""Signing in from far away, with proxies that are processes: behind a configuration file, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.signin.far import ABLE, PATH, Browser, Client, find_link, form_of
from tests.signin.house import get, house
from tests.signin.test_hostile_links import stuck_at
from tests.support.ports import free_port
from tests.support.waiting import pass_time, until
from tests.transports.http.wire import hang_up, request
from tests.transports.upstream.stage import on_loop


@contextlib.asynccontextmanager
async def login(*options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Somebody at a terminal, whose browser is on another machine."""
    pipe = asyncio.subprocess.PIPE
    command = sys.executable, "-m", "dragoman", "login", "--no-browser", *options
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(os.environ))
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.communicate()


async def read_until(child: asyncio.subprocess.Process, words: str) -> str:
    """Read its stderr up to a line with these words; give that line."""
    assert child.stderr is not None
    async with asyncio.timeout(60):
        while words not in (line := (await child.stderr.readline()).decode()):
            assert line
        return line.strip()


@pytest.mark.parametrize("redirect", ["", "https://proxy.example/oauth/callback"])
@on_loop
async def test_an_address_is_pasted_into_a_terminal(folder: Path, redirect: str) -> None:
    async with house(folder) as home:
        options = ("--oauth-redirect-url", redirect) if redirect else ()
        async with login(*options, home.url) as child:
            assert child.stdin is not None
            page = await read_until(child, "/authorize?")
            await read_until(child, "Paste its address here")
            child.stdin.write(b"no address\n")
            await read_until(child, "That is not it")
            _, headers, _ = await get(page)
            assert headers["location"].startswith(redirect or "http://127.0.0.1:")
            child.stdin.write(headers["location"].encode() + b"\n")
            async with asyncio.timeout(60):
                assert await child.wait() == 0


@on_loop
async def test_who_signs_in_at_a_terminal_is_told_that_somebody_else_is_at_it(folder: Path) -> None:
    async with house(folder) as home, login(home.url) as first:
        await read_until(first, "Paste its address here")
        async with login(home.url) as second:
            await read_until(second, "another process is signing in to this server")
            first.kill()
            await read_until(second, "Paste its address here")


@contextlib.asynccontextmanager
async def proxy(folder: Path, port: int, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A proxy that listens, and lets ann in."""
    (folder / "secrets").write_text("ann secret-of-ann\n")
    words = ["proxy", "--listen", f"http://127.0.0.1:{port}", "--auth-token-file", str(folder / "secrets"), *options]
    command = sys.executable, "-m", "dragoman", *words
    child = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=dict(os.environ))
    assert child.stderr is not None
    try:
        async with asyncio.timeout(60):
            while b"listening on" not in await child.stderr.readline():
                pass
        yield child
    finally:
        await hang_up()
        child.terminate()
        await child.communicate()


@on_loop
async def test_a_server_of_a_configuration_file_is_signed_in_to(folder: Path) -> None:
    async with house(folder) as home:
        port, file = free_port(), folder / "servers.json"
        sign_in = {"oauth": {"redirectUrl": f"http://127.0.0.1:{port}{PATH}"}}
        servers = {"tracker": {"url": home.url}}
        file.write_text(json.dumps({"mcpServers": servers, "dragoman": {"servers": {"tracker": sign_in}}}))
        async with proxy(folder, port, "--config", str(file)):
            ann = Client(port, "secret-of-ann")
            other = Client(port, "secret-of-ann")
            for client in (ann, other):
                await client.open(ABLE)
                await client.call()
                why = (await client.answer())["error"]["message"]
                assert "tracker cannot be used (it could not be opened: tracker: it wants a sign-in: open http" in why
            assert "tracker can be used now" in (await Browser().sign_in(find_link(why), "secret-of-ann")).text
            await ann.call()
            assert (await ann.answer())["error"]["message"] == "unknown tool: t"
            assert ("tools/list", "Bearer token-secret-1") in home.seen


@on_loop
async def test_a_deleted_session_of_a_router_does_not_wait_for_a_person(folder: Path) -> None:
    async with house(folder) as home:
        home.pages["/mcp"] = home.serve_rounds
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        port, file = free_port(), folder / "servers.json"
        sign_in = {"oauth": {"redirectUrl": f"http://127.0.0.1:{port}{PATH}"}}
        servers = {"tracker": {"url": home.url}}
        file.write_text(json.dumps({"mcpServers": servers, "dragoman": {"servers": {"tracker": sign_in}}}))
        async with proxy(folder, port, "--config", str(file), "--log-level", "info") as child:
            ann = Client(port, "secret-of-ann")
            assert "result" in await ann.open(ABLE)
            (await ann.post({"id": 9, "method": "tools/list"})).leave()
            await ann.call_and_get_link()
            await until(lambda: sum("name" in params for params in home.rounds) == 2)  # called again, once it was asked
            await pass_time(0.3)
            headers = {"mcp-session-id": ann.session, "x-api-key": "secret-of-ann"}
            assert (await request(port, "DELETE", "/mcp", headers)).status == 204
            began_s = time.monotonic()
            await read_until(child, "is over; 0 are open")
            assert time.monotonic() - began_s < 20, "it drains for 30 s otherwise"


@on_loop
async def test_who_comes_back_after_the_proxy_was_started_again_opens_a_link_again(folder: Path) -> None:
    async with house(folder) as home:
        port = free_port()
        options = "--oauth-redirect-url", f"http://127.0.0.1:{port}{PATH}", "--url", home.url
        async with proxy(folder, port, *options):
            ann = Client(port, "secret-of-ann")
            link = find_link((await ann.open(ABLE))["error"]["message"])
            browser = await stuck_at(link, "secret-of-ann")
        async with proxy(folder, port, *options):
            ann = Client(port, "secret-of-ann")
            again = find_link((await ann.open(ABLE))["error"]["message"])
            assert (await Browser().go(link)).status == 404
            state = parse_qs(urlsplit(browser.at).query)["state"][0]
            back = f"http://127.0.0.1:{port}{PATH}?code=code-secret&state={state}"
            assert (await Browser(dict(browser.cookies)).go(back)).status == 403, "who was sent there is forgotten"
            wrong = await Browser().go(again.partition("?")[0], form_of(again, secret="no"))
            assert wrong.status == 403
            assert "You are signed in" in (await Browser().sign_in(again, "secret-of-ann")).text
            assert "result" in await Client(port, "secret-of-ann").open(ABLE)
        assert home.count("/register") == 1
