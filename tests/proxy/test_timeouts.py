"""`--request-timeout`: a client whose server does not answer in time is told, and the server that nobody waits."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.exact_json import decode
from dragoman.pool import Scope
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.memory import connect_pair
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildPatience, ChildTransport
from tests.proxy.conversation import (
    READY,
    Peer,
    Step,
    an_error,
    client,
    client_closes,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    notification,
    opening,
    request,
    result,
    server,
    time_passes,
)
from tests.support.waiting import run, until
from tests.transports.house import Guest, House, hear, say, settle

SCRIPTED = [sys.executable, str(Path(__file__).parent / "servers" / "scripted.py")]
TIMED_OUT = an_error(1, -32000, "the server did not answer within 0.2 s", "'method': 'tools/call'", "0.2")


def a_cancellation(key: Any) -> Callable[[Any], bool]:
    """Match the notice that nobody waits for a request any more."""

    def matches(frame: Any) -> bool:
        params = frame.get("params", {})
        named = params.get("requestId") == key and "0.2 s" in params.get("reason", "")
        return frame.get("method") == "notifications/cancelled" and named

    return matches


def call(key: Any = 1, **meta: Any) -> dict[str, Any]:
    return request(key, "tools/call", name="t", **({"_meta": meta} if meta else {}))


def given_up(client_revision: str = "2025-11-25", server_revision: str = "2025-11-25") -> list[Step]:
    return [
        *opening(client_revision, server_revision),
        client(call()),
        expect_to_server(call()),
        expect_to_server(a_cancellation(1)),
        expect_to_client(TIMED_OUT),
    ]


@pytest.mark.parametrize("client_revision", ["2025-11-25", "2024-11-05"])
def test_a_request_that_is_not_answered_in_time_is_given_up(client_revision: str) -> None:
    proxy = hold(given_up(client_revision), request_timeout_s=0.2)
    assert proxy.counters.timed_out == 1


def test_a_late_answer_is_dropped_and_counted() -> None:
    late = [server(result(1, {"content": []})), client(request(2, "ping")), expect_to_server(request(2, "ping"))]
    answer = result(2, {})
    proxy = hold([*given_up(), *late, server(answer), expect_to_client(answer)], request_timeout_s=0.2)
    assert proxy.counters.unmatched == 1


def test_the_id_of_a_request_that_was_given_up_is_free() -> None:
    answer = result(1, {"content": []})
    again = [client(call()), expect_to_server(call()), server(answer), expect_to_client(answer)]
    hold([*given_up(), *again], request_timeout_s=0.2)


def test_a_request_that_is_answered_in_time_is_not_given_up() -> None:
    answer = result(1, {"content": []})
    steps = [client(call()), expect_to_server(call()), server(answer), expect_to_client(answer), time_passes(0.5)]
    proxy = hold([*opening("2025-11-25", "2025-11-25"), *steps], request_timeout_s=0.2)
    assert proxy.counters.timed_out == 0


def test_without_a_limit_a_request_waits() -> None:
    answer = result(1, {"content": []})
    steps = [client(call()), expect_to_server(call()), time_passes(0.5), server(answer), expect_to_client(answer)]
    hold([*opening("2025-11-25", "2025-11-25"), *steps])


@pytest.mark.parametrize("client_revision", ["2025-11-25", "2024-11-05"])
def test_progress_keeps_a_request_alive(client_revision: str) -> None:
    asked, answer = call(progressToken="p"), result(1, {"content": []})
    news = [notification("notifications/progress", progressToken="p", progress=n) for n in range(6)]
    steps = [step for one in news for step in (time_passes(0.1), server(one), expect_to_client(one))]
    conversation = [client(asked), expect_to_server(asked), *steps, server(answer), expect_to_client(answer)]
    hold([*opening(client_revision, "2025-11-25"), *conversation], request_timeout_s=0.3)


@pytest.mark.parametrize("limits", [{}, {"request_timeout_s": 0.15}])
def test_a_ceiling_holds_whatever_progress_there_is(limits: dict[str, float]) -> None:
    asked = call(progressToken="p")
    news = notification("notifications/progress", progressToken="p", progress=1)
    steps = [client(asked), expect_to_server(asked), time_passes(0.1), server(news), expect_to_client(news)]
    given_up = [expect_to_server(a_cancellation(1)), expect_to_client(TIMED_OUT)]
    proxy = hold([*opening("2025-11-25", "2025-11-25"), *steps, *given_up], request_ceiling_s=0.2, **limits)
    assert proxy.counters.timed_out == 1


def test_progress_of_another_request_does_not() -> None:
    other = notification("notifications/progress", progressToken="other", progress=1)
    steps = [step for _ in range(2) for step in (server(other), expect_to_client(other), time_passes(0.03))]
    asked = call(progressToken="p")
    conversation = [client(asked), expect_to_server(asked), *steps, expect_to_server(a_cancellation(1))]
    hold([*opening("2025-11-25", "2025-11-25"), *conversation, expect_to_client(TIMED_OUT)], request_timeout_s=0.2)


@pytest.mark.parametrize(
    "params", ['{"progressToken":]}', "5", '{"_meta":{"progressToken":]}}', '{"_meta":"progressToken"}']
)
def test_a_token_that_cannot_be_read_is_none(params: str) -> None:
    asked = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'.encode()
    news = f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}\n'.encode()
    steps = [client(asked), expect_to_server(asked), server(news), expect_to_client(news)]
    told = [expect_to_server(a_cancellation(1)), expect_to_client(TIMED_OUT)]
    hold([*opening("2025-11-25", "2025-11-25"), *steps, *told], request_timeout_s=0.2)


def test_while_the_server_waits_for_the_client_its_time_does_not_run() -> None:
    question, answer, end = request("q", "roots/list"), result("q", {"roots": []}), result(1, {"content": []})
    conversation = [
        *opening("2025-11-25", "2025-11-25", client_has=["roots"]),
        client(call()),
        expect_to_server(call()),
        server(question),
        expect_to_client(question),
        time_passes(0.5),
        client(answer),
        expect_to_server(answer),
        server(end),
        expect_to_client(end),
    ]
    hold(conversation, request_timeout_s=0.2)


def test_each_request_of_an_array_has_a_time_of_its_own() -> None:
    array = [call(1), request(2, "ping")]
    conversation = [
        *opening("2025-03-26", "2025-03-26"),
        client(json.dumps(array).encode() + b"\n"),
        expect_to_server(call(1)),
        expect_to_server(request(2, "ping")),
        server(result(2, {})),
        expect_to_server(a_cancellation(1)),
        expect_to_client(lambda frames: [f["id"] for f in frames] == [2, 1] and TIMED_OUT(frames[1])),
    ]
    hold(conversation, request_timeout_s=0.2)


def test_a_client_that_has_closed_its_end_does_not_wait_longer_than_that() -> None:
    conversation = [*opening("2025-11-25", "2025-11-25"), client(call()), expect_to_server(call()), client_closes()]
    end = [expect_to_server(a_cancellation(1)), expect_to_client(TIMED_OUT), expect_end(Outcome.CLIENT_CLOSED)]
    hold([*conversation, *end], request_timeout_s=0.2)


def test_nothing_ticks_once_nothing_waits() -> None:
    async def main() -> None:
        house = House(Scope.CLIENT)
        house.proxies = {"request_timeout_s": 0.05}
        guest = await house.open()
        guest.say(call())
        await hear(house.servers[0])  # initialized
        assert (await hear(house.servers[0]))["method"] == "tools/call"
        say(house.servers[0], result(1, {}))
        await hear(guest)
        host = guest.proxy._host  # type: ignore[union-attr]
        await until(lambda: not host._timers._timers)
        await house.close()

    run(main())


def in_house(scope: Scope, visit: Callable[[House], Awaitable[None]], **config: Any) -> None:
    async def main() -> None:
        house = House(scope, **config)
        house.proxies = {"request_timeout_s": 0.2}
        try:
            await asyncio.wait_for(visit(house), 60)
        finally:
            await house.close()

    run(main())


async def ask_in_vain(house: House, guest: Guest) -> Any:
    """Let a client call, the server keep silent, and give the id that the server knew the call by."""
    guest.say(call())
    heard = await hear(house.servers[0])
    while heard.get("method") != "tools/call":
        heard = await hear(house.servers[0])
    assert TIMED_OUT(await hear(guest))
    return heard["id"]


def test_on_a_shared_server_the_late_answer_reaches_nobody() -> None:
    async def visit(house: House) -> None:
        first, second = await house.open(), await house.open()
        lent = await ask_in_vain(house, first)
        assert a_cancellation(lent)(await hear(house.servers[0]))
        say(house.servers[0], result(lent, {"content": []}))
        await settle()
        assert first.lines.empty()
        assert second.lines.empty()

    in_house(Scope.SHARED, visit)


def test_on_a_shared_server_what_was_given_up_is_suspect() -> None:
    async def visit(house: House) -> None:
        first, second = await house.open(roots={}), await house.open(roots={})
        await ask_in_vain(house, first)
        second.say(call(7))
        while (await hear(house.servers[0])).get("method") != "tools/call":
            pass
        say(house.servers[0], notification("notifications/message", level="info", data="whose?"))
        await settle()
        assert first.lines.empty(), "it may be about the call of the other"
        assert second.lines.empty(), "it may be about the call that was given up"

    in_house(Scope.SHARED, visit)


INFO: dict[str, Any] = {"serverInfo": {"name": "s", "version": "1"}}


def test_a_child_that_hangs_is_given_up_and_the_session_goes_on() -> None:
    async def main() -> list[Any]:
        front, end = connect_pair("proxy", "client")
        process = spawn([*SCRIPTED, "--speak", "2025-11-25"])
        quick = ChildPatience(after_eof_s=0.2, after_term_s=0.3, after_exit_s=0.2)
        proxy = Proxy(ProxyConfig(request_timeout_s=2), front, lambda: ChildTransport(process, quick))
        peer = Peer("client", end)
        run = asyncio.create_task(proxy.run())
        said = [initialize("2025-06-18"), READY, request(1, "tools/call", name="hang"), request(2, "tools/list")]
        end.write("".join(json.dumps(frame) + "\n" for frame in said).encode())
        heard = [decode(await asyncio.wait_for(peer.lines.get(), 60)) for _ in range(3)]
        proxy.stop("the test is over")
        await asyncio.wait_for(run, 60)
        return heard

    opened, answer, error = run(main())
    assert (opened["id"], answer["id"]) == (0, 2)
    assert an_error(1, -32000, "the server did not answer within 2 s", "'method': 'tools/call'")(error)
