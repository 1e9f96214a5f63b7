"""A client of both eras that sends `initialize` after all: SDKs wait 10 s for an answer to `server/discover`."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    READY,
    Step,
    an_error,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    initialized,
    request,
    result,
    server,
    server_closes,
    server_restarts,
    time_passes,
)
from tests.proxy.per_request import be_impatient, complete, discovered
from tests.proxy.test_per_request import asks

D = HANDSHAKE_REVISIONS[-1]
PROBE, OFFER = "dragoman-discover-1", "dragoman-initialize"


def method(name: str) -> Any:
    return lambda frame: frame["method"] == name


HAS: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "roots": {},
    "sampling": {"context": {}, "tools": {}},
}
FALLS_BACK = [
    client(asks("d", "server/discover", has=HAS)),
    expect_to_server(method("server/discover")),
    client(initialize(D, **HAS)),
    expect_to_client(an_error("d", -32000, "initialize")),
]


def is_open(*more: Step) -> list[Step]:
    return [
        expect_to_client(lambda frame: frame["id"] == 0 and frame["result"]["protocolVersion"] == D),
        client(READY),
        *more,
    ]


def test_a_server_that_turns_out_to_have_a_handshake_is_offered_that_session() -> None:
    hold(
        [
            *FALLS_BACK,
            server(error(PROBE, -32601)),
            expect_to_server(lambda frame: frame["params"]["clientInfo"] == {"name": "test", "version": "1"}),
            server(initialized(D, key=f"{OFFER}-1")),
            *is_open(expect_to_server(READY)),
        ]
    )


def test_a_server_that_turns_out_to_have_none_serves_it_too() -> None:
    hold(
        [
            *FALLS_BACK,
            server(discovered(PROBE, tools={})),
            *is_open(
                client(request(1, "tools/list")),
                expect_to_server(method("tools/list")),
                server(complete(1, tools=[], ttlMs=0, cacheScope="private")),
                expect_to_client(result(1, {"tools": []})),
            ),
        ]
    )


def test_a_server_that_has_both_questions_already_is_asked_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold(
        [
            *FALLS_BACK[:2],
            expect_to_server(method("initialize")),
            *FALLS_BACK[2:],
            server(initialized(D, key=OFFER)),
            *is_open(expect_to_server(READY)),
        ]
    )


def test_a_server_that_was_told_of_other_capabilities_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold(
        [
            *FALLS_BACK[:2],
            expect_to_server(method("initialize")),
            client(initialize(D, roots={})),
            *FALLS_BACK[3:],
            time_passes(0.02),
            server_restarts(),
            expect_to_server(lambda frame: frame["params"]["capabilities"] == {"roots": {}}),
            server(initialized(D, key=f"{OFFER}-1")),
            *is_open(expect_to_server(READY)),
        ]
    )


def test_whatever_else_the_client_has_asked_is_over() -> None:
    hold(
        [
            client(asks("d", "server/discover")),
            expect_to_server(method("server/discover")),
            server(discovered(PROBE, tools={})),
            expect_to_server(method("server/discover")),
            server(discovered("d", tools={})),
            expect_to_client(lambda frame: frame["id"] == "d"),
            client(asks("t", "tools/list")),
            expect_to_server(method("tools/list")),
            client(initialize(D)),
            expect_to_client(an_error("t", -32000, "initialize")),
            time_passes(0.02),
            server_restarts(),
            expect_to_server(method("initialize")),
            server(initialized(D)),
            *is_open(expect_to_server(READY)),
        ]
    )


def test_a_server_that_ends_meanwhile_is_started_once_more() -> None:
    hold(
        [
            *FALLS_BACK,
            server_closes(),
            time_passes(0.02),
            server_restarts(),
            expect_to_server(method("initialize")),
            server(initialized(D, key=f"{OFFER}-1")),
            *is_open(expect_to_server(READY)),
        ]
    )


def test_it_may_be_known_that_the_server_has_no_handshake() -> None:
    hold([*FALLS_BACK, server(discovered(PROBE, tools={})), *is_open()], server_revision="2026-07-28")


def test_a_client_that_greets_wrongly_meanwhile_may_greet_again() -> None:
    """The server that is being opened answers nobody any more: it is opened anew."""
    hold(
        [
            client(asks("d", "server/discover", has=HAS)),
            expect_to_server(method("initialize")),
            client(request("i", "initialize", capabilities={}, clientInfo=5)),
            expect_to_client(an_error("d", -32000, "initialize")),
            expect_to_client(an_error("i", -32602, "clientInfo")),
            server_restarts(),
            client(initialize(D, **HAS)),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
        ],
        server_revision="2024-11-05",
    )
