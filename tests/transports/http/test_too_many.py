"""A request that middleware refuses for now, over HTTP: status 429 and `Retry-After` beside the JSON-RPC error."""

from __future__ import annotations

from typing import Any

from dragoman.middleware import Answer, Message, Proceed
from dragoman.middlewares import RateLimit
from dragoman.transports.http.config import Admission, FrontConfig
from tests.transports.http.stage import call, on_loop, serving, within
from tests.transports.http.test_per_request import asks, playing, posts


def nothing_left() -> RateLimit:
    limit = RateLimit(per_minute=2, burst=1, now_s=lambda: 0.0)
    limit._buckets[""] = (0.0, 0.0)
    return limit


@on_loop
async def test_in_a_session() -> None:
    async with serving(middleware=(nothing_left(),)) as stage:
        await stage.open()
        reply = await stage.post(call(7))
        assert (reply.status, reply.headers["retry-after"]) == (429, "30")
        answer = await reply.frame()
        assert (answer["id"], answer["error"]["code"], answer["error"]["data"]["retryAfterSeconds"]) == (7, -32000, 30)


@on_loop
async def test_without_a_session() -> None:
    async with playing(middleware=(nothing_left(),)) as stage:
        reply = await within(posts(stage, asks("a", "tools/call", name="echo")))
        assert (reply.status, reply.headers["retry-after"]) == (429, "30")
        assert (await reply.frame())["id"] == "a"


@on_loop
async def test_a_client_that_takes_only_streams_is_told_on_one() -> None:
    async with serving(middleware=(nothing_left(),)) as stage:
        await stage.open()
        reply = await stage.post(call(7), accept="text/event-stream")
        event = await within(reply.event())
        assert reply.status == 200
        assert event is not None
        assert event.frame["error"]["code"] == -32000


@on_loop
async def test_each_principal_has_a_limit_of_its_own() -> None:
    seen: list[str] = []

    async def look(message: Message, proceed: Proceed) -> Answer:
        seen.append(message.principal)
        return Answer.succeed({"content": []})

    config = FrontConfig(admission=Admission(tokens={"ada": "secret-of-ada-1", "bob": "secret-of-bob-1"}))
    async with serving(config, middleware=(RateLimit(per_minute=1), look)) as stage:
        statuses: list[Any] = []
        for secret in ("secret-of-ada-1", "secret-of-bob-1"):
            stage.session = ""
            stage.servers.clear()
            await stage.open(authorization=f"Bearer {secret}")
            for key in (1, 2):
                reply = await stage.post(call(key), authorization=f"Bearer {secret}")
                statuses.append(reply.status)
                reply.leave()
    assert (seen, statuses) == (["ada", "bob"], [200, 429, 200, 429])
