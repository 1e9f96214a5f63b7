"""A client and a server whose requests each speak for themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.exact_json import encode_line
from dragoman.host.known import KnownAnswers, KnownServer
from dragoman.trace.trace import Trace
from dragoman.transports.memory import MemoryTransport
from tests.proxy.conversation import (
    READY,
    Step,
    an_error,
    client,
    client_closes,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    initialized,
    notification,
    request,
    result,
    server,
    server_closes,
    server_restarts,
    time_passes,
)
from tests.proxy.per_request import be_impatient
from tests.proxy.test_per_request import NEW, OLD, asked_what_it_is, asks

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
INTRODUCED = {
    "supportedVersions": [NEW],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}


def opening() -> list[Step]:
    """The server is asked what it is."""
    return [
        expect_to_server(lambda frame: frame["method"] == "server/discover"),
        server(result("dragoman-discover-1", INTRODUCED)),
    ]


def test_another_proxy_may_ask_under_an_id_that_one_of_ours_has() -> None:
    asked = asks("dragoman-discover-2", "server/discover")
    told: list[Any] = []
    hold(
        [
            client(asked),
            *opening(),
            expect_to_server(lambda frame: told.append(frame["id"]) or frame["id"] != asked["id"]),
            server(lambda: result(told[0], INTRODUCED)),
            expect_to_client(result(asked["id"], INTRODUCED)),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_frames_pass_as_the_bytes_that_they_are() -> None:
    call = b' {"id":"a", "jsonrpc":"2.0","method":"tools/call","params":{"x":1.50,"_meta":%s}}\n' % (
        encode_line(asks(1, "tools/call")["params"]["_meta"]).strip()
    )
    answer = b'{"jsonrpc":"2.0", "id":"a","result":{"resultType":"x", "n":1e0}}\n'
    hold(
        [
            client(call),
            *opening(),
            expect_to_server(call),
            server(answer),
            expect_to_client(answer),
            client(asks(2, "server/discover")),
            expect_to_server(asks(2, "server/discover")),
            server(result(2, INTRODUCED)),
            expect_to_client(result(2, INTRODUCED)),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_the_listens_of_others_go_on_when_a_principal_may_not_come_back() -> None:
    listens = asks("l", "subscriptions/listen", notifications={"toolsListChanged": True})
    changed = notification("notifications/tools/list_changed", _meta={SUBSCRIPTION: "l"})
    hold(
        [
            client(listens),
            *opening(),
            expect_to_server(listens),
            client(notification("notifications/cancelled", reason="revoked")),
            client(asks(2, "server/discover")),
            expect_to_server(asks(2, "server/discover")),
            server(changed),
            expect_to_client(changed),
        ],
        whose={"l": "Ben", None: "Ann"},
    )


def test_a_server_that_rejects_the_question_and_names_a_revision_of_ours_is_asked_again() -> None:
    rejection = {"code": -32022, "message": "not this one", "data": {"supported": [NEW], "requested": NEW}}
    listed = result(1, {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
    hold(
        [
            client(asks(1, "tools/list")),
            expect_to_server(lambda frame: frame["id"] == "dragoman-discover-1"),
            server({"jsonrpc": "2.0", "id": "dragoman-discover-1", "error": rejection}),
            expect_to_server(lambda frame: frame["id"] == "dragoman-discover-2"),
            server(result("dragoman-discover-2", INTRODUCED)),
            expect_to_server(asks(1, "tools/list")),
            server(listed),
            expect_to_client(listed),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_cancellations_and_notifications_pass() -> None:
    listens = asks("l", "subscriptions/listen", notifications={"toolsListChanged": True})
    changed = notification("notifications/tools/list_changed", _meta={SUBSCRIPTION: "l"})
    hold(
        [
            client(listens),
            *opening(),
            expect_to_server(listens),
            server(changed),
            expect_to_client(changed),
            client(notification("notifications/cancelled", requestId="l", reason="enough")),
            expect_to_server(notification("notifications/cancelled", requestId="l", reason="enough")),
            server(result("l", {})),  # nobody waits
            client(asks(2, "tools/list")),
            expect_to_server(lambda frame: frame["id"] == 2),
        ]
    )


def test_a_client_that_closes_ends_its_streams() -> None:
    hold(
        [
            client(asks("l", "subscriptions/listen", notifications={})),
            *opening(),
            expect_to_server(lambda frame: frame["id"] == "l"),
            client_closes(),
            expect_to_server(lambda frame: frame["method"] == "notifications/cancelled"),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_server_may_not_ask() -> None:
    def refused(frame: Any) -> bool:
        return an_error("q", -32601)(frame)

    hold(
        [
            client(asks(1, "tools/list")),
            *opening(),
            expect_to_server(lambda frame: frame["id"] == 1),
            server(request("q", "roots/list")),
            expect_to_server(refused),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
        ]
    )


def test_a_server_that_is_gone_is_opened_again_by_the_next_request() -> None:
    hold(
        [
            client(asks(1, "tools/list")),
            *opening(),
            expect_to_server(lambda frame: frame["id"] == 1),
            server_closes(),
            expect_to_client(an_error(1, -32000, "closed")),
            client(notification("notifications/cancelled", requestId=1)),
            client(asks(2, "tools/list")),
            time_passes(0.01),
            server_restarts(),
            expect_to_server(asks(2, "tools/list")),
            server(result(2, {"tools": []})),
            expect_to_client(result(2, {"tools": []})),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def opens() -> list[Step]:
    """A server with a handshake opens its session, and answers."""
    return [
        expect_to_server(lambda frame: frame["method"] == "initialize"),
        server(initialized(OLD, "dragoman-initialize", tools={})),
        expect_to_server(READY),
        expect_to_server(lambda frame: frame["method"] == "tools/list"),
        server(result(1, {"tools": []})),
        expect_to_client(lambda frame: frame["id"] == "a" and frame["result"]["tools"] == []),
    ]


def test_a_server_that_dies_of_the_question_what_it_is_is_started_again() -> None:
    hold(
        [
            client(asks("a", "tools/list")),
            expect_to_server(lambda frame: frame["method"] == "server/discover"),
            server_closes(),
            time_passes(0.05),
            server_restarts(),
            *opens(),
        ]
    )


SILENT = [
    client(asks("a", "tools/list")),
    expect_to_server(lambda frame: frame["method"] == "server/discover"),
    expect_to_server(lambda frame: frame["method"] == "initialize"),
]
"""A server that says nothing is asked both things, in one process."""

RESTS = [
    server(initialized(OLD, "dragoman-initialize", tools={})),
    expect_to_server(READY),
    expect_to_server(lambda frame: frame["method"] == "tools/list"),
    server(result(1, {"tools": []})),
    expect_to_client(lambda frame: frame["id"] == "a" and frame["result"]["tools"] == []),
]


@pytest.mark.parametrize("late", [[], [server(error("dragoman-discover-1", -32601))]], ids=["never", "late"])
def test_a_silent_server_that_answers_initialize_has_a_handshake(
    late: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_impatient(monkeypatch, 0.05)
    hold([*SILENT, *RESTS[:1], *late, *RESTS[1:]])


@pytest.mark.parametrize("between", ["nothing", "greets", "trace"])
def test_a_silent_server_that_has_read_the_question_is_asked_the_other_one_soon(
    between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryTransport, "was_read", lambda _: True, raising=False)
    monkeypatch.setattr("dragoman.core.edges.upstream.READ_SILENCE_S", 0.05)
    known = KnownServer(str(tmp_path / "one"), answers=KnownAnswers(str(tmp_path / "answers"), "one"))
    trace = Trace(tmp_path / "trace")
    hold([*SILENT, *RESTS], known=known, greets=between == "greets", trace=trace if between == "trace" else None)
    trace.close()


@pytest.mark.parametrize("late", [False, True])
def test_that_it_has_a_handshake_alone_is_remembered_unless_it_has_refused_the_question_late(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that stands for a server of both eras gives the question up when it gets `initialize`."""
    be_impatient(monkeypatch, 0.05)
    known = KnownServer(str(tmp_path / "one"))
    given_up = [server(error("dragoman-discover-1", -32000))] if late else []
    hold([*SILENT, *given_up, *RESTS], known=known)
    assert known.recall() is (None if late else True)


def test_a_silent_server_that_refuses_the_question_first_has_a_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold([*SILENT, server(error("dragoman-discover-1", -32602)), *RESTS])


def test_a_silent_server_that_says_what_it_is_has_no_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold(
        [
            *SILENT,
            server(result("dragoman-discover-1", INTRODUCED)),
            server(error("dragoman-initialize", -32022)),
            expect_to_server(asks("a", "tools/list")),
            server(result("a", {"tools": []})),
            expect_to_client(result("a", {"tools": []})),
        ]
    )


def test_a_silent_server_of_both_eras_that_takes_both_has_opened_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold([*SILENT, server(result("dragoman-discover-1", INTRODUCED)), *RESTS])


def test_a_silent_server_that_says_what_it_is_and_ends_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold(
        [
            *SILENT,
            server(result("dragoman-discover-1", INTRODUCED)),
            server_closes(),
            time_passes(0.02),
            server_restarts(),
            expect_to_server(asks("a", "tools/list")),
            server(result("a", {"tools": []})),
            expect_to_client(result("a", {"tools": []})),
        ]
    )


def test_a_silent_server_that_doubts_initialize_first_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold(
        [
            *SILENT,
            server(error("dragoman-initialize", -32601)),
            server(result("dragoman-discover-1", INTRODUCED)),
            expect_to_server(asks("a", "tools/list")),
            server(result("a", {"tools": []})),
            expect_to_client(result("a", {"tools": []})),
        ]
    )


def test_a_silent_server_that_dies_of_both_is_started_again_without_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    be_impatient(monkeypatch, 0.05)
    hold([*SILENT, server_closes(), time_passes(0.1), server_restarts(), *opens()])


def test_a_silent_server_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.02)
    hold(
        [
            *SILENT,
            time_passes(0.2),
            expect_to_client(an_error("a", -32000, "timed out")),
            expect_end(Outcome.INITIALIZATION_TIMED_OUT),
        ],
        init_timeout_s=0.3,
    )


@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32000, 0])
def test_a_server_that_does_not_know_the_question_has_a_handshake(code: int) -> None:
    hold([client(asks("a", "tools/list")), *asked_what_it_is(code=code), *opens()])


def test_a_server_that_names_only_handshakes_gets_one() -> None:
    hold(
        [
            client(asks("a", "tools/list")),
            expect_to_server(lambda frame: frame["method"] == "server/discover"),
            server(result("dragoman-discover-1", {**INTRODUCED, "supportedVersions": [OLD]})),
            *opens(),
        ]
    )


def test_a_server_that_is_said_to_have_a_handshake_is_not_asked_what_it_is() -> None:
    hold([client(asks("a", "tools/list")), *opens()], server_revision=OLD)
