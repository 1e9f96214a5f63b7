"""Middleware: what it sees, what it may do, in which order, and that none of it ends a session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.middleware import Answer, Direction, Message, Proceed, ProceedNotice
from dragoman.pool import Scope
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    client_closes,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    result,
    server,
    server_closes,
    time_passes,
)
from tests.support.waiting import linger
from tests.transports.house import Guest, House, hear, say

NEW = "2025-11-25"
AUDIO = {"content": [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]}


async def passing(call: Message, proceed: Proceed) -> Answer:
    return await proceed(call)


async def handing_on(notice: Message, proceed: ProceedNotice) -> None:
    await proceed(notice)


async def failing(call: Message, proceed: Proceed) -> Answer:
    raise LookupError("nothing of this is told")


async def hanging(call: Message, proceed: Proceed) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


async def stubborn(call: Message, proceed: Proceed) -> Answer:
    """Go on after it was cancelled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)
    return Answer.succeed({"late": True})


def call(key: Any = 1, **params: Any) -> dict[str, Any]:
    return request(key, "tools/call", name="t", **params)


def answered(key: Any = 1, **members: Any) -> list[Step]:
    """A call that goes all the way."""
    answer = result(key, {"content": [], **members})
    return [client(call(key)), expect_to_server(call(key)), server(answer), expect_to_client(answer)]


def test_a_call_that_is_let_through_passes_as_the_bytes_that_came() -> None:
    asked = b'{"id": 1,  "method":"tools/call","params":{"name":"t"},"jsonrpc":"2.0"}\n'
    answer = b'{"id":1, "result":{"content":[]},  "jsonrpc":"2.0"}\n'
    steps = [client(asked), expect_to_server(asked), server(answer), expect_to_client(answer)]
    hold([*opening(NEW, NEW), *steps], middleware=(passing,), notice_middleware=(handing_on,))


def test_middleware_sees_what_the_peer_that_answers_sees() -> None:
    seen: list[Any] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        seen.append((call.method, call.params, call.direction, call.sender_revision, call.revision, call.is_request))
        seen.append(answer.result)
        return answer

    steps = [
        client(call()),
        expect_to_server(call()),
        server(result(1, AUDIO)),
        expect_to_client(lambda frame: frame["result"]["content"][0]["type"] == "text"),
    ]
    hold([*opening("2024-11-05", NEW), *steps], middleware=(look,))
    assert seen == [("tools/call", {"name": "t"}, Direction.TO_SERVER, "2024-11-05", NEW, True), AUDIO]


def test_requests_of_the_server_go_through_middleware_too() -> None:
    seen: list[Any] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        seen.append((call.direction, call.method, answer.result))
        return answer

    question, answer = request("q", "roots/list"), result("q", {"roots": []})
    steps = [server(question), expect_to_client(question), client(answer), expect_to_server(answer)]
    hold([*opening(NEW, "2025-06-18", client_has=["roots"]), *steps], middleware=(look,))
    assert seen == [(Direction.TO_CLIENT, "roots/list", {"roots": []})]


def test_the_first_middleware_is_the_outermost() -> None:
    def adding(name: str) -> Any:
        async def add(call: Message, proceed: Proceed) -> Answer:
            said = call.params.get("said", [])
            answer = await proceed(call.with_params({**call.params, "said": [*said, name]}))
            return Answer.succeed({**(answer.result or {}), "by": [*(answer.result or {}).get("by", []), name]})

        return add

    steps = [
        client(call()),
        expect_to_server(call(said=["a", "b"])),
        server(result(1, {"content": []})),
        expect_to_client(result(1, {"content": [], "by": ["b", "a"]})),
    ]
    hold([*opening(NEW, NEW), *steps], middleware=(adding("a"), adding("b")))


@pytest.mark.parametrize("client_revision", [NEW, "2024-11-05"])
def test_middleware_answers_in_place_of_the_peer(client_revision: str) -> None:
    async def refuse(call: Message, proceed: Proceed) -> Answer:
        return Answer.fail(-32001, "not today", {"n": 1})

    steps = [client(call()), expect_to_client(an_error(1, -32001, "not today", "'n': 1"))]
    hold([*opening(client_revision, NEW), *steps], middleware=(refuse,))


def test_an_answer_of_middleware_is_translated() -> None:
    async def invent(call: Message, proceed: Proceed) -> Answer:
        return Answer.succeed(AUDIO)

    told = expect_to_client(lambda frame: frame["result"]["content"][0]["type"] == "text")
    hold([*opening("2024-11-05", NEW), client(call()), told], middleware=(invent,))


def test_an_error_of_the_peer_is_an_answer() -> None:
    seen: list[Any] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        seen.append((answer.result, answer.error))
        return answer

    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}
    steps = [client(call()), expect_to_server(call()), server(error), expect_to_client(error)]
    hold([*opening(NEW, NEW), *steps], middleware=(look,))
    assert seen == [(None, {"code": -32602, "message": "no"})]


def test_middleware_that_raises_answers_with_an_error_and_the_session_goes_on(caplog: Any) -> None:
    async def fail_once(call: Message, proceed: Proceed) -> Answer:
        return await (failing if call.method == "tools/list" else passing)(call, proceed)

    steps = [client(request(0, "tools/list")), expect_to_client(an_error(0, -32603, "failed: LookupError"))]
    hold([*opening(NEW, NEW), *steps, *answered()], middleware=(fail_once,))
    assert "a middleware failed at tools/list request: LookupError: nothing of this is told" in caplog.text


def test_middleware_that_gives_no_answer_is_one_that_failed() -> None:
    async def forget(call: Message, proceed: Proceed) -> Any:
        await proceed(call)

    steps = [client(call()), expect_to_server(call()), server(result(1, {}))]
    told = expect_to_client(an_error(1, -32603, "a middleware of the proxy failed"))
    hold([*opening(NEW, NEW), *steps, told], middleware=(forget,))


def test_proceed_may_be_called_once() -> None:
    async def twice(call: Message, proceed: Proceed) -> Answer:
        await proceed(call)
        return await proceed(call)

    steps = [client(call()), expect_to_server(call()), server(result(1, {}))]
    told = expect_to_client(an_error(1, -32603, "failed: RuntimeError"))
    hold([*opening(NEW, NEW), *steps, told], middleware=(twice,))


@pytest.mark.parametrize("middleware", [hanging, stubborn])
def test_middleware_that_never_returns_is_given_up(middleware: Any) -> None:
    told = expect_to_client(an_error(1, -32000, "a middleware of the proxy took longer than 0.2 s"))
    steps = [client(call()), told, client(request(2, "ping"))]
    told = expect_to_client(an_error(2, -32000, "longer than 0.2 s"))
    hold([*opening(NEW, NEW), *steps, told], middleware=(middleware,), middleware_timeout_s=0.2)


def test_the_time_of_the_peer_is_not_that_of_middleware() -> None:
    answer = result(1, {})
    steps = [client(call()), expect_to_server(call()), time_passes(0.5), server(answer), expect_to_client(answer)]
    hold([*opening(NEW, NEW), *steps], middleware=(passing,), middleware_timeout_s=0.2)


def test_middleware_that_keeps_an_answer_is_given_up() -> None:
    async def keep(call: Message, proceed: Proceed) -> Answer:
        await proceed(call)
        return await hanging(call, proceed)

    steps = [client(call()), expect_to_server(call()), server(result(1, {}))]
    told = expect_to_client(an_error(1, -32000, "longer than 0.2 s"))
    hold([*opening(NEW, NEW), *steps, told], middleware=(keep,), middleware_timeout_s=0.2)


def cancellation(key: Any) -> dict[str, Any]:
    return notification("notifications/cancelled", requestId=key)


def test_a_cancellation_stops_middleware_and_the_server_that_knows_nothing_is_not_told() -> None:
    stopped: list[str] = []

    async def wait(call: Message, proceed: Proceed) -> Answer:
        if call.params.get("name") != "t":
            return await proceed(call)
        try:
            return await hanging(call, proceed)
        except asyncio.CancelledError:
            stopped.append(call.method)
            raise

    other, answer = request(2, "tools/list"), result(2, {"tools": []})
    steps = [client(call()), client(cancellation(1)), client(other), expect_to_server(other)]
    hold([*opening(NEW, NEW), *steps, server(answer), expect_to_client(answer)], middleware=(wait,))
    assert stopped in (["tools/call"], [])  # it may not have begun


def test_a_cancellation_of_what_the_server_has_reaches_it_and_a_late_answer_does_not_come_back() -> None:
    steps = [
        client(call()),
        expect_to_server(call()),
        client(cancellation(1)),
        expect_to_server(cancellation(1)),
        server(result(1, {"content": []})),
        *answered(2),
    ]
    proxy = hold([*opening(NEW, NEW), *steps], middleware=(passing,))
    assert proxy.counters.unmatched == 1


def test_what_middleware_answers_while_the_server_has_it_is_cancelled_there() -> None:
    async def impatient(call: Message, proceed: Proceed) -> Answer:
        try:
            return await asyncio.wait_for(proceed(call), 0.1)
        except TimeoutError:
            return Answer.fail(-32001, "too slow")

    def told(frame: Any) -> bool:
        return frame["method"] == "notifications/cancelled" and frame["params"]["requestId"] == 1

    steps = [client(call()), expect_to_server(call()), expect_to_server(told)]
    steps += [expect_to_client(an_error(1, -32001, "too slow")), server(result(1, {}))]
    proxy = hold([*opening(NEW, NEW), *steps, time_passes(0.05)], middleware=(impatient,))
    assert proxy.counters.unmatched == 1


def test_middleware_sees_that_the_server_did_not_answer_in_time() -> None:
    seen: list[Any] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        seen.append(answer.error)
        return answer

    steps = [client(call()), expect_to_server(call()), expect_to_server(lambda f: f["params"]["requestId"] == 1)]
    told = expect_to_client(an_error(1, -32000, "did not answer"))
    hold([*opening(NEW, NEW), *steps, told], middleware=(look,), request_timeout_s=0.2)
    assert seen[0]["code"] == -32000


def test_an_answer_that_is_garbled_reaches_middleware_as_an_error() -> None:
    seen: list[Any] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        seen.append(answer.error)
        return answer

    garbled = b'{"jsonrpc":"2.0","id":1,"result":{"content":[\n'
    steps = [client(call()), expect_to_server(call()), server(garbled), expect_to_client(an_error(1, -32603))]
    hold([*opening(NEW, NEW), *steps], middleware=(look,))
    assert seen[0]["code"] == -32603


def test_a_lost_server_answers_what_middleware_has() -> None:
    steps = [client(call()), time_passes(0.05), server_closes(), expect_to_client(an_error(1, -32000))]
    hold([*opening(NEW, NEW), *steps, expect_end(Outcome.SERVER_CLOSED)], middleware=(hanging,))


def test_a_client_that_closes_its_end_gets_what_middleware_has_not_given_yet() -> None:
    async def slow(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        await linger(0.2)
        return answer

    answer = result(1, {})
    steps = [client(call()), expect_to_server(call()), client_closes(), server(answer), expect_to_client(answer)]
    hold([*opening(NEW, NEW), *steps, expect_end(Outcome.CLIENT_CLOSED)], middleware=(slow,))


def test_an_id_is_taken_as_long_as_middleware_has_the_request() -> None:
    steps = [client(call()), client(call()), expect_to_client(an_error(None, -32600, "not answered yet"))]
    told = expect_to_client(an_error(1, -32000, "longer"))
    hold([*opening(NEW, NEW), *steps, told], middleware=(hanging,), middleware_timeout_s=0.2)


def test_an_array_is_split_for_middleware_and_joined_again() -> None:
    seen: list[str] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        seen.append(call.method)
        return await proceed(call)

    array = json.dumps([call(1), request(2, "ping")]).encode() + b"\n"
    steps = [
        client(array),
        expect_to_server(call(1)),
        expect_to_server(request(2, "ping")),
        server(result(2, {})),
        server(result(1, {})),
        expect_to_client([result(2, {}), result(1, {})]),
    ]
    hold([*opening("2025-03-26", "2025-03-26"), *steps], middleware=(look,))
    assert sorted(seen) == ["ping", "tools/call"]


def test_only_the_first_answer_of_the_server_counts() -> None:
    async def slow(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        await linger(0.1)
        return answer

    answer = result(1, {"first": True})
    steps = [client(call()), expect_to_server(call()), server(answer), server(result(1, {})), expect_to_client(answer)]
    proxy = hold([*opening(NEW, NEW), *steps], middleware=(slow,))
    assert proxy.counters.unmatched == 1


def test_what_the_server_answers_without_having_been_asked_counts_for_nothing() -> None:
    steps = [client(call()), time_passes(0.05), server(result(1, {})), expect_to_client(an_error(1, -32000, "longer"))]
    proxy = hold([*opening(NEW, NEW), *steps], middleware=(hanging,), middleware_timeout_s=0.3)
    assert proxy.counters.unmatched == 1


# Notifications


def log(text: str) -> dict[str, Any]:
    return notification("notifications/message", level="info", data=text)


def test_a_notification_may_be_changed_or_dropped() -> None:
    async def censor(notice: Message, proceed: ProceedNotice) -> None:
        if notice.params["data"] != "secret":
            await proceed(notice.with_params({**notice.params, "data": "seen"}))

    steps = [server(log("secret")), server(log("plain")), expect_to_client(log("seen"))]
    hold([*opening(NEW, NEW), *steps], notice_middleware=(censor,))


def test_nothing_overtakes_a_notification() -> None:
    async def slow(notice: Message, proceed: ProceedNotice) -> None:
        await linger(0.05 if notice.params["data"] == "first" else 0)
        await proceed(notice)

    answer, question = result(1, {"content": []}), request("q", "ping")
    steps = [client(call()), expect_to_server(call())]
    steps += [server(one) for one in (log("first"), log("second"), answer, question)]
    steps += [expect_to_client(one) for one in (log("first"), log("second"))]
    pair: list[Any] = []
    either = expect_to_client(lambda frame: pair.append(frame) or True)
    hold([*opening(NEW, NEW), *steps, either, either], notice_middleware=(slow,), middleware=(passing,))
    assert sorted(pair, key=str) == sorted([answer, question], key=str)


def test_a_request_does_not_hold_up_what_comes_after_it() -> None:
    async def wait(call: Message, proceed: Proceed) -> Answer:
        return await (hanging if call.method == "tools/call" else passing)(call, proceed)

    other, answer = request(2, "tools/list"), result(2, {"tools": []})
    steps = [client(call()), client(other), expect_to_server(other), server(answer), expect_to_client(answer)]
    hold([*opening(NEW, NEW), *steps], middleware=(wait,), notice_middleware=(handing_on,))


def test_a_notification_whose_middleware_fails_is_dropped(caplog: Any) -> None:
    async def fail(notice: Message, proceed: ProceedNotice) -> None:
        if notice.params["data"] == "bad":
            raise LookupError("no")
        await proceed(notice)

    steps = [server(log("bad")), server(log("good")), expect_to_client(log("good"))]
    hold([*opening(NEW, NEW), *steps], notice_middleware=(fail,))
    assert "a middleware failed at notifications/message notification: LookupError: no" in caplog.text


def test_a_notification_whose_middleware_hangs_is_dropped(caplog: Any) -> None:
    async def hang(notice: Message, proceed: ProceedNotice) -> None:
        if notice.params["data"] == "bad":
            await asyncio.Event().wait()
        await proceed(notice)

    steps = [server(log("bad")), server(log("good")), expect_to_client(log("good"))]
    hold([*opening(NEW, NEW), *steps], notice_middleware=(hang,), middleware_timeout_s=0.2)
    assert "has not let notifications/message go on within 0.2 s" in caplog.text


def test_what_waits_behind_a_notification_has_a_bound(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dragoman.host.chains.QUEUE_FRAMES", 2)

    async def hang(notice: Message, proceed: ProceedNotice) -> None:
        await asyncio.Event().wait()

    told = notification("notifications/roots/list_changed")
    steps = [client(told), client(told), client(told), client(told), client(call())]
    refused = expect_to_client(an_error(1, -32000, "too much waits for a middleware"))
    hold([*opening(NEW, NEW), *steps, refused], notice_middleware=(hang,))
    assert caplog.text.count("roots/list_changed notification dropped: too much waits") == 1


def test_what_is_refused_for_the_bound_and_cancelled_at_once_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.host.chains.QUEUE_FRAMES", 0)
    said = b"".join(json.dumps(frame).encode() + b"\n" for frame in (call(), cancellation(1)))
    hold([*opening(NEW, NEW), client(said), time_passes(0.05)], middleware=(passing,))


def test_a_question_of_the_server_that_middleware_answers_itself_is_withdrawn_from_the_client() -> None:
    async def impatient(call: Message, proceed: Proceed) -> Answer:
        try:
            return await asyncio.wait_for(proceed(call), 0.1)
        except TimeoutError:
            return Answer.succeed({"roots": []})

    question = request("q", "roots/list")
    withdrawn = expect_to_client(lambda frame: frame["params"]["requestId"] == "q")
    steps = [server(question), expect_to_client(question), withdrawn, expect_to_server(result("q", {"roots": []}))]
    hold([*opening(NEW, NEW, client_has=["roots"]), *steps], middleware=(impatient,))


# Scopes


def in_house(scope: Scope, visit: Callable[[House], Awaitable[None]], **config: Any) -> None:
    async def main() -> None:
        house = House(scope)
        house.proxies = config
        try:
            await asyncio.wait_for(visit(house), 60)
        finally:
            await house.close()

    asyncio.run(main())


async def serve_call(house: House, guest: Guest, number: int) -> Any:
    guest.say(call())
    while len(house.servers) <= number:
        await asyncio.sleep(0)
    while (heard := await hear(house.servers[number])).get("method") != "tools/call":
        if heard["method"] == "initialize":
            info = {"serverInfo": {"name": "s", "version": "1"}}
            opened = {"protocolVersion": NEW, "capabilities": {}, **info}
            say(house.servers[number], result(heard["id"], opened))
    say(house.servers[number], result(heard["id"], {"content": []}))
    return await hear(guest)


@pytest.mark.parametrize("scope", [Scope.SHARED, Scope.CLIENT])
def test_middleware_is_around_calls_in_every_scope(scope: Scope) -> None:
    seen: list[str] = []

    async def look(call: Message, proceed: Proceed) -> Answer:
        answer = await proceed(call)
        seen.append(call.method)
        return Answer.succeed({**(answer.result or {}), "seen": True})

    async def visit(house: House) -> None:
        guest = await house.open()
        answer = await serve_call(house, guest, 0)
        assert answer == result(1, {"content": [], "seen": True})

    in_house(scope, visit, middleware=(look,))
    assert seen == ["tools/call"]


def test_on_a_shared_server_what_one_client_waits_for_holds_up_nobody_else() -> None:
    async def first_waits(call: Message, proceed: Proceed) -> Answer:
        return await (hanging if call.params.get("name") == "slow" else passing)(call, proceed)

    async def visit(house: House) -> None:
        first, second = await house.open(), await house.open()
        first.say(request(1, "tools/call", name="slow"))
        assert await serve_call(house, second, 0) == result(1, {"content": []})

    in_house(Scope.SHARED, visit, middleware=(first_waits,), notice_middleware=(handing_on,))
