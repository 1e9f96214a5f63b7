"""What a client with a handshake hears outside of its calls of a server that has none: subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    request,
    result,
    server,
    time_passes,
)
from tests.proxy.per_request import META, NEWER, complete, opening, stamped, valid

D = HANDSHAKE_REVISIONS[-1]
HAS = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
URI = "file:///a"
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def tagged(method: str, stream: int, **params: Any) -> dict[str, Any]:
    """A notification on a stream."""
    return notification(method, _meta={META + "subscriptionId": stream}, **params)


def acknowledged(stream: int, **granted: Any) -> Step:
    return server(tagged("notifications/subscriptions/acknowledged", stream, notifications=granted))


def listens(stream: int, **wanted: Any) -> Step:
    return expect_to_server(stamped(stream, "subscriptions/listen", notifications=wanted))


def closes(stream: int) -> Step:
    def matches(frame: Any) -> bool:
        return valid(frame, NEWER) and bool(frame["params"]["requestId"] == stream)

    return expect_to_server(matches)


def listening(revision: str = D) -> list[Step]:
    """The session is open, and the client hears of tools."""
    return [*opening(revision, **HAS), listens(1, toolsListChanged=True), acknowledged(1, toolsListChanged=True)]


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_changed_list_is_told_without_the_name_of_the_stream(revision: str) -> None:
    hold([*listening(revision), server(tagged(TOOLS, 1)), expect_to_client(notification(TOOLS))])


def test_nobody_listens_to_a_server_that_tells_nothing() -> None:
    hold([*opening(D, tools={}), client(request(1, "ping")), expect_to_client(result(1, {}))])


def test_a_subscription_opens_a_stream_before_it_closes_the_one_there_was() -> None:
    hold(
        [
            *listening(),
            client(request("s", "resources/subscribe", uri=URI)),
            listens(2, toolsListChanged=True, resourceSubscriptions=[URI]),
            server(tagged(TOOLS, 1)),
            expect_to_client(notification(TOOLS)),
            acknowledged(2, toolsListChanged=True, resourceSubscriptions=[URI]),
            closes(1),
            expect_to_client(result("s", {})),
            server(tagged(UPDATED, 2, uri=URI)),
            expect_to_client(notification(UPDATED, uri=URI)),
            client(request("u", "resources/unsubscribe", uri=URI)),
            expect_to_client(result("u", {})),
            listens(3, toolsListChanged=True),
            acknowledged(3, toolsListChanged=True),
            closes(2),
        ]
    )


def test_a_subscription_that_is_not_granted_is_refused() -> None:
    hold(
        [
            *listening(),
            client(request("s", "resources/subscribe", uri=URI)),
            listens(2, toolsListChanged=True, resourceSubscriptions=[URI]),
            acknowledged(2, toolsListChanged=True),
            closes(1),
            expect_to_client(an_error("s", -32602, URI)),
        ]
    )


@pytest.mark.parametrize("params", [{}, {"uri": 5}])
def test_a_subscription_to_nothing_is_refused(params: dict[str, Any]) -> None:
    conversation = [*opening(D, **HAS), listens(1, toolsListChanged=True)]
    hold(
        [*conversation, client(request("s", "resources/subscribe", **params)), expect_to_client(an_error("s", -32602))]
    )


def test_a_subscription_that_the_server_does_not_offer_is_refused() -> None:
    hold(
        [
            *opening(D, tools={}),
            client(request("s", "resources/subscribe", uri=URI)),
            expect_to_client(an_error("s", -32601)),
        ]
    )


def test_a_stream_that_ends_is_opened_again_and_everything_may_have_changed() -> None:
    hold(
        [
            *listening(),
            server(complete(1, _meta={META + "subscriptionId": 1})),
            time_passes(1.1),
            listens(2, toolsListChanged=True),
            acknowledged(2, toolsListChanged=True),
            expect_to_client(notification(TOOLS)),
        ]
    )


def test_a_server_that_takes_its_stream_back_is_asked_again() -> None:
    hold(
        [
            *listening(),
            server(notification("notifications/cancelled", requestId=1)),
            closes(1),
            time_passes(1.1),
            listens(2, toolsListChanged=True),
        ]
    )


def test_a_server_without_streams_is_not_asked_again() -> None:
    hold(
        [
            *opening(D, **HAS),
            listens(1, toolsListChanged=True),
            server(error(1, -32601)),
            client(request("s", "resources/subscribe", uri=URI)),
            expect_to_client(an_error("s", -32601)),
        ]
    )


def test_a_notice_that_nobody_asked_for_is_dropped() -> None:
    hold(
        [
            *listening(),
            server(tagged("notifications/prompts/list_changed", 7)),
            server(tagged("notifications/message", 1, level="info", data="x")),
            server(notification(TOOLS)),
            client(request(1, "ping")),
            expect_to_client(result(1, {})),
        ]
    )
