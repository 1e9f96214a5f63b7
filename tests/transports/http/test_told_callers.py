"""A front whose clients are proxies that say whose each request is."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from typing import Any

import pytest

from dragoman.core.label import PRINCIPAL, name_told, teller_of
from dragoman.guard.claims import name_principal
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.callers import HEADER, Callers
from dragoman.transports.http.config import Admission, FrontConfig
from tests.proxy.test_per_request import asks
from tests.proxy.test_per_request_asked import FORM
from tests.transports.http.stage import call, content, on_loop, serving, text_of, until, within
from tests.transports.http.test_per_request import ASKED, begin_sharing, posts
from tests.transports.http.test_per_request import call as call_alone
from tests.transports.http.test_revoking import head
from tests.transports.http.test_websocket import dial
from tests.transports.http.test_websocket import shake_hands as shake_hands_by_websocket
from tests.transports.http.wire import connect, read_reply

KEY = b"k" * 32
FRONT, OTHER = "secret-of-front-01", "secret-of-other-01"
TOKENS = {"front": FRONT, "other": OTHER}


def told(name: str, secret: str = FRONT, key: bytes = KEY) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}", **Callers((key,)).tell(name)}


def trusting(callers: Callers | None = None, **more: Any) -> FrontConfig:
    return FrontConfig(admission=Admission(tokens=TOKENS, callers=callers or Callers((KEY,))), **more)


@on_loop
async def test_two_people_of_a_proxy_are_two_and_one_is_one_whatever_is_sealed_anew() -> None:
    async with serving(trusting()) as stage:
        await stage.open(**told("ada"))
        assert (await stage.post(call(2), **told("bob"))).status == 404
        calling = asyncio.create_task(stage.post(call(3), **told("ada")))
        assert (await stage.server.hear())["id"] == 3
        stage.server.answer(3, **content("hers"))
        assert text_of(await (await within(calling)).frame()) == "hers"


@on_loop
async def test_what_is_told_counts_only_with_the_secret_of_whoever_tells() -> None:
    async with serving(trusting()) as stage:
        await stage.open(**told("ada"))
        for stranger in (told("ada", OTHER), {"authorization": f"Bearer {FRONT}"}):
            assert (await stage.post(call(2), **stranger)).status == 404


@pytest.mark.parametrize("header", ["ada", "AQ" + "A" * 90, "two, parts"])
@on_loop
async def test_a_header_that_nobody_sealed_is_refused_and_the_log_says_why(
    header: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(trusting()) as stage:
        with caplog.at_level(logging.WARNING):
            reply = await stage.post(call(2), **{"authorization": f"Bearer {FRONT}", HEADER: header})
        assert reply.status == 403
        assert "the Dragoman-Caller header does not count here" in (await reply.body()).decode()
        assert "not sealed with a key of --trust-callers" in caplog.text


@on_loop
async def test_where_nobody_is_trusted_the_header_means_nothing() -> None:
    async with serving(FrontConfig(admission=Admission(tokens=TOKENS))) as stage:
        await stage.open(**told("ada"))
        calling = asyncio.create_task(stage.post(call(3), **{**told("bob"), HEADER: "nonsense"}))
        assert (await stage.server.hear())["id"] == 3
        stage.server.answer(3, **content("of the same client"))
        assert (await within(calling)).status == 200


@on_loop
async def test_a_secret_that_is_taken_back_ends_the_sessions_of_all_of_whom_it_told() -> None:
    async with serving(trusting()) as stage:
        await stage.open(**told("ada"))
        assert stage.front.admit(Admission(tokens={"other": OTHER}, callers=Callers((KEY,)))) == 1
        await until(lambda: not stage.front.sessions)


@on_loop
async def test_a_secret_that_is_taken_back_ends_their_calls_that_wait() -> None:
    async with serving(trusting(shares_requests=True)) as stage:
        made = ProxyConfig()
        stage.make = lambda transport: Proxy(made, transport, stage.connect, principal="", shares_server=True)
        calling, _ = await begin_sharing(stage, call_alone(has=FORM), **told("ada"))
        stage.server.say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": ASKED})
        asked = (await (await within(calling)).frame())["result"]
        assert asked["resultType"] == "input_required"
        again = {"inputResponses": {"question-1": {"action": "decline"}}, "requestState": asked["requestState"]}
        refused = await (await within(posts(stage, call_alone(8, has=FORM, **again), **told("bob")))).frame()
        assert refused["error"]["data"]["reason"] == "other-caller"
        stage.front.admit(Admission(tokens={"other": OTHER}, callers=Callers((KEY,))))
        heard = await stage.server.hear()
        assert (heard["id"], "may not come in" in heard["error"]["message"]) == ("q", True)


@on_loop
async def test_a_head_that_is_known_is_looked_at_again_once_its_seal_is_too_old() -> None:
    """Requests with the bytes of a head before are served without a look at it: not for longer than it is good."""
    late = 0.0
    loop_clock = Callers((KEY,), lambda: 1_000_000.0 + late)
    async with serving(trusting(loop_clock)) as stage:
        stage.make = lambda transport: Proxy(ProxyConfig(), transport, stage.connect, principal=transport.principal)
        reader, writer = await connect(stage.port)
        seal = Callers((KEY,), lambda: 1_000_000.0).tell("ada")[HEADER]

        async def ask(key: int) -> int:
            body = json.dumps(asks(key, "ping")).encode()
            plain = head(FRONT, len(body)).replace(b"tools/call", b"ping").replace(b"mcp-name: echo\r\n", b"")
            writer.write(plain.replace(b"host:", f"{HEADER}: {seal}\r\nhost:".encode()) + body)
            reply = await within(read_reply(reader, writer))
            await reply.reader.readexactly(int(reply.headers["content-length"]))
            return reply.status

        assert await ask(1) == await ask(2) != 403
        late = 151.0
        assert await ask(3) == 403


@on_loop
async def test_a_websocket_is_told_whose_it_is_when_it_opens() -> None:
    seen: list[str] = []
    async with serving(trusting()) as stage:
        plain = stage.make
        stage.make = lambda transport: (seen.append(PRINCIPAL.get()), plain(transport))[1]
        async with dial(stage, additional_headers=told("ada")) as socket:
            await shake_hands_by_websocket(stage, socket)
    (principal,) = seen
    assert principal.startswith("front for ")


@pytest.mark.parametrize("teller", ["", "ada", "for", name_principal("client", "https://for.example", "a for b")])
def test_who_tells_is_known_by_the_name_of_whom_it_tells(teller: str) -> None:
    assert teller_of(name_told(teller, "2a8f0c51d7e34b96")) == (teller or "a proxy")
    assert teller_of(teller) == teller


def test_a_time_is_known_until_which_it_counts() -> None:
    callers = Callers((KEY,), lambda: 100.0)
    assert math.isclose(callers.read(callers.tell("ada")[HEADER]).until_s, 250.0)
