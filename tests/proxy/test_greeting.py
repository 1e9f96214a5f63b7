"""A server that is slow to start is answered for, from what it said the last time, and compared once it has come."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.edges.greeter import MOST_BYTES
from dragoman.core.exact_json import encode
from dragoman.core.label import PRINCIPAL
from dragoman.host import greeting
from dragoman.host.greeting import SLOW_S, GreetedTransport
from dragoman.host.known import SAID_S, KnownAnswers, KnownServer, Said, know
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.cli.test_status import ask
from tests.proxy.conversation import (
    READY,
    Step,
    an_error,
    client,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    initialized,
    notification,
    request,
    result,
    server,
    server_closes,
    server_restarts,
    the_clock_is_put_forward,
    time_passes,
)
from tests.proxy.per_request import discovered
from tests.proxy.test_per_request import asks
from tests.proxy.test_processes import Running, running
from tests.support.waiting import stall, wait_until

D = HANDSHAKE_REVISIONS[-1]
OLDER = HANDSHAKE_REVISIONS[-2]
CHANGED = notification("notifications/tools/list_changed")
CALL = request(2, "tools/call", name="a", arguments={})
CALLED = result(2, {"content": []})
LIST = request(1, "tools/list")
COMPARE = "dragoman-compare-1"


def tools(*names: str, **rest: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names], **rest}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownServer:
    """What is remembered of a server; all are slow here."""
    monkeypatch.setattr(greeting, "SLOW_S", -1.0)
    return KnownServer(str(tmp_path / "eras" / "one"), answers=KnownAnswers(str(tmp_path / "answers"), "one"))


def holds(known: KnownServer, *steps: Step, **config: Any) -> None:
    hold(steps, known=known, greets=True, **config)


def method(name: str) -> Any:
    return lambda frame: frame["method"] == name


def learn(known: KnownServer, *names: str, revision: str = D, **capabilities: Any) -> None:
    """Have a session in which the server lists these tools."""
    holds(
        known,
        client(initialize(D)),
        expect_to_server(method("initialize")),
        server(initialized(revision, **(capabilities or {"tools": {}}))),
        expect_to_client(lambda frame: frame["result"]["protocolVersion"] == D),
        client(READY),
        expect_to_server(READY),
        client(LIST),
        expect_to_server(LIST),
        server(result(1, tools(*names))),
        expect_to_client(result(1, tools(*names))),
    )


def greeted(*names: str) -> list[Step]:
    """A session that is opened, and lists these tools, before the server has said a word."""
    return [
        client(initialize(D)),
        expect_to_client(
            lambda frame: (
                frame["result"]["protocolVersion"] == D
                and frame["result"]["capabilities"]["tools"] == {"listChanged": True}
            )
        ),
        client(READY),
        client(LIST),
        expect_to_client(result(1, tools(*names))),
    ]


OFFERED = expect_to_server(method("initialize"))


def arrives(revision: str = D, **capabilities: Any) -> list[Step]:
    return [
        expect_to_server(method("initialize")),
        server(initialized(revision, **(capabilities or {"tools": {}}))),
        expect_to_server(READY),
    ]


def test_a_client_is_greeted_and_listed_before_the_server_has_come_and_its_calls_wait(known: KnownServer) -> None:
    learn(known, "a", "b")
    holds(
        known,
        *greeted("a", "b"),
        client(CALL),
        *arrives(),
        expect_to_server(request(COMPARE, "tools/list")),
        expect_to_server(CALL),
        server(result(COMPARE, tools("b", "a"))),
        server(CALLED),
        expect_to_client(CALLED),
        client(LIST | {"id": 3}),
        expect_to_server(LIST | {"id": 3}),
        server(result(3, tools("a", "b"))),
        expect_to_client(result(3, tools("a", "b"))),
    )


def test_who_has_nothing_more_to_say_for_a_server_stands_aside(
    known: KnownServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    received, send = GreetedTransport.received, GreetedTransport.send

    def note_received(self: GreetedTransport, frames: Any) -> None:
        seen.extend(("server", frame.key) for frame in frames)
        received(self, frames)

    def note_sent(self: GreetedTransport, frames: Any) -> None:
        seen.extend(("client", frame.key) for frame in frames)
        send(self, frames)

    monkeypatch.setattr(GreetedTransport, "received", note_received)
    monkeypatch.setattr(GreetedTransport, "send", note_sent)
    learn(known, "a")
    seen.clear()
    calls = [[client(CALL | {"id": key}), expect_to_server(CALL | {"id": key})] for key in (2, 3, 4)]
    answers = [[server(CALLED | {"id": key}), expect_to_client(CALLED | {"id": key})] for key in (2, 3, 4)]
    compared = [expect_to_server(request(COMPARE, "tools/list")), server(result(COMPARE, tools("a")))]
    opened = [*greeted("a"), *arrives(), *compared]
    holds(known, *opened, *(step for both in zip(calls, answers, strict=True) for steps in both for step in steps))
    assert [whose for whose in seen if whose[1] in (b"2", b"3", b"4")] == [
        *(("client", b"2"), ("server", b"2")),  # a call: from here on, what it has is for this session alone
        ("client", b"3"),  # the first that it need not have seen
    ]


def test_it_stays_for_lists_until_there_is_a_call(known: KnownServer) -> None:
    ping = request(9, "ping")
    holds(
        known,
        client(initialize(D)),
        OFFERED,
        server(initialized(D, tools={})),
        expect_to_client(lambda frame: "result" in frame),
        client(READY),
        expect_to_server(READY),
        *(client(ping), expect_to_server(ping), server(result(9, {})), expect_to_client(result(9, {}))),
        *(client(LIST), expect_to_server(LIST), server(result(1, tools("a"))), expect_to_client(result(1, tools("a")))),
    )
    holds(known, *greeted("a"), OFFERED)


def test_a_list_that_has_changed_is_announced_and_remembered(known: KnownServer) -> None:
    learn(known, "a")
    changed = [expect_to_server(request(COMPARE, "tools/list")), server(result(COMPARE, tools("a", "c")))]
    holds(known, *greeted("a"), *arrives(), *changed, expect_to_client(CHANGED))
    holds(known, *greeted("a", "c"), OFFERED)


def test_a_list_that_the_client_has_had_meanwhile_is_not_announced(known: KnownServer) -> None:
    learn(known, "a")
    again = LIST | {"id": 5}
    holds(
        known,
        *greeted("a"),
        *arrives(),
        expect_to_server(request(COMPARE, "tools/list")),
        client(again),
        expect_to_server(again),
        server(result(5, tools("c"))),
        expect_to_client(result(5, tools("c"))),
        server(result(COMPARE, tools("c"))),
        client(CALL),
        expect_to_server(CALL),
        server(CALLED),
        expect_to_client(CALLED),
    )


def test_a_list_of_several_pages_is_told_as_one(known: KnownServer) -> None:
    second = request(2, "tools/list", cursor="2")
    holds(
        known,
        client(initialize(D)),
        expect_to_server(method("initialize")),
        server(initialized(D, tools={})),
        expect_to_client(method_free),
        client(READY),
        expect_to_server(READY),
        client(LIST),
        expect_to_server(LIST),
        server(result(1, tools("a", nextCursor="2"))),
        expect_to_client(method_free),
        client(second),
        expect_to_server(second),
        server(result(2, tools("b"))),
        expect_to_client(method_free),
    )
    more = request("dragoman-compare-2", "tools/list", cursor="x")
    holds(
        known,
        *greeted("a", "b"),
        *arrives(),
        expect_to_server(request(COMPARE, "tools/list")),
        server(result(COMPARE, tools("a", nextCursor="x"))),
        expect_to_server(more),
        server(result("dragoman-compare-2", tools("b"))),
    )


def method_free(frame: Any) -> bool:
    return "result" in frame


def test_a_part_of_a_list_is_not_remembered(known: KnownServer) -> None:
    learn(known, "a")
    asked = [client(LIST), expect_to_server(LIST), server(result(1, tools("b", nextCursor="2")))]
    opened = [client(initialize(D, roots={})), expect_to_server(method("initialize")), server(initialized(D, tools={}))]
    ready = [expect_to_client(method_free), client(READY), expect_to_server(READY)]
    holds(known, *opened, *ready, *asked, expect_to_client(method_free))
    again = [client(initialize(D, roots={})), expect_to_client(method_free), client(READY), client(LIST)]
    holds(
        known, *again, *arrives(), expect_to_server(LIST), server(result(1, tools("b"))), expect_to_client(method_free)
    )


def test_a_ping_is_answered_while_the_server_starts(known: KnownServer) -> None:
    learn(known, "a")
    holds(known, *greeted("a"), client(request(7, "ping")), expect_to_client(result(7, {})), OFFERED)


@pytest.mark.parametrize("said", [initialize(D, sampling={}), initialize(OLDER)])
def test_who_asks_in_other_words_is_not_answered_from_memory(known: KnownServer, said: Any) -> None:
    learn(known, "a")
    revision = said["params"]["protocolVersion"]
    opened = [client(said), expect_to_server(method("initialize")), server(initialized(revision, tools={}))]
    holds(known, *opened, expect_to_client(lambda frame: frame["result"]["capabilities"] == {"tools": {}}))


def test_a_server_that_starts_soon_is_not_remembered(known: KnownServer, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(known, "a")
    monkeypatch.setattr(greeting, "SLOW_S", 60.0)
    holds(known, *greeted("a"), *arrives(), expect_to_server(method("tools/list")))
    opened = [client(initialize(D)), expect_to_server(method("initialize")), server(initialized(D, tools={}))]
    holds(known, *opened, expect_to_client(initialized(D, tools={})))


def test_a_server_that_does_not_come_ends_the_session_and_is_waited_for_the_next_time(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        client(CALL),
        expect_to_server(method("initialize")),
        server_closes(),
        expect_to_client(an_error(2, -32000)),
        expect_end(Outcome.SERVER_CLOSED),
    )
    holds(known, client(initialize(D)), expect_to_server(method("initialize")))


def test_a_server_that_stays_silent_ends_the_session(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        client(CALL),
        expect_to_server(method("initialize")),
        the_clock_is_put_forward(61),
        expect_to_client(an_error(2, -32000, "the server has not answered within 60 s")),
        expect_end(Outcome.SERVER_CLOSED, "the server has not answered within 60 s"),
    )


def test_a_server_that_refuses_ends_the_session_with_its_words(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        expect_to_server(method("initialize")),
        server(error(0, -32000, "no licence")),
        expect_end(Outcome.SERVER_CLOSED, "no licence"),
    )


def test_a_server_that_asks_before_it_has_come_gets_its_answer_at_once(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        expect_to_server(method("initialize")),
        server(request("p", "ping")),
        expect_to_client(request("p", "ping")),
        client(result("p", {})),
        expect_to_server(result("p", {})),
        server(initialized(D, tools={})),
        expect_to_server(READY),
        expect_to_server(method("tools/list")),
    )


def test_an_answer_to_something_else_is_not_taken_for_the_servers_first(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        expect_to_server(method("initialize")),
        server(result("stray", {})),
        server(error("stray", -32601)),
        server(initialized(D, tools={})),
        expect_to_server(READY),
        expect_to_server(request(COMPARE, "tools/list")),
        client(CALL),
        expect_to_server(CALL),
    )


def test_a_server_that_cannot_read_the_question_ends_the_session_with_its_words(known: KnownServer) -> None:
    learn(known, "a")
    refusal = error(None, -32700, "parse error")
    holds(known, *greeted("a"), OFFERED, server(refusal), expect_end(Outcome.SERVER_CLOSED, "parse error"))


def test_a_call_that_is_cancelled_while_it_waits_is_never_made(known: KnownServer) -> None:
    learn(known, "a")
    kept = CALL | {"id": 3}
    holds(
        known,
        *greeted("a"),
        client(CALL),
        client(kept),
        client(notification("notifications/cancelled", requestId=2)),
        expect_to_client(an_error(2, -32000, "cancelled before the server had come")),
        *arrives(),
        expect_to_server(request(COMPARE, "tools/list")),
        expect_to_server(kept),
    )


def test_a_server_that_is_started_again_is_waited_for(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        *arrives(),
        expect_to_server(method("tools/list")),
        server(result(COMPARE, tools("a"))),
        server_closes(),
        time_passes(1.2),
        server_restarts(),
        client(LIST | {"id": 4}),
        *arrives(),
        expect_to_server(LIST | {"id": 4}),
        restarts=1,
    )


def test_a_capability_that_is_gone_is_named_and_what_needs_it_is_refused(
    known: KnownServer, caplog: pytest.LogCaptureFixture
) -> None:
    learn(known, "a", tools={}, prompts={})
    get, ping = request(3, "prompts/get", name="p"), request(9, "ping")
    with caplog.at_level(logging.WARNING):
        holds(
            known,
            *greeted("a"),
            client(get),
            *arrives(tools={}),
            expect_to_server(request(COMPARE, "tools/list")),
            expect_to_client(an_error(3, -32601, "the server has no prompts any more")),
            server(result(COMPARE, tools("a"))),
            *(client(CALL), expect_to_server(CALL), server(CALLED), expect_to_client(CALLED)),
            *(client(ping), expect_to_server(ping), server(result(9, {})), expect_to_client(result(9, {}))),
            client(get),
            expect_to_client(an_error(3, -32601, "the server has no prompts any more")),
        )
    assert "the server has no prompts any more" in caplog.text


def test_a_list_that_is_gone_with_its_capability_is_announced(known: KnownServer) -> None:
    learn(known, "a", tools={}, prompts={})
    holds(
        known,
        *greeted("a"),
        *arrives(prompts={}),
        expect_to_client(CHANGED),
        client(CALL),
        expect_to_client(an_error(2, -32601, "the server has no tools any more")),
    )


def test_a_server_that_has_learned_a_newer_revision_is_asked_for_the_one_that_is_spoken(known: KnownServer) -> None:
    learn(known, "a", revision=OLDER)
    holds(
        known,
        *greeted("a"),
        expect_to_server(lambda frame: frame["params"]["protocolVersion"] == OLDER),
        server(initialized(OLDER, tools={})),
        expect_to_server(READY),
        expect_to_server(method("tools/list")),
    )


def test_who_is_waited_for_is_named(known: KnownServer, caplog: pytest.LogCaptureFixture) -> None:
    learn(known, "a")
    holds(known, *greeted("a"), OFFERED, the_clock_is_put_forward(5.1))
    assert "the server has not answered for 5 s; still waiting" in caplog.text


def test_a_list_that_is_too_deep_is_passed_on_and_not_kept(known: KnownServer) -> None:
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    listed = result(1, {"tools": [], "_meta": {"x": deep}})
    opened = [client(initialize(D)), OFFERED, server(initialized(D, tools={})), expect_to_client(method_free)]
    asked = [client(LIST), expect_to_server(LIST), server(listed), expect_to_client(listed)]
    holds(known, *opened, client(READY), expect_to_server(READY), *asked)
    again = [client(initialize(D)), expect_to_client(method_free), client(READY), client(LIST)]
    holds(known, *again, *arrives(), expect_to_server(LIST))


def test_a_server_that_speaks_another_revision_ends_the_session_and_the_next_one_is_right(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        *greeted("a"),
        expect_to_server(method("initialize")),
        server(initialized(OLDER, tools={})),
        expect_end(Outcome.SERVER_CLOSED, f"the server does not speak {D} any more"),
    )
    learn(known, "a", revision=OLDER)


def test_what_is_asked_of_an_impatient_client_is_not_held_up_by_a_start(known: KnownServer) -> None:
    learn(known, "a")
    said = known.answers.recall(asked_by(D)) if known.answers is not None else None
    assert said is not None
    assert known.answers is not None
    known.answers.keep(asked_by(D), Said(said.answers, 9.0, said.since))
    holds(known, client(initialize(D)), expect_to_server(method("initialize")), request_timeout_s=10.0)


def asked_by(revision: str) -> bytes:
    return encode(["initialize", revision, {}])


def test_nothing_is_remembered_of_what_somebody_with_a_name_was_told(known: KnownServer) -> None:
    token = PRINCIPAL.set("ada")
    try:
        learn(known, "secret of ada")
    finally:
        PRINCIPAL.reset(token)
    learn(known, "a")
    token = PRINCIPAL.set("ada")
    try:
        learn(known, "secret of ada")
    finally:
        PRINCIPAL.reset(token)
    holds(known, *greeted("a"), OFFERED)


# Between the eras, and without a handshake

PER_REQUEST = {"resultType": "complete", "ttlMs": 9000, "cacheScope": "public"}
HELD = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def test_a_client_without_a_handshake_is_answered_for_a_server_with_one(known: KnownServer) -> None:
    known.note(has_handshake=True)

    def asks_for(*names: str) -> Step:
        return expect_to_client(lambda frame: [tool["name"] for tool in frame["result"]["tools"]] == [*names])

    holds(
        known,
        client(asks(1, "tools/list")),
        expect_to_server(method("initialize")),
        server(initialized(D, "dragoman-initialize", tools={})),
        expect_to_server(READY),
        expect_to_server(method("tools/list")),
        server(result(1, tools("a"))),
        asks_for("a"),
    )
    holds(known, client(asks(1, "tools/list")), asks_for("a"), expect_to_server(method("initialize")))


def test_a_server_that_has_answered_something_else_is_not_answered_for(known: KnownServer) -> None:
    learn(known, "a")
    holds(
        known,
        client(asks(1, "tools/list")),
        expect_to_server(method("server/discover")),
        server(error("dragoman-discover-1", -32601)),
        OFFERED,
        server(initialized(D, "dragoman-initialize", tools={})),
        expect_to_server(READY),
        expect_to_server(method("tools/list")),
    )
    holds(known, client(asks(1, "tools/list")), expect_to_client(method_free), OFFERED)


def learn_per_request(known: KnownServer, *names: str) -> None:
    holds(
        known,
        client(asks(1, "tools/list")),
        expect_to_server(method("server/discover")),
        server(discovered("dragoman-discover-1", tools={"listChanged": True})),
        expect_to_server(method("tools/list")),
        server(result(1, tools(*names, **PER_REQUEST))),
        expect_to_client(method_free),
    )


def test_two_without_a_handshake_are_joined_before_the_server_has_come(known: KnownServer) -> None:
    learn_per_request(known, "a")
    call = asks(2, "tools/call", name="a", arguments={})
    answer = result(2, {"content": [], "resultType": "complete"})
    holds(
        known,
        client(asks(1, "tools/list")),
        expect_to_client(result(1, tools("a", **HELD))),
        client(call),
        expect_to_server(method("server/discover")),
        server(discovered("dragoman-discover-1", tools={"listChanged": True})),
        expect_to_server(lambda frame: frame["id"] == COMPARE and "_meta" in frame["params"]),
        expect_to_server(method("tools/call")),
        server(answer),
        expect_to_client(lambda frame: frame["id"] == 2 and "result" in frame),
        server(result(COMPARE, tools("a", **PER_REQUEST))),
    )


def test_what_a_server_has_no_more_is_forgotten_though_nothing_else_is_asked(known: KnownServer) -> None:
    learn_per_request(known, "a")
    told = [client(asks(1, "tools/list")), expect_to_client(result(1, tools("a", **HELD)))]
    gone = [expect_to_server(method("server/discover")), server(discovered("dragoman-discover-1", prompts={}))]
    holds(known, *told, *gone, time_passes(0.01))
    holds(known, client(asks(1, "tools/list")), *gone, expect_to_server(method("tools/list")))


def test_a_change_is_told_once_on_each_stream_that_listens_for_it(known: KnownServer) -> None:
    learn_per_request(known, "a")
    wanted = {"toolsListChanged": True}

    def names(key: int) -> dict[str, Any]:
        return {"_meta": {"io.modelcontextprotocol/subscriptionId": key}}

    def agrees(key: int) -> list[Step]:
        agreed = notification("notifications/subscriptions/acknowledged", **names(key), notifications=wanted)
        told = notification("notifications/tools/list_changed", **names(key))
        return [server(agreed), expect_to_client(agreed), expect_to_client(told)]

    holds(
        known,
        client(asks(1, "tools/list")),
        expect_to_client(result(1, tools("a", **HELD))),
        client(asks(5, "subscriptions/listen", notifications=wanted)),
        client(asks(6, "subscriptions/listen", notifications=wanted)),
        expect_to_server(method("server/discover")),
        server(discovered("dragoman-discover-1", tools={"listChanged": True})),
        expect_to_server(method("tools/list")),
        expect_to_server(method("subscriptions/listen")),
        expect_to_server(method("subscriptions/listen")),
        server(result(COMPARE, tools("b", **PER_REQUEST))),
        *agrees(5),
        *agrees(6),
    )


def test_a_client_with_a_handshake_is_answered_for_a_server_without_one(known: KnownServer) -> None:
    known.note(has_handshake=False)
    config: dict[str, Any] = {"server_revision": "2026-07-28"}
    holds(
        known,
        client(initialize(D)),
        expect_to_server(method("server/discover")),
        server(discovered("dragoman-discover-1", tools={})),
        expect_to_client(method_free),
        client(READY),
        client(LIST),
        expect_to_server(method("tools/list")),
        server(lambda: result(1, tools("a", **PER_REQUEST))),
        expect_to_client(method_free),
        **config,
    )
    holds(
        known,
        client(initialize(D)),
        expect_to_client(lambda frame: frame["result"]["protocolVersion"] == D),
        client(READY),
        client(LIST),
        expect_to_client(lambda frame: [tool["name"] for tool in frame["result"]["tools"]] == ["a"]),
        expect_to_server(method("server/discover")),
        **config,
    )


# As processes

SLOW = """
import json, os, sys, time
for line in sys.stdin:
    open(sys.argv[1] + ".asked", "w").close()
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    frame = json.loads(line)
    key, method = frame.get("id"), frame["method"]
    if method == "initialize":
        result = {"protocolVersion": frame["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "slow", "version": "1"}
    elif method == "tools/list":
        result = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": []}
    if key is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": key, "result": result}), flush=True)
"""


@pytest.fixture
def sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the server waits for before it answers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "go"


def hear(run: Running, key: int) -> Any:
    while (frame := run.hear()).get("id") != key:
        pass
    return frame


def start_slowly(sign: Path, *options: str) -> None:
    """Have a first session, whose server takes more than a second."""
    with running(command=[sys.executable, "-c", SLOW, str(sign)], options=options) as run:
        run.say(initialize(D))
        wait_until(sign.with_suffix(".asked").exists)
        stall(SLOW_S + 0.1)
        sign.touch()
        hear(run, 0)
        run.say(READY, LIST)
        hear(run, 1)
        assert run.end()[0] == 0
    sign.unlink()
    sign.with_suffix(".asked").unlink()


def test_the_second_session_has_its_tools_while_the_server_starts(sign: Path, tmp_path: Path) -> None:
    start_slowly(sign)
    socket = str(tmp_path / "status")
    with running(command=[sys.executable, "-c", SLOW, str(sign)], options=("--status", socket)) as run:
        run.say(initialize(D), READY, LIST, CALL)
        assert hear(run, 0)["result"]["capabilities"] == {"tools": {"listChanged": True}}
        assert hear(run, 1)["result"] == tools("a")
        _, told, _ = ask(socket)
        assert told.splitlines()[2].split() == ["-", "from", "memory", D, "1", "0"]
        sign.touch()
        assert hear(run, 2) == CALLED
        assert ask(socket)[1].splitlines()[2].split() == ["-", "ready", D, "1", "0"]
        assert run.end()[0] == 0


def test_whoever_wants_no_greeting_waits(sign: Path) -> None:
    start_slowly(sign)
    with running(command=[sys.executable, "-c", SLOW, str(sign)], options=("--no-greeting",)) as run:
        run.say(initialize(D))
        wait_until(sign.with_suffix(".asked").exists)
        sign.touch()
        assert hear(run, 0)["result"]["capabilities"] == {"tools": {}}
        assert run.end()[0] == 0


# What is remembered


def test_a_server_is_not_answered_for_by_what_it_said_with_other_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SOME_TOKEN", raising=False)
    said = Said({"initialize": b'{"protocolVersion":"%b","capabilities":{}}' % D.encode()}, 2.0, time.time())
    given = know(["server"], None, [("MODE", "read")]).answers
    assert given is not None
    given.keep(b"asked", said)
    assert (again := know(["server"], None, [("MODE", "read")]).answers) is not None
    assert again.recall(b"asked") is not None
    other = know(["server"], None, [("MODE", "write")]).answers
    monkeypatch.setenv("SOME_TOKEN", "of somebody else")
    another = know(["server"], None, [("MODE", "read")]).answers
    assert other is not None
    assert another is not None
    assert other.recall(b"asked") is another.recall(b"asked") is None


@pytest.fixture
def answers(tmp_path: Path) -> KnownAnswers:
    kept = KnownAnswers(str(tmp_path / "answers"), "one")
    listed = b'{"tools":[{"name":"a"}]}'
    kept.keep(b"asked", Said({"tools/list": listed}, 2.0, time.time()))
    assert kept.recall(b"asked") is not None
    return kept


def path_of(answers: KnownAnswers) -> Path:
    (path,) = Path(answers.folder).iterdir()
    return path


def test_what_is_remembered_is_for_its_owner_alone(answers: KnownAnswers) -> None:
    assert path_of(answers).stat().st_mode & 0o777 == 0o600
    assert Path(answers.folder).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b"\xff\x00",
        b'{"took_s":"a","since":1,"answers":{}}',
        b'{"took_s":1,"since":NaN,"answers":{}}',
        b'{"took_s":1%b,"since":1,"answers":{}}' % (b"0" * 400),
        b" " * (3 * MOST_BYTES),
    ],
)
def test_what_is_not_ours_says_nothing(answers: KnownAnswers, data: bytes) -> None:
    path_of(answers).write_bytes(data)
    assert answers.recall(b"asked") is None


def test_an_answer_of_another_form_is_left_out(answers: KnownAnswers) -> None:
    opened = {"protocolVersion": D, "capabilities": {}}
    bad = {"tools/list": {"tools": ["a"]}, "server/discover": [], "prompts/get": {}}
    kept = {"took_s": 2.0, "since": time.time(), "answers": {**bad, "initialize": opened}}
    path_of(answers).write_bytes(encode(kept))
    said = answers.recall(b"asked")
    assert said is not None
    assert said.answers == {"initialize": encode(opened)}


def test_lists_alone_are_not_told(answers: KnownAnswers) -> None:
    opened = {"protocolVersion": 5, "capabilities": {}}
    kept = {"took_s": 2.0, "since": time.time(), "answers": {"initialize": opened, "tools/list": {"tools": []}}}
    path_of(answers).write_bytes(encode(kept))
    said = answers.recall(b"asked")
    assert said is not None
    assert said.answers == {}


def test_what_no_client_can_be_told_is_forgotten_with_the_session(known: KnownServer) -> None:
    assert known.answers is not None
    opened = {"protocolVersion": OLDER, "capabilities": {}}  # without a name of the server
    known.answers.keep(asked_by(D), Said({"initialize": encode(opened)}, 2.0, time.time()))
    holds(
        known,
        client(initialize(D)),
        expect_to_client(an_error(0, -32603, "serverInfo")),
        OFFERED,
        expect_end(Outcome.INITIALIZATION_FAILED),
    )
    learn(known, "a")


def test_what_is_old_says_nothing(answers: KnownAnswers) -> None:
    answers.keep(b"asked", Said({"tools/list": b'{"tools":[]}'}, 2.0, time.time() - SAID_S - 1))
    assert answers.recall(b"asked") is None


def test_a_pipe_or_a_device_in_its_place_is_not_read(answers: KnownAnswers) -> None:
    path = path_of(answers)
    path.unlink()
    os.mkfifo(path)
    assert answers.recall(b"asked") is None
    path.unlink()
    path.symlink_to("/dev/zero")
    assert answers.recall(b"asked") is None
    answers.keep(b"asked", Said({"tools/list": b'{"tools":[]}'}, 2.0, time.time()))
    assert answers.recall(b"asked") is not None


def test_a_pipe_in_place_of_what_a_server_is_says_nothing(known: KnownServer) -> None:
    Path(known.path).parent.mkdir()
    os.mkfifo(known.path)
    assert known.recall() is None


def test_what_is_too_long_is_not_kept(answers: KnownAnswers) -> None:
    long = encode({"tools": [{"name": "a" * MOST_BYTES}]})
    answers.keep(b"asked", Said({"tools/list": long}, 2.0, time.time()))
    assert answers.recall(b"asked") is None


def test_the_oldest_are_forgotten(answers: KnownAnswers) -> None:
    for number in range(120):
        answers.keep(b"%d" % number, Said({"tools/list": b'{"tools":[]}'}, 2.0, time.time()))
    assert len(list(Path(answers.folder).iterdir())) == 100
