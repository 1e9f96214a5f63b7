"""A server at a URL is spoken to in the era of its client, if it has that; what it lacks is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman.host.known import KnownServer
from tests.support.waiting import hang
from tests.transports.upstream.stage import Reply, Request, client, on_loop, server, shake_hands
from tests.transports.upstream.test_per_request import META, NEWER, Stateless, answer

Say = Callable[[Request, Reply], Awaitable[None]]


@pytest.fixture
def known(tmp_path: Path) -> KnownServer:
    return KnownServer(str(tmp_path / "one"), is_up=True)


class Older:
    """A server with a handshake; what it says to a method that it does not know is the test's."""

    def __init__(self, refuse: Say) -> None:
        self.posts: list[str | None] = []
        self.refuse = refuse

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.method == "POST":
            self.posts.append(request.rpc)
        if not await shake_hands(request, reply):
            if request.rpc == "server/discover":
                await self.refuse(request, reply)
            else:
                await reply.result(request, {"tools": []})


class BothEras(Stateless):
    """A server that takes `initialize` as well."""

    async def __call__(self, request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            self.seen.append(request)
        else:
            await super().__call__(request, reply)


def status(text: str, body: bytes = b"") -> Say:
    async def say(request: Request, reply: Reply) -> None:
        await reply.status(text, body=body)

    return say


def no_method(text: str) -> Say:
    async def say(request: Request, reply: Reply) -> None:
        body = {"jsonrpc": "2.0", "id": request.frame["id"], "error": {"code": -32601, "message": "Method not found"}}
        await reply.json(body, status=text)

    return say


async def say_nothing(request: Request, reply: Reply) -> None:
    await hang()


async def cut(request: Request, reply: Reply) -> None:
    reply.cut()


NO_SESSION = b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}'

REFUSALS = {
    "no method": no_method("200 OK"),
    "no method, 404": no_method("404 Not Found"),
    "no session": status("400 Bad Request", NO_SESSION),
    "text": status("400 Bad Request", b"Invalid or missing session ID"),
    "404": status("404 Not Found"),
    "405": status("405 Method Not Allowed"),
    "500": status("500 Internal Server Error", b"<html>"),
    "202": status("202 Accepted"),
    "cut": cut,
    "silent": say_nothing,
}


REQUEST = {"_meta": {META + "protocolVersion": NEWER, META + "clientCapabilities": {}}}
SESSION = ["initialize", "notifications/initialized", "tools/list"]


@pytest.mark.parametrize("refusal", REFUSALS)
@on_loop
async def test_a_client_without_a_handshake_asks_again_for_a_slow_gateway_may_have_been_silent(
    known: KnownServer, refusal: str
) -> None:
    older = Older(REFUSALS[refusal])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.core.edges.upstream.READ_SILENCE_S", 0.2)
        for _ in range(2):
            async with server(older) as url, client(url, opened=False, known=known) as peer:
                assert (await peer.ask("tools/list", **REQUEST))["result"]["tools"] == []
    assert older.posts == ["server/discover", *SESSION] * 2
    assert known.recall() is True


@pytest.mark.parametrize("text", ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests", "503 Not Now"])
@on_loop
async def test_what_says_nothing_about_the_server_is_not_remembered(known: KnownServer, text: str) -> None:
    async with server(Older(status(text))) as url, client(url, opened=False, known=known) as peer:
        assert "result" in await peer.ask("tools/list", **REQUEST)
    assert known.recall() is None


@on_loop
async def test_an_older_server_is_not_asked_what_it_is_by_a_client_with_a_handshake(known: KnownServer) -> None:
    older = Older(say_nothing)
    async with server(older) as url, client(url, known=known) as peer:
        assert "result" in await peer.ask("tools/list")
    assert older.posts == SESSION
    assert known.recall() is None


@on_loop
async def test_a_server_of_both_eras_is_spoken_to_in_that_of_each_client(known: KnownServer) -> None:
    both = BothEras(answer)
    for opened, more in ((False, REQUEST), (True, {}), (False, REQUEST)):
        async with server(both) as url, client(url, opened=opened, known=known) as peer:
            assert "result" in await peer.ask("tools/list", **more)
    asked = [request.rpc for request in both.seen if request.method == "POST"]
    assert asked == ["server/discover", "tools/list", *SESSION[:2], "tools/list", "server/discover", "tools/list"]
    assert known.recall() is None


@pytest.mark.parametrize(("code", "text"), [(-32022, "400 Bad Request"), (-32020, "400 Oh"), (-32601, "404 Not Found")])
@on_loop
async def test_a_server_that_refuses_a_handshake_is_not_offered_one_again_for_a_day(
    known: KnownServer, code: int, text: str
) -> None:
    newer = Stateless(answer)
    offers = 0

    async def serve(request: Request, reply: Reply) -> None:
        nonlocal offers
        if request.rpc != "initialize":
            await newer(request, reply)
            return
        offers += 1
        told = {"code": code, "message": "no", "data": {"supported": [NEWER], "requested": "?"}}
        await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": told}, status=text)

    for _ in range(2):
        async with server(serve) as url, client(url, known=known) as peer:
            assert "result" in await peer.ask("tools/list")
    assert offers == 1
    assert known.recall() is False
