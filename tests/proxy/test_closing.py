"""How a session ends: by the client, by the server, by a signal, in order and with every request answered."""

from __future__ import annotations

import pytest

from dragoman.core.commands import Outcome
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    READY,
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
    server_closes,
)

A, B, C, D = HANDSHAKE_REVISIONS
LIST = request(1, "tools/list")


def test_a_client_that_closes_ends_the_session() -> None:
    hold([*opening(A, D), client_closes(), expect_end(Outcome.CLIENT_CLOSED)])


def test_a_client_that_never_asked_ends_the_session() -> None:
    hold([client_closes(), expect_end(Outcome.CLIENT_CLOSED)])


def test_a_client_that_closes_is_still_answered() -> None:
    hold(
        [
            *opening(A, D),
            client(LIST),
            expect_to_server(LIST),
            client_closes(),
            server(notification("notifications/tools/list_changed")),
            expect_to_client(notification("notifications/tools/list_changed")),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_client_that_closes_is_not_answered_for_ever() -> None:
    hold(
        [
            *opening(A, D),
            client(LIST),
            expect_to_server(LIST),
            client_closes(),
            expect_to_client(an_error(1, -32000, "did not answer within 0.05 s", "tools/list")),
            expect_end(Outcome.CLIENT_CLOSED),
        ],
        drain_timeout_s=0.05,
    )


def test_a_cancelled_request_does_not_hold_up_the_end() -> None:
    cancel = notification("notifications/cancelled", requestId=1)
    hold(
        [
            *opening(A, D),
            client(LIST),
            expect_to_server(LIST),
            client(cancel),
            expect_to_server(cancel),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_server_that_asks_a_client_that_closed_is_told() -> None:
    hold(
        [
            *opening(A, D, ["roots"]),
            server(request("r", "roots/list")),
            expect_to_client(request("r", "roots/list")),
            client(LIST),
            expect_to_server(LIST),
            client_closes(),
            expect_to_server(an_error("r", -32000, "client has closed")),
            server(request("r2", "roots/list")),
            expect_to_server(an_error("r2", -32000, "client has closed")),
            server(request("p", "ping")),
            expect_to_server(result("p", {})),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_last_line_without_line_feed_counts() -> None:
    hold(
        [
            *opening(A, D),
            client(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
            client_closes(),
            expect_to_server(LIST),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_half_a_line_at_the_end_is_malformed() -> None:
    hold(
        [
            *opening(A, D),
            client(b'{"jsonrpc":"2.0","id":1,"meth'),
            client_closes(),
            expect_to_client(an_error(None, -32700)),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


@pytest.mark.parametrize("server_revision", [A, D])
@pytest.mark.parametrize("cut", [b'{"tools":[{"name":"a","inputSch', b'{"tools":[{"name":"a","inputSchema":{}}'])
def test_half_an_answer_at_the_end_of_a_server_fails_the_request(server_revision: str, cut: bytes) -> None:
    hold(
        [
            *opening(A, server_revision),
            client(LIST),
            expect_to_server(LIST),
            server(b'{"jsonrpc":"2.0","id":1,"result":' + cut),
            server_closes(),
            expect_to_client(an_error(1, -32603, "the line ends in the middle of a frame")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_whole_answer_without_line_feed_at_the_end_of_a_server_counts() -> None:
    hold(
        [
            *opening(A, A),
            client(LIST),
            expect_to_server(LIST),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'),
            server_closes(),
            expect_to_client(result(1, {"tools": []})),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_half_an_answer_with_a_trace_behind_it_fails_the_request() -> None:
    hold(
        [
            *opening(A, A),
            client(LIST),
            expect_to_server(LIST),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"Traceback (most recent call last):\n'),
            expect_to_client(an_error(1, -32603, "answered with something that is not a response")),
            server_closes(),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_session_ends_with_its_last_answer_even_if_that_is_not_a_response() -> None:
    hold(
        [
            *opening(A, A),
            client(LIST),
            expect_to_server(LIST),
            client_closes(),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"Traceback (most recent call last):\n'),
            expect_to_client(an_error(1, -32603, "answered with something that is not a response")),
            expect_end(Outcome.CLIENT_CLOSED),
        ],
        drain_timeout_s=60.0,
    )


def test_half_a_request_at_the_end_of_a_client_does_not_reach_the_server() -> None:
    hold(
        [
            *opening(A, A),
            client(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}'),
            client_closes(),
            expect_to_client(an_error(1, -32700, "the line ends in the middle of a frame")),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_server_that_closes_fails_what_it_was_asked() -> None:
    hold(
        [
            *opening(A, D),
            client(LIST),
            expect_to_server(LIST),
            client(request("2", "ping")),
            expect_to_server(request("2", "ping")),
            server_closes(),
            expect_to_client(an_error(1, -32000, "server has closed", "tools/list")),
            expect_to_client(an_error("2", -32000, "server has closed", "ping")),
            expect_end(Outcome.SERVER_CLOSED, "server has closed"),
        ]
    )


def test_equal_peers_get_the_same_care_when_the_server_closes() -> None:
    hold(
        [
            *opening(A, A),
            client(LIST),
            expect_to_server(LIST),
            server_closes(),
            expect_to_client(an_error(1, -32000, "tools/list")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_server_that_closes_while_the_client_is_served_out_fails_the_rest() -> None:
    hold(
        [
            *opening(A, D),
            client(LIST),
            expect_to_server(LIST),
            client_closes(),
            server_closes(),
            expect_to_client(an_error(1, -32000, "server has closed")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_server_that_is_gone_before_it_was_asked_is_reported_to_the_client() -> None:
    hold(
        [
            server_closes(),
            client(request("early", "tools/list")),
            client(notification("notifications/x")),
            client(initialize(D)),
            expect_to_client(an_error("early", -32000, "server has closed")),
            expect_to_client(an_error(0, -32000, "server has closed")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_server_that_is_gone_is_not_waited_for_long() -> None:
    hold([server_closes(), expect_end(Outcome.SERVER_CLOSED)])


def test_a_server_that_is_gone_and_a_client_that_leaves() -> None:
    hold([server_closes(), client_closes(), expect_end(Outcome.SERVER_CLOSED)])


def test_a_server_that_closes_between_answer_and_initialized_fails_what_waits() -> None:
    hold(
        [
            *opening(D, D)[:-2],
            client(LIST),
            server_closes(),
            expect_to_client(an_error(1, -32000, "server has closed")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_client_that_closes_between_answer_and_initialized_ends_the_session() -> None:
    hold(
        [
            *opening(D, D)[:-2],
            client(LIST),
            client_closes(),
            expect_to_client(an_error(1, -32000, "without sending notifications/initialized")),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_client_that_closes_behind_a_refused_initialize_ends_the_session() -> None:
    hold(
        [
            client(initialize(D)),
            client(READY),
            client_closes(),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server(b'{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"no API key"}}\n'),
            expect_to_client(an_error(0, -32603, "API key")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )
