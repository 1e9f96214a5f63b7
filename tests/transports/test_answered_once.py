"""A server that answers one request several times, over real sockets, in every scope: the client hears one answer."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from dragoman.pool import Scope
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.proxy.conversation import READY, initialize, request, result
from tests.transports.house import House, hear, settle
from tests.transports.upstream.stage import hello, on_loop
from tests.transports.upstream.test_websocket import socket_server


async def answer_in_messages(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
    await answer(socket, frame, in_array=False)


async def answer_in_an_array(socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
    await answer(socket, frame, in_array=True)


async def answer(socket: web.WebSocketResponse, frame: dict[str, Any], in_array: bool) -> None:
    if "id" not in frame:
        return
    if frame["method"] == "initialize":
        await socket.send_json(result(frame["id"], hello(frame["params"]["protocolVersion"])))
        return
    several = [result(frame["id"], {"content": [], "n": n}) for n in range(3)]
    for message in [several] if in_array else several:
        await socket.send_json(message)


@pytest.mark.parametrize("say", [answer_in_messages, answer_in_an_array])
@pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED])
@pytest.mark.parametrize("revision", ["2025-11-25", "2025-03-26"])
@on_loop
async def test_only_the_first_answer_reaches_the_client(say: Any, scope: Scope, revision: str) -> None:
    async with socket_server(say) as (url, _):
        house = House(scope, lambda: open_upstream(UpstreamConfig(url, close_timeout_s=0.5)))
        guest = await house.enter()
        guest.say(initialize(revision))
        assert (await hear(guest))["result"]["protocolVersion"] == revision
        guest.say(READY)
        for key in (1, 2):
            guest.say(request(key, "tools/call", name="t"))
            heard = await hear(guest)
            assert (heard["id"], heard["result"]["n"]) == (key, 0)
        await settle(40)
        assert guest.lines.empty()
        await house.close()
