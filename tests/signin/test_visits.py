"""A sign-in by device code, for which the person behind the client is asked to visit a page."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.label import LABEL
from dragoman.pool import Scope
from dragoman.signin.authority import SignIn
from dragoman.signin.settings import SignInSettings
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from dragoman_spec import LATEST
from tests.proxy.conversation import request, result
from tests.signin.house import House, house
from tests.support.waiting import put_forward, until
from tests.transports.house import House as Pool
from tests.transports.house import hear, settle
from tests.transports.upstream.stage import Client, Reply, Request, on_loop

ABLE = {"elicitation": {"form": {}, "url": {}}}


@contextlib.asynccontextmanager
async def place(folder: Path) -> AsyncIterator[tuple[House, list[bool]]]:
    """A server whose calls need a token, got by device code; the list is empty until the code has been typed."""
    typed: list[bool] = []
    async with house(folder) as home:

        async def device(request: Request, reply: Reply) -> None:
            page = f"{home.base}/type?code=AB-CD"
            codes = {"device_code": "d", "user_code": "AB-CD", "interval": 1, "expires_in": 300}
            await reply.json({**codes, "verification_uri": page, "verification_uri_complete": page})

        async def token(request: Request, reply: Reply) -> None:
            if not typed:
                await reply.json({"error": "authorization_pending"}, status="400 Bad Request")
                return
            home.good["token-1"] = ""
            await reply.json({"access_token": "token-1", "token_type": "Bearer"})

        home.metadata = {"device_authorization_endpoint": f"{home.base}/device"}
        home.pages |= {"/device": device, "/token": token}
        home.wants = lambda request: "" if request.rpc == "tools/call" else None
        yield home, typed


@contextlib.asynccontextmanager
async def joined(home: House, capabilities: Any, revision: str = "2025-11-25") -> AsyncIterator[Client]:
    authority = SignIn(home.url, SignInSettings(grant="device_code"))
    async with home.client(opened=False, authority=authority) as peer:
        about = {"capabilities": capabilities, "clientInfo": {"name": "c", "version": "0"}}
        assert "result" in await peer.ask("initialize", protocolVersion=revision, **about)
        peer.notify("notifications/initialized")
        yield peer


async def asked(peer: Client) -> Any:
    await peer.until(lambda: bool(peer.others))
    return peer.others[0]


def say(peer: Client, question: Any, action: str) -> None:
    peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action}})


@on_loop
async def test_the_client_is_asked_for_the_visit_and_the_call_goes_on(folder: Path) -> None:
    async with place(folder) as (home, typed), joined(home, ABLE) as peer:
        call = peer.start("tools/call", name="t")
        question = await asked(peer)
        params = question["params"]
        assert (question["method"], params["mode"]) == ("elicitation/create", "url")
        assert params["url"] == f"{home.base}/type?code=AB-CD"
        assert "AB-CD" in params["message"]
        assert home.url in params["message"]
        say(peer, question, "accept")
        await put_forward(5)
        assert call not in peer.answers
        typed.append(True)
        assert (await peer.answer(call))["result"] == {"sent": "Bearer token-1"}
        done = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete"}
        assert peer.others[1:] == [{**done, "params": {"elicitationId": params["elicitationId"]}}]
        assert not [one for one in home.seen if one[0] == "POST"], "its answer is not for the server"


@pytest.mark.parametrize("scope", [Scope.SHARED, Scope.PRINCIPAL])
@on_loop
async def test_only_whose_call_needs_it_gets_the_link_and_all_go_on(folder: Path, scope: Scope) -> None:
    async with place(folder) as (home, typed):
        authority = SignIn(home.url, SignInSettings(grant="device_code"))
        config = UpstreamConfig(home.url, close_timeout_s=0.5, authority=authority)
        pool = Pool(scope, lambda: open_upstream(config))
        ann, ben = [await pool.open(principal=name, elicitation={"url": {}}) for name in ("ann", "ben")]
        ann.say(request(1, "tools/call", name="t"))
        question = await hear(ann)
        ben.say(request(1, "tools/call", name="t"))
        await put_forward(3)
        assert ben.lines.empty()
        ann.say(result(question["id"], {"action": "accept"}))
        typed.append(True)
        heard = [await hear(ann), await hear(ann)]
        assert {one.get("method", "answer") for one in heard} == {"notifications/elicitation/complete", "answer"}
        assert (await hear(ben))["result"] == {"sent": "Bearer token-1"}
        await settle()
        assert ben.lines.empty()
        await pool.close()


@on_loop
async def test_the_link_says_for_whom_it_is(folder: Path) -> None:
    label = LABEL.set("session 3 of ada")
    async with place(folder) as (home, _), joined(home, ABLE) as peer:
        peer.start("tools/call", name="t")
        question = await asked(peer)
        assert "for a call of session 3 of ada" in question["params"]["message"]
        say(peer, question, "cancel")
    LABEL.reset(label)


@pytest.mark.parametrize("action", ["decline", "cancel"])
@on_loop
async def test_who_does_not_want_to_is_not_waited_for(folder: Path, action: str) -> None:
    async with place(folder) as (home, _), joined(home, ABLE) as peer:
        call = peer.start("tools/call", name="t")
        say(peer, await asked(peer), action)
        assert "did not want to" in (await peer.answer(call))["error"]["message"]
        assert len(peer.others) == 1


@pytest.mark.parametrize(
    ("capabilities", "revision"),
    [({}, "2025-11-25"), ({"elicitation": {}}, "2025-11-25"), ({"elicitation": {}}, "2025-06-18")],
)
@on_loop
async def test_a_client_that_shows_no_pages_is_not_asked(
    folder: Path, caplog: pytest.LogCaptureFixture, capabilities: Any, revision: str
) -> None:
    async with place(folder) as (home, typed), joined(home, capabilities, revision) as peer:
        call = peer.start("tools/call", name="t")
        await until(lambda: "AB-CD" in caplog.text)
        typed.append(True)
        assert (await peer.answer(call))["result"] == {"sent": "Bearer token-1"}
        assert peer.others == []


@on_loop
async def test_a_client_without_a_session_is_asked_in_a_round_of_its_call(folder: Path) -> None:
    async with place(folder) as (home, typed):
        home.pages["/mcp"] = home.serve_sessions
        authority = SignIn(home.url, SignInSettings(grant="device_code"))
        async with home.client(opened=False, authority=authority) as peer:
            about = {"protocolVersion": LATEST, "clientInfo": {"name": "c", "version": "0"}, "clientCapabilities": ABLE}
            meta = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
            asked_for = (await peer.ask("tools/call", name="t", arguments={}, _meta=meta))["result"]
            ((name, question),) = asked_for["inputRequests"].items()
            assert (question["method"], question["params"]["mode"]) == ("elicitation/create", "url")
            typed.append(True)
            state = {"requestState": asked_for["requestState"], "inputResponses": {name: {"action": "accept"}}}
            answer = await peer.ask("tools/call", name="t", arguments={}, _meta=meta, **state)
            assert answer["result"]["sent"] == "Bearer token-1"
