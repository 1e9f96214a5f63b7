"""Signing in from far away, with proxies that are processes: behind a configuration file, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.signin.far import ABLE, PATH, Browser, Client, find_link, form_of
from tests.signin.house import house
from tests.signin.test_hostile_links import stuck_at
from tests.support.ports import free_port
from tests.transports.http.wire import hang_up
from tests.transports.upstream.stage import on_loop


@contextlib.asynccontextmanager
async def proxy(folder: Path, port: int, *options: str) -> AsyncIterator[None]:
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
        yield
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
            await ann.open(ABLE)
            await ann.call()
            why = (await ann.answer())["error"]["message"]
            assert "tracker cannot be used (it could not be opened: tracker: it wants a sign-in: open http" in why
            assert "tracker can be used now" in (await Browser().sign_in(find_link(why), "secret-of-ann")).text


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
