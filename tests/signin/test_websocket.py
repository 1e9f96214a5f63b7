"""A WebSocket server that wants a token with the request that opens it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.signin.authority import SignIn, sign_in_for
from dragoman.signin.settings import SignInSettings
from tests.signin.house import House, house
from tests.support.waiting import until
from tests.transports.upstream.raw import Line, raw_server
from tests.transports.upstream.raw_websocket import CLOSE, accept_of, frame_of, read_frame
from tests.transports.upstream.stage import Client, client, hello, on_loop

UPGRADE = b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n"
PUBLISHED = "/.well-known/oauth-protected-resource"


@dataclass
class Guarded:
    """A server at a WebSocket that takes the tokens of a house.

    Attributes:
        seen: The `Authorization` of each request to open one.
    """

    home: House
    url: str = ""
    seen: list[str] = field(default_factory=list)

    def sign_in(self, **settings: Any) -> SignIn:
        found = sign_in_for(self.url, (), SignInSettings(**settings), self.home.person)
        assert found is not None
        return found

    @contextlib.asynccontextmanager
    async def client(self, **config: Any) -> AsyncIterator[Client]:
        config.setdefault("authority", self.sign_in())
        async with client(self.url, **config) as peer:
            yield peer

    async def serve(self, line: Line) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            head = await line.reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode().strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
            if PUBLISHED in first:
                resource = self.url.replace("ws", "http", 1)
                await self.say(line, "200 OK", {"resource": resource, "authorization_servers": [self.home.base]})
                return
            self.seen.append(headers.get("authorization", ""))
            if self.seen[-1].removeprefix("Bearer ") in self.home.good:
                await line.say(UPGRADE % accept_of(head))
                await self.talk(line, self.seen[-1])
            else:
                await self.say(line, "401 Unauthorized", {})

    async def say(self, line: Line, status: str, value: Any) -> None:
        body = json.dumps(value)
        about = f"WWW-Authenticate: Bearer\r\nContent-Length: {len(body)}\r\nConnection: close"
        await line.say(f"HTTP/1.1 {status}\r\n{about}\r\n\r\n{body}".encode())

    async def talk(self, line: Line, sent: str) -> None:
        while True:
            first, body = await read_frame(line)
            if first == CLOSE:
                return
            if "id" in (frame := json.loads(body)):
                result = hello() if frame["method"] == "initialize" else {"sent": sent}
                await line.say(frame_of(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode()))


@contextlib.asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[Guarded]:
    async with house(folder) as home, guarding(home) as here:
        yield here


@contextlib.asynccontextmanager
async def guarding(home: House) -> AsyncIterator[Guarded]:
    here = Guarded(home)
    async with raw_server(here.serve) as url:
        here.url = url.replace("http:", "ws:")
        yield here


@on_loop
async def test_a_refused_upgrade_leads_to_a_sign_in_and_the_token_opens_it(folder: Path) -> None:
    async with guarded(folder) as here, here.client() as peer:
        assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-1"}
        assert here.seen == ["", "Bearer token-secret-1"]
        asked = next(said for path, said in here.home.asked if path == "/authorize")
        assert asked["resource"] == here.url.replace("ws:", "http:")


@on_loop
async def test_the_token_is_sent_at_once_by_the_next_start(folder: Path) -> None:
    async with guarded(folder) as here:
        for _ in range(2):
            async with here.client() as peer:
                await peer.ask("tools/list")
        assert (len(here.home.person.pages), here.seen[2:]) == (1, ["Bearer token-secret-1"])


@on_loop
async def test_a_token_that_has_ended_is_refreshed_when_it_opens_again(folder: Path) -> None:
    async with guarded(folder) as here:
        async with here.client() as peer:
            await peer.ask("tools/list")
        here.home.good.clear()
        async with here.client() as peer:
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-2"}
        assert len(here.home.person.pages) == 1


@on_loop
async def test_a_person_may_take_longer_than_a_connection(folder: Path) -> None:
    async with guarded(folder) as here:
        here.home.person.says_yes.clear()
        async with here.client(opened=False, connect_timeout_s=5.0) as peer:
            about = {"capabilities": {}, "clientInfo": {"name": "c", "version": "0"}}
            asked = peer.start("initialize", protocolVersion="2025-11-25", **about)
            await until(lambda: here.home.person.pages)
            asyncio.get_running_loop().skip(120)  # type: ignore[attr-defined]
            here.home.person.says_yes.set()
            assert "result" in await peer.answer(asked)


@on_loop
async def test_a_server_that_always_says_no_is_given_up(folder: Path) -> None:
    async with guarded(folder) as here:
        here.home.token = {"access_token": "of-no-use"}
        async with here.client(opened=False) as peer:
            assert "it refuses the token" in (await peer.initialize())["error"]["message"]
        assert len(here.home.person.pages) == 1
