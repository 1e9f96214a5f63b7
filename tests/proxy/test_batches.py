"""Arrays of frames, which only revision 2025-03-26 has."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    READY,
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
    opening,
    request,
    result,
    server,
    server_closes,
)

A, B, C, D = HANDSHAKE_REVISIONS
REFUSED = [(1, -32000), ("p", -32000)]
LIST, PING = request(1, "tools/list"), request("p", "ping")


@pytest.mark.parametrize("client_revision", [A, C, D])
def test_a_batch_of_the_server_is_split_too(client_revision: str) -> None:
    ask = request("s", "roots/list")
    hold(
        [
            *opening(client_revision, B, ["roots"]),
            client(LIST),
            expect_to_server(LIST),
            server([ask, result(1, {"tools": []}), notification("notifications/prompts/list_changed")]),
            expect_to_client(ask),
            expect_to_client(result(1, {"tools": []})),
            expect_to_client(notification("notifications/prompts/list_changed")),
            client(result("s", {"roots": []})),
            expect_to_server([result("s", {"roots": []})]),
        ]
    )


def test_a_batch_passes_as_it_came_between_two_that_know_batches() -> None:
    batch = b'[ {"jsonrpc":"2.0","id":1,"method":"ping"} , {"jsonrpc":"2.0","id":2,"method":"ping"},7]\n'
    answers = b'[{"jsonrpc":"2.0","id":2,"result":{}}, {"jsonrpc":"2.0","id":1,"result":{}}]\n'
    proxy = hold([*opening(B, B), client(batch), expect_to_server(batch), server(answers), expect_to_client(answers)])
    assert not proxy.open_requests


BOTH = {**result(1, {"tools": []}), "error": {"code": -1, "message": "no"}}
PONG = result("p", {})


@pytest.mark.parametrize("answers", [[[BOTH, PONG]], [[PONG, BOTH]], [BOTH, [PONG]], [[BOTH], PONG]])
def test_an_answer_that_is_none_comes_in_the_one_array_with_the_others(answers: list[Any]) -> None:
    def heard(frame: Any) -> bool:
        return sorted((str(one["id"]), "error" in one) for one in frame) == [("1", True), ("p", False)]

    asks = [client([LIST, PING]), expect_to_server([LIST, PING])]
    proxy = hold([*opening(B, B), *asks, *map(server, answers), expect_to_client(heard)])
    assert not proxy.open_requests


@pytest.mark.parametrize("first", [[1], ["p"], "p", ["p", 9]])
@pytest.mark.parametrize("is_alone", [True, False])
def test_an_array_that_is_answered_in_parts_is_answered_with_one(first: Any, is_alone: bool) -> None:
    """Whoever waits for the answer to an array gets one; what was asked alone does not come with it."""
    asked = request(9, "tools/list")
    nothing: dict[str, Any] = {}
    [key] = {1, "p"} & set(first)
    rest = "p" if key == 1 else 1
    given = result(key, nothing) if isinstance(first, str) else [result(one, nothing) for one in first]
    hold(
        [
            *opening(B, B),
            *([client(asked), expect_to_server(asked)] if 9 in [*first] else []),
            client([PING, request(1, "ping")]),
            expect_to_server([PING, request(1, "ping")]),
            server(given),
            *([expect_to_client([result(9, nothing)])] if 9 in [*first] else []),
            server(result(rest, nothing) if is_alone else [result(rest, nothing)]),
            expect_to_client([result(key, nothing), result(rest, nothing)]),
        ]
    )


def test_an_error_about_a_member_does_not_have_the_id_of_a_request_beside_it() -> None:
    nothing = {"jsonrpc": "2.0", "id": "p"}
    hold(
        [
            *opening(B, A),
            client([nothing, PING]),
            expect_to_server(PING),
            server(result("p", {})),
            expect_to_client(lambda frame: [member["id"] for member in frame] == [None, "p"]),
        ]
    )
    hold(
        [
            *opening(B, B),
            client([nothing, PING]),
            expect_to_client(lambda frame: frame["id"] is None),
            expect_to_server([PING]),
        ]
    )


def test_what_was_answered_alone_comes_with_the_rest_that_came_in_an_array() -> None:
    tools = result(1, {"tools": []})
    asks = [client([LIST, PING]), expect_to_server([LIST, PING])]
    hold([*opening(B, B), *asks, server(tools), server([PONG]), expect_to_client([tools, PONG])])


@pytest.mark.parametrize("client_revision", [A, C, D])
@pytest.mark.parametrize("server_revision", HANDSHAKE_REVISIONS)
def test_a_batch_from_a_client_of_another_revision_is_refused(client_revision: str, server_revision: str) -> None:
    hold([*opening(client_revision, server_revision), client([LIST]), expect_to_client(an_error(None, -32600, B))])


@pytest.mark.parametrize("server_revision", [A, C, D])
def test_a_batch_from_a_server_of_another_revision_is_dropped(server_revision: str) -> None:
    proxy = hold([*opening(B, server_revision), server([notification("notifications/tools/list_changed")])])
    assert proxy.counters.malformed == 1


def test_an_empty_batch_is_refused() -> None:
    hold([*opening(B, A), client([]), expect_to_client(an_error(None, -32600, "at least one"))])


@pytest.mark.parametrize("client_revision", [A, B])
@pytest.mark.parametrize("server_revision", [B, D])
@pytest.mark.parametrize("member", [7, {}])
def test_of_a_very_long_array_answers_alone_are_looked_at(
    client_revision: str, server_revision: str, member: Any
) -> None:
    answer = result(1, {"tools": []})
    asks = [client(LIST), expect_to_server(LIST), server([member] * 10_000 + [answer])]
    is_dropped = server_revision == D
    heard = (lambda frame: frame["id"] == 1) if is_dropped else answer
    passes = [answer] if client_revision == server_revision else heard
    proxy = hold([*opening(client_revision, server_revision), *asks, expect_to_client(passes)])
    assert proxy.counters.malformed <= 10


def test_a_very_long_array_of_a_client_is_answered_with_one_error() -> None:
    proxy = hold(
        [
            *opening(B, A, ["roots"]),
            server(request("s", "roots/list")),
            expect_to_client(request("s", "roots/list")),
            client([7] * 10_000 + [LIST, result("s", {"roots": []})]),
            expect_to_client(an_error(None, -32600, "no more than 4000")),
            expect_to_server(result("s", {"roots": []})),
        ]
    )
    assert proxy.counters.malformed == 1


def test_malformed_members_are_answered_in_an_array() -> None:
    def answered(frame: Any) -> bool:
        return [(member["id"], member["error"]["code"]) for member in frame] == [(None, -32600)] * 3 + [(9, -32600)]

    hold(
        [
            *opening(B, A),
            client([1, [LIST], {"id": None, "method": "x", "jsonrpc": "2.0"}, initialize(B, 9)]),
            expect_to_client(answered),
        ]
    )


def test_a_malformed_response_in_a_batch_is_not_answered() -> None:
    proxy = hold([*opening(B, A), client([{"jsonrpc": "2.0", "id": 1, "result": 1}])])
    assert proxy.counters.malformed == 1


def test_a_server_is_not_answered_to_a_member_that_is_neither_question_nor_answer() -> None:
    """It did not ask: what answered this could be taken for the answer to something else under that id."""
    proxy = hold([*opening(A, B), server([{"jsonrpc": "2.0", "id": 7}, {"jsonrpc": "2.0", "id": "s", "method": 3}])])
    assert proxy.counters.malformed == 2


def test_an_error_about_a_member_is_not_taken_for_the_answer_to_a_request_that_waits() -> None:
    hold(
        [
            *opening(B, A),
            client(LIST),
            expect_to_server(LIST),
            client([{"jsonrpc": "2.0", "id": 1}, PING]),
            expect_to_server(PING),
            server(result("p", {})),
            expect_to_client(lambda frame: [member["id"] for member in frame] == [None, "p"]),
        ]
    )


def test_good_and_bad_members_are_answered_together() -> None:
    hold(
        [
            *opening(B, A),
            client([7, LIST, request(1, "ping"), request(2, "tasks/list")]),
            expect_to_server(LIST),
            expect_to_server(request(2, "tasks/list")),
            server(error(2, -32601, "no such method")),
            server(result(1, {"tools": []})),
            expect_to_client(
                lambda frame: (
                    [member["id"] for member in frame] == [None, None, 2, 1] and frame[3]["result"] == {"tools": []}
                )
            ),
        ]
    )


def test_a_batch_of_notifications_is_not_answered() -> None:
    one = notification("notifications/x")
    hold([*opening(B, A), client([one, one]), expect_to_server(one), expect_to_server(one)])


def test_a_batch_that_comes_early_waits_like_any_request() -> None:
    hold(
        [
            client(initialize(B)),
            client([LIST]),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server(initialized(A)),
            expect_to_client(initialized(B)),
            client(READY),
            expect_to_server(READY),
            expect_to_server(LIST),
            server(result(1, {"tools": []})),
            expect_to_client([result(1, {"tools": []})]),
        ]
    )


def test_a_batch_that_waits_is_answered_when_initialisation_fails() -> None:
    hold(
        [
            client(initialize(B)),
            client([LIST, notification("notifications/x"), PING]),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server_closes(),
            expect_to_client(an_error(0, -32000)),
            expect_to_client(lambda heard: [(one["id"], one["error"]["code"]) for one in heard] == REFUSED),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


@pytest.mark.parametrize("server_revision", [A, B])
def test_a_batch_cut_short_by_the_server_is_answered_as_one_array(server_revision: str) -> None:
    arrives = [expect_to_server(frame) for frame in ([[LIST, PING]] if server_revision == B else [LIST, PING])]
    hold(
        [
            *opening(B, server_revision),
            client([LIST, PING]),
            *arrives,
            server_closes(),
            expect_to_client(lambda frame: [member["error"]["code"] for member in frame] == [-32000, -32000]),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


@pytest.mark.parametrize("server_revision", [A, D])
def test_a_cancelled_member_does_not_hold_up_the_others(server_revision: str) -> None:
    cancel = notification("notifications/cancelled", requestId=1)
    hold(
        [
            *opening(B, server_revision),
            client([LIST, PING]),
            expect_to_server(LIST),
            expect_to_server(PING),
            server(result("p", {})),
            client(cancel),
            expect_to_client([result("p", {})]),
            expect_to_server(cancel),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
        ]
    )


def test_a_cancellation_inside_a_batch_passes_between_two_that_know_batches() -> None:
    cancel = notification("notifications/cancelled", requestId=1)
    hold([*opening(B, B), client([LIST, cancel]), expect_to_server([LIST, cancel])])


def test_requests_of_an_array_are_refused_together_where_no_session_is_open() -> None:
    hold(
        [
            client(initialize(B)),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server(error(0, -32603, "no API key")),
            expect_to_client(an_error(0, -32603, "no API key")),
            client([LIST, notification("notifications/x"), PING]),
            expect_to_client(lambda heard: [(one["id"], one["error"]["code"]) for one in heard] == REFUSED),
        ]
    )
