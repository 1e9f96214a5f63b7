"""Signing in by a link at a server behind a router: once somebody has, the session that began before uses it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import SignInFailed
from dragoman.pool import Scope
from dragoman.transports.upstream.config import Kind
from dragoman_spec import LATEST
from tests.signin.far import ABLE, Browser, Client, Far, far, find_link
from tests.signin.house import House, Person, house
from tests.signin.test_websocket import guarding
from tests.support.waiting import until
from tests.transports.upstream.stage import Reply, Request, on_loop

TWO = {"ann": "secret-of-ann", "ben": "secret-of-ben"}


def serve_tools(home: House) -> None:
    """Serve a server with a tool, which says nothing without a token."""
    home.wants = lambda request: ""
    serve = home._serve_mcp

    async def page(request: Request, reply: Reply) -> None:
        sent = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.rpc == "tools/list" and sent in home.good:
            await reply.result(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        else:
            await serve(request, reply)

    home.pages["/mcp"] = page


async def ask(client: Client, method: str, **params: Any) -> Any:
    client.asked += 1
    return (await client.frames(await client.post({"id": client.asked, "method": method, "params": params})))[-1]


async def sign_in(place: Far, said: Any, secret: str) -> None:
    assert "You are signed in" in (await Browser().sign_in(find_link(json.dumps(said)), secret)).text


@pytest.mark.parametrize("scope", list(Scope))
@on_loop
async def test_the_next_list_of_the_session_has_its_tools(folder: Path, scope: Scope) -> None:
    async with far(folder, TWO, scope, in_file="tracker") as place:
        serve_tools(place.home)
        ann, ben = [await place.enter(f"secret-of-{name}") for name in TWO]
        for client in (ann, ben):
            assert "it wants a sign-in" in json.dumps(await ask(client, "tools/list"))
        await sign_in(place, await ask(ann, "tools/list"), "secret-of-ann")
        for client in (ann, ben):
            listed = (await ask(client, "tools/list"))["result"]
            assert ([tool["name"] for tool in listed["tools"]], "_meta" in listed) == (["t"], False)
            assert (await ask(client, "tools/call", name="t"))["result"] == {"sent": "Bearer token-secret-1"}


@on_loop
async def test_the_next_call_of_the_session_reaches_it(folder: Path) -> None:
    async with far(folder, TWO, in_file="tracker") as place:
        serve_tools(place.home)
        ann = await place.enter("secret-of-ann")
        refused = await ask(ann, "tools/call", name="t")
        assert "tracker cannot be used" in refused["error"]["message"]
        await sign_in(place, refused, "secret-of-ann")
        assert (await ask(ann, "tools/call", name="t"))["result"] == {"sent": "Bearer token-secret-1"}


@on_loop
async def test_a_call_by_a_name_that_is_known_reaches_it(folder: Path) -> None:
    async with far(folder, TWO, in_file="tracker") as place:
        serve_tools(place.home)
        ann, ben = [await place.enter(f"secret-of-{name}") for name in TWO]
        await sign_in(place, await ask(ann, "tools/list"), "secret-of-ann")
        assert "result" in await ask(ann, "tools/call", name="t")
        assert (await ask(ben, "tools/call", name="t"))["result"] == {"sent": "Bearer token-secret-1"}


@on_loop
async def test_a_link_that_nobody_has_opened_is_in_each_answer(folder: Path) -> None:
    async with far(folder, TWO, in_file="tracker") as place:
        serve_tools(place.home)
        ann = await place.enter("secret-of-ann")
        links = {find_link(json.dumps(await ask(ann, "tools/list"))) for _ in range(3)}
        assert len(links) == 1
        assert place.home.count("/register") == 1


@contextlib.asynccontextmanager
async def by_websocket(home: House) -> AsyncIterator[str]:
    async with guarding(home) as here:
        yield here.url


@on_loop
async def test_a_server_at_a_websocket_is_reached_too(folder: Path) -> None:
    async with far(folder, TWO, in_file="tracker", others=by_websocket) as place:
        ann = await place.enter("secret-of-ann")
        await sign_in(place, await ask(ann, "tools/call", name="t"), "secret-of-ann")
        listed = await ask(ann, "tools/list")
        assert "sign-in" not in json.dumps(listed)
        assert listed["result"]["tools"] == []


class FarAway(Person):
    """Somebody who gets a link, and has to call again."""

    goes_on = True

    async def show(self, peer: str, url: str) -> None:
        self.pages.append(url)

    async def invite(self, peer: str) -> None:
        await until(lambda: self.pages)
        error = SignInFailed(peer, "open the link")
        error.was_asked = True
        raise error


@on_loop
async def test_over_http_and_sse_the_opening_says_that_somebody_was_asked(folder: Path) -> None:
    async with house(folder) as home:
        home.person = FarAway()
        sign_in = home.sign_in()
        async with home.client(opened=False, kind=Kind.SSE, authority=sign_in) as peer:
            error = (await peer.initialize())["error"]
            assert ("open the link" in error["message"], error["data"]) == (True, {"askedInVain": True})
        await sign_in.keeper.stop()


@on_loop
async def test_a_client_without_a_session_reaches_it(folder: Path) -> None:
    async with far(folder, TWO, in_file="tracker") as place:
        place.home.pages["/mcp"] = place.home.serve_rounds
        home = place.home

        async def page(request: Request, reply: Reply) -> None:
            if request.headers.get("authorization", "").removeprefix("Bearer ") in home.good:
                await home.serve_rounds(request, reply)
            else:
                said = f'resource_metadata="{home.base}/.well-known/oauth-protected-resource/mcp"'
                await reply.status("401 Unauthorized", f"WWW-Authenticate: Bearer {said}")

        home.pages["/mcp"] = page
        home.wants = lambda request: None
        ann = Client(place.port, "secret-of-ann")
        refused = await ask_alone(ann, "server/discover")
        assert refused["result"]["supportedVersions"]
        listed = await ask_alone(ann, "tools/list")
        await sign_in(place, listed, "secret-of-ann")
        assert [tool["name"] for tool in (await ask_alone(ann, "tools/list"))["result"]["tools"]] == ["t"]


async def ask_alone(client: Client, method: str) -> Any:
    about = {"protocolVersion": LATEST, "clientInfo": {"name": "c", "version": "0"}, "clientCapabilities": ABLE}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
    headers = {"MCP-Protocol-Version": LATEST, "Mcp-Method": method}
    return (await client.frames(await client.post({"id": 1, "method": method, "params": {"_meta": meta}}, **headers)))[
        -1
    ]
