"""Secrets that change while a front serves: who has none any more is out at once, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dragoman.proxy import Proxy, ProxyConfig
from dragoman.router.router import before_router
from dragoman.transports.http.config import Admission, FrontConfig
from tests.proxy.test_per_request import NEW, asks
from tests.proxy.test_per_request_asked import FORM
from tests.router.made import MadeServer, routing
from tests.transports.http.stage import BOTH, Stage, call, content, on_loop, serving, text_of, until, within
from tests.transports.http.test_per_request import ANN, ASKED, BEN, TOKENS, begin, begin_sharing, posts, sharing
from tests.transports.http.test_per_request import call as call_alone
from tests.transports.http.wire import Reply, connect, read_reply

ADA, BOB = "secret-of-ada-0001", "secret-of-bob-0001"
BOTH_IN = Admission(tokens={"ada": ADA, "bob": BOB})
ONLY_BOB = Admission(tokens={"bob": BOB})


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@on_loop
async def test_the_session_of_a_revoked_secret_ends_and_its_call_with_it() -> None:
    async with serving(FrontConfig(admission=BOTH_IN)) as stage:
        await stage.open(**bearer(ADA))
        calling = asyncio.create_task(stage.post(call(2), **bearer(ADA)))
        await stage.server.hear()
        assert stage.front.admit(ONLY_BOB) == 1
        error = (await (await within(calling)).frame())["error"]
        assert "revoked" in error["message"]
        assert (await stage.post(call(3), **bearer(ADA))).status == 401
        await until(lambda: not stage.front.sessions)


@on_loop
async def test_the_session_of_another_goes_on() -> None:
    async with serving(FrontConfig(admission=BOTH_IN)) as stage:
        await stage.open(**bearer(BOB))
        stage.front.admit(ONLY_BOB)
        calling = asyncio.create_task(stage.post(call(2), **bearer(BOB)))
        await stage.server.hear()
        stage.server.answer(2, **content("still here"))
        assert text_of(await (await within(calling)).frame()) == "still here"


@on_loop
async def test_a_name_has_two_secrets_while_one_takes_the_place_of_the_other() -> None:
    later = "secret-of-ada-0002"
    async with serving(FrontConfig(admission=BOTH_IN)) as stage:
        await stage.open(**bearer(ADA))
        assert stage.front.admit(Admission(tokens={"ada": (ADA, later), "bob": BOB})) == 0
        for secret in (ADA, later):  # one person, whose session is one
            calling = asyncio.create_task(stage.post(call(secret), **bearer(secret)))
            await stage.server.hear()
            stage.server.answer(secret, **content("both"))
            assert text_of(await (await within(calling)).frame()) == "both"
        assert stage.front.admit(Admission(tokens={"ada": (later,), "bob": BOB})) == 1
        await until(lambda: not stage.front.sessions)
        assert (await stage.post(call(3), **bearer(ADA))).status == 401
        assert (await stage.post(call(3), **bearer(later))).status == 404, "it opens another session"


@on_loop
async def test_a_new_secret_lets_in_and_the_old_one_of_the_same_name_does_not() -> None:
    async with serving(FrontConfig(admission=BOTH_IN)) as stage:
        await stage.open(**bearer(ADA))
        assert stage.front.admit(Admission(tokens={"ada": "secret-of-ada-0002", "bob": BOB})) == 1
        await until(lambda: not stage.front.sessions)
        stage.session = ""
        stage.servers.clear()
        await stage.open(**bearer("secret-of-ada-0002"))


def head(secret: str, size: int) -> bytes:
    said = {
        "host": "localhost",
        "accept": BOTH,
        "content-type": "application/json",
        "mcp-protocol-version": NEW,
        "mcp-method": "tools/call",
        "mcp-name": "echo",
        "content-length": str(size),
        **bearer(secret),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode()


@on_loop
async def test_a_connection_whose_requests_are_known_is_asked_again() -> None:
    """A head that is the same bytes as the one before is not read: that must not let in whoever may not any more."""
    async with serving(FrontConfig(admission=BOTH_IN)) as stage:
        stage.make = lambda transport: Proxy(ProxyConfig(), transport, stage.connect, principal=transport.principal)
        task = await begin_as(stage, ADA)
        stage.server.answer((await stage.server.hear())["id"], **content("first"))
        await (await within(task)).frame()
        reader, writer = await connect(stage.port)

        async def ask(secret: str, key: int) -> Any:
            body = json.dumps(asks(key, "tools/call", name="echo")).encode()
            writer.write(head(secret, len(body)) + body)
            if secret == ADA and stage.front.sessions and key < 5:
                stage.server.answer((await stage.server.hear())["id"], **content(str(key)))
            return await read_reply(reader, writer)

        for key in (3, 4):
            reply: Reply = await within(ask(ADA, key))
            assert reply.status == 200
            await reply.reader.readexactly(int(reply.headers["content-length"]))
        stage.front.admit(Admission(tokens={"ada": "secret-of-ada-0002", "bob": BOB}))
        await until(lambda: not stage.front.sessions)
        stage.servers.clear()
        task = await begin_as(stage, "secret-of-ada-0002")  # so that ada is served again
        assert (await within(ask(ADA, 5))).status == 401
        task.cancel()


@on_loop
async def test_calls_that_wait_for_a_revoked_client_end_at_once() -> None:
    async with sharing() as stage:
        calling, heard = await begin_sharing(stage, call_alone(has=FORM), **ANN)
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ASKED})
        assert (await (await within(calling)).frame())["result"]["resultType"] == "input_required"
        stage.front.admit(Admission(tokens={"ben": TOKENS["ben"]}))
        told = await stage.server.hear()
        assert (told["id"], "may not come in" in told["error"]["message"]) == ("q", True)
        told = await stage.server.hear()  # a second later: until then it may end by itself
        assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", heard["id"])
        his = posts(stage, call_alone(7, has=FORM), **BEN)
        stage.server.answer((await stage.server.hear())["id"], **content("his"))
        assert text_of(await (await within(his)).frame()) == "his"


@on_loop
async def test_calls_that_wait_for_a_revoked_client_end_behind_a_router_too() -> None:
    server = MadeServer(tools=["echo"])
    server.silent.add("tools/call")
    router = routing({"made": server})
    async with sharing() as stage:
        made = before_router(ProxyConfig())
        stage.make = lambda transport: Proxy(made, transport, router.connect, principal="", shares_server=True)
        calling = posts(stage, call_alone(has=FORM), **ANN)
        await until(lambda: bool(server.of("tools/call")))
        server.say({"id": "q", "method": "elicitation/create", "params": ASKED})
        assert (await (await within(calling)).frame())["result"]["resultType"] == "input_required"
        stage.front.admit(Admission(tokens={"ben": TOKENS["ben"]}))
        await until(lambda: any(frame.get("id") == "q" for frame in server.heard))
        (told,) = (frame for frame in server.heard if frame.get("id") == "q")
        assert "may not come in" in told["error"]["message"]


async def begin_as(stage: Stage, secret: str) -> asyncio.Task[Reply]:
    plain = stage.headers
    stage.headers = lambda given: plain(given) | bearer(secret)  # type: ignore[method-assign]
    try:
        return await begin(stage)
    finally:
        stage.headers = plain  # type: ignore[method-assign]


@on_loop
async def test_where_all_requests_are_served_as_one_those_of_a_revoked_secret_end_alone() -> None:
    async with serving(FrontConfig(admission=BOTH_IN, shares_requests=True)) as stage:
        stage.make = lambda transport: Proxy(ProxyConfig(), transport, stage.connect, principal="", shares_server=True)
        hers = await begin_as(stage, ADA)
        first = await stage.server.hear()
        his = posts(stage, asks(7, "tools/call", name="echo"), **bearer(BOB))
        second = await stage.server.hear()
        stage.front.admit(ONLY_BOB)
        assert (await within(hers)).status == 503
        cancelled = await stage.server.hear()
        assert cancelled["params"]["requestId"] == first["id"]
        stage.server.answer(second["id"], **content("his"))
        assert text_of(await (await within(his)).frame()) == "his"
