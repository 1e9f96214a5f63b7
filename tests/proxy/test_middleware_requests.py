"""Middleware around requests of clients that open no session: it sees them at the client's edge, in 2026-07-28."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.exact_json import encode_line
from dragoman.middleware import Answer, Direction, Message, Proceed, ProceedNotice
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    client_closes,
    expect_end,
    expect_to_client,
    expect_to_server,
    notification,
    request,
    result,
    server,
    server_closes,
)
from tests.proxy.test_middleware import failing, handing_on, hanging, passing
from tests.proxy.test_per_request import IDENTITY, LEVEL, NEW, asks, opening
from tests.proxy.test_per_request_relay import opening as met
from tests.proxy.validity import hold
from tests.support.waiting import linger

SAID = {"content": [{"type": "text", "text": "hello"}]}
DONE = {**SAID, "resultType": "complete", "_meta": IDENTITY}
LOGGED = notification("notifications/message", level="error", data="x")


def call(key: Any = "a", **meta: Any) -> dict[str, Any]:
    return asks(key, "tools/call", name="t", meta=meta)


def begun(key: Any = "a", **meta: Any) -> list[Step]:
    """A call that is with the server."""
    return [
        client(call(key, **meta)),
        *opening(tools={}, logging={}),
        expect_to_server(request(1, "tools/call", name="t")),
    ]


def test_a_call_goes_through_middleware_in_the_revision_of_the_client() -> None:
    seen: list[Any] = []

    async def look(message: Message, proceed: Proceed) -> Answer:
        answer = await proceed(message)
        seen.append((message.method, message.direction, message.sender_revision, message.revision, answer.result))
        return answer

    hold([*begun(), server(result(1, SAID)), expect_to_client(result("a", DONE))], middleware=(look,))
    assert seen == [("tools/call", Direction.TO_SERVER, NEW, NEW, DONE)]


def test_a_question_about_the_server_does_not() -> None:
    introduced = expect_to_client(lambda frame: frame["result"]["supportedVersions"][0] == NEW)
    hold([client(asks("a", "server/discover")), *opening(tools={}), introduced], middleware=(failing,))


@pytest.mark.parametrize("keeps_metadata", [True, False])
def test_other_params_go_on_with_what_the_request_says_of_its_client(keeps_metadata: bool) -> None:
    async def change(message: Message, proceed: Proceed) -> Answer:
        kept = {"_meta": message.params["_meta"]} if keeps_metadata else {}
        return await proceed(message.with_params({"name": "other", **kept}))

    changed = expect_to_server(request(1, "tools/call", name="other"))
    steps = [client(call()), *opening(tools={}), changed, server(result(1, SAID)), expect_to_client(result("a", DONE))]
    hold(steps, middleware=(change,))


def test_notifications_of_the_server_are_handed_on_or_dropped() -> None:
    async def drop(notice: Message, proceed: ProceedNotice) -> None:
        assert (notice.method, notice.direction) == ("notifications/message", Direction.TO_CLIENT)

    heard = expect_to_client(lambda frame: frame["method"] == "notifications/message")
    end = [server(result(2, SAID)), expect_to_client(result("a", DONE))]
    for middleware, told in ((handing_on, [heard]), (drop, [])):
        steps = [
            client(call(**{LEVEL: "debug"})),
            *opening(tools={}, logging={}),
            expect_to_server(request(1, "logging/setLevel", level="debug")),
            server(result(1, {})),
            expect_to_server(request(2, "tools/call", name="t")),
            server(LOGGED),
            *told,
            *end,
        ]
        hold(steps, notice_middleware=(middleware,))


def test_a_cancellation_stops_middleware_and_reaches_the_server_if_it_has_the_request() -> None:
    cancelled = client(notification("notifications/cancelled", requestId="a"))
    told = expect_to_server(lambda frame: frame["method"] == "notifications/cancelled")
    hold([*begun(), cancelled, told], middleware=(passing,))
    listed = [
        client(asks("b", "tools/list")),
        expect_to_client(an_error("b", -32603, "a middleware of the proxy failed")),
    ]

    async def hang_at_calls(message: Message, proceed: Proceed) -> Answer:
        return await (hanging if message.method == "tools/call" else failing)(message, proceed)

    hold([client(call()), cancelled, *listed], middleware=(hang_at_calls,))


def test_what_middleware_answers_while_the_server_has_it_is_cancelled_there() -> None:
    async def hurry(message: Message, proceed: Proceed) -> Answer:
        waiting = asyncio.ensure_future(proceed(message))
        await asyncio.sleep(0)
        waiting.cancel()
        return Answer.succeed(SAID)

    told = expect_to_client(result("a", {**SAID, "resultType": "complete"}))
    gone = expect_to_server(lambda frame: frame["method"] == "notifications/cancelled")
    first = [client(asks("x", "tools/list")), *opening(tools={}), expect_to_server(request(1, "tools/list"))]

    async def hurry_calls(message: Message, proceed: Proceed) -> Answer:
        return await (hurry if message.method == "tools/call" else passing)(message, proceed)

    called = [client(call()), expect_to_server(request(2, "tools/call", name="t")), told, gone]
    hold([*first, *called], middleware=(hurry_calls,))


def test_a_lost_server_answers_what_middleware_has() -> None:
    lost = [server_closes(), expect_to_client(an_error("a", -32000)), expect_end(Outcome.SERVER_CLOSED)]
    hold([*begun(), *lost], middleware=(passing,))


def test_a_client_that_closes_its_end_gets_what_it_has_asked() -> None:
    end = [client_closes(), server(result(1, SAID)), expect_to_client(result("a", DONE))]
    hold([*begun(), *end, expect_end(Outcome.CLIENT_CLOSED)], middleware=(passing,))


def test_a_question_about_the_server_can_be_cancelled() -> None:
    cancelled = client(notification("notifications/cancelled", requestId="a"))
    offered = opening(tools={})[:1]
    hold([client(asks("a", "server/discover")), *offered, cancelled], middleware=(failing,))


def test_the_second_answer_to_a_request_goes_nowhere() -> None:
    async def think(message: Message, proceed: Proceed) -> Answer:
        answer = await proceed(message)
        await linger(0.05)
        return answer

    answer = result("a", {**SAID, "resultType": "complete"})
    steps = [client(call()), *met(), expect_to_server(call()), server(answer), server(answer), expect_to_client(answer)]
    hold([*steps, client(call("b")), expect_to_server(call("b"))], middleware=(think,))


def test_a_request_that_is_too_large_may_be_cancelled_before_it_is_refused() -> None:
    large = asks("a", "tools/call", name="t", arguments={"x": "y" * 17_000_000})
    both = encode_line(large) + encode_line(notification("notifications/cancelled", requestId="a"))
    refused = expect_to_client(an_error("b", -32603, "a middleware of the proxy failed"))
    hold([client(both), client(asks("b", "tools/list")), refused], middleware=(failing,))
