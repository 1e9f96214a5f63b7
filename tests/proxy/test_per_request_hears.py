"""What a per-request client hears of a server with a handshake beside its answers, and what it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.core.switch.to_session import notifications
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    client_closes,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    notification,
    request,
    result,
    server,
    server_closes,
    time_passes,
)
from tests.proxy.test_per_request import (
    CAPABILITIES,
    IDENTITY,
    LEVEL,
    NEW,
    SERVER,
    VERSION,
    asked_what_it_is,
    asks,
    opening,
)
from tests.proxy.validity import hold

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def begin(first: dict[str, Any], **server_has: Any) -> list[Step]:
    return [client(first), *opening(**server_has)]


def log(level: Any) -> dict[str, Any]:
    return notification("notifications/message", level=level, data="x")


def test_a_request_hears_as_much_as_it_wants() -> None:
    hold(
        [
            *begin(asks(1, "tools/call", meta={LEVEL: "warning"}, name="a"), logging={}),
            expect_to_server(request(1, "logging/setLevel", level="warning")),
            server(result(1, {})),
            expect_to_server(request(2, "tools/call", name="a")),
            server(log("info")),
            server(log("error")),
            expect_to_client(log("error")),
            client(asks(2, "tools/call", meta={LEVEL: "debug"}, name="a")),
            expect_to_server(request(3, "logging/setLevel", level="debug")),
            expect_to_server(request(4, "tools/call", name="a")),
            server(log("alert")),  # of one of two
            server(result(2, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 1),
            server(log("debug")),
            expect_to_client(log("debug")),
        ]
    )


def test_a_server_says_less_once_nobody_wants_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "PAUSE_S", 0.01)
    hold(
        [
            *begin(asks(1, "tools/call", meta={LEVEL: "error"}, name="a"), logging={}),
            expect_to_server(request(1, "logging/setLevel", level="error")),
            server(result(1, {})),
            expect_to_server(request(2, "tools/call", name="a")),
            client(asks(2, "tools/call", meta={LEVEL: "debug"}, name="a")),
            expect_to_server(request(3, "logging/setLevel", level="debug")),
            server(result(3, {})),
            expect_to_server(request(4, "tools/call", name="a")),
            client(notification("notifications/cancelled", requestId=2)),
            expect_to_server(notification("notifications/cancelled", requestId=4)),
            expect_to_server(request(5, "logging/setLevel", level="error")),
            server(result(5, {})),
            server(result(2, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 1),
            expect_to_server(request(6, "logging/setLevel", level="emergency")),
        ]
    )


def test_a_level_that_is_wanted_again_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "PAUSE_S", 0.05)
    hold(
        [
            *begin(asks(1, "tools/call", meta={LEVEL: "debug"}, name="a"), logging={}),
            expect_to_server(request(1, "logging/setLevel", level="debug")),
            expect_to_server(request(2, "tools/call", name="a")),
            server(result(2, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 1),
            client(asks(2, "tools/call", meta={LEVEL: "info"}, name="a")),
            expect_to_server(request(3, "tools/call", name="a")),
            client(asks(3, "tools/call", meta={LEVEL: "debug"}, name="a")),
            expect_to_server(request(4, "tools/call", name="a")),
            server(result(3, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 2),
            time_passes(0.1),
            server(result(4, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 3),
            expect_to_server(request(5, "logging/setLevel", level="emergency")),
        ]
    )


@pytest.mark.parametrize("level", ["debug", "loud", None, ["info"]])
def test_a_request_hears_no_message_below_its_level_or_of_none(level: Any) -> None:
    hold(
        [
            *begin(asks(1, "tools/call", meta={LEVEL: "info"}, name="a"), logging={}),
            expect_to_server(request(1, "logging/setLevel", level="info")),
            expect_to_server(request(2, "tools/call", name="a")),
            server(log(level)),
            server(log("info")),
            expect_to_client(log("info")),
        ]
    )


def test_who_does_not_ask_for_logs_hears_none() -> None:
    hold(
        [
            *begin(asks(1, "tools/call", name="a"), logging={}),
            expect_to_server(request(1, "tools/call", name="a")),
            server(log("alert")),
            server(result(1, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 1),
        ]
    )


def test_a_server_without_logging_is_not_told_a_level() -> None:
    hold(
        [
            *begin(asks(1, "tools/call", meta={LEVEL: "debug"}, name="a")),
            expect_to_server(request(1, "tools/call", name="a")),
        ]
    )


@pytest.mark.parametrize("token", ["p", 9, "1"])
def test_progress_goes_by_the_token_of_the_request(token: Any) -> None:
    hold(
        [
            *begin(asks(1, "tools/call", meta={"progressToken": token, "traceparent": "t"}, name="a")),
            expect_to_server(request(1, "tools/call", name="a", _meta={"progressToken": 1, "traceparent": "t"})),
            server(notification("notifications/progress", progressToken=1, progress=1)),
            expect_to_client(notification("notifications/progress", progressToken=token, progress=1)),
            server(notification("notifications/progress", progressToken=token, progress=2))
            if token != 9
            else server(notification("notifications/progress", progressToken=7, progress=2)),
        ]
    )


def listens(key: Any, **wanted: Any) -> dict[str, Any]:
    return asks(key, "subscriptions/listen", notifications=wanted)


def acknowledged(key: Any, **agreed: Any) -> dict[str, Any]:
    meta = {SUBSCRIPTION: key}
    return notification("notifications/subscriptions/acknowledged", notifications=agreed, _meta=meta)


def test_a_listener_hears_of_changes() -> None:
    hold(
        [
            *begin(
                listens("a", toolsListChanged=True, promptsListChanged=True),
                tools={"listChanged": True},
                prompts={},
            ),
            expect_to_client(acknowledged("a", toolsListChanged=True)),
            server(notification("notifications/tools/list_changed")),
            expect_to_client(notification("notifications/tools/list_changed", _meta={SUBSCRIPTION: "a"})),
            server(notification("notifications/prompts/list_changed")),
            client(notification("notifications/cancelled", requestId="a")),
            client(asks(2, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(notification("notifications/tools/list_changed")),
        ]
    )


def test_a_resource_is_subscribed_to_once() -> None:
    uri = "file:///a"
    changed = notification("notifications/resources/updated", uri=uri)
    hold(
        [
            *begin(listens(1, resourceSubscriptions=[uri]), resources={"subscribe": True}),
            expect_to_server(request(1, "resources/subscribe", uri=uri)),
            server(result(1, {})),
            expect_to_client(acknowledged(1, resourceSubscriptions=[uri])),
            client(listens(2, resourceSubscriptions=[uri])),
            expect_to_client(acknowledged(2, resourceSubscriptions=[uri])),
            server(changed),
            *(expect_to_client(notification(changed["method"], uri=uri, _meta={SUBSCRIPTION: key})) for key in (1, 2)),
            client(notification("notifications/cancelled", requestId=1)),
            client(notification("notifications/cancelled", requestId=2)),
            expect_to_server(request(2, "resources/unsubscribe", uri=uri)),
        ]
    )


def test_a_stream_ends_with_the_connection() -> None:
    def is_end(frame: Any) -> bool:
        meta = frame["result"]["_meta"]
        return frame["id"] == "a" and meta == {SUBSCRIPTION: "a", **IDENTITY}

    hold(
        [
            *begin(listens("a", toolsListChanged=True), tools={"listChanged": True}),
            expect_to_client(acknowledged("a", toolsListChanged=True)),
            client_closes(),
            expect_to_client(lambda frame: frame["params"]["requestId"] == "a"),
            expect_to_client(is_end),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


@pytest.mark.parametrize(
    ("frame", "code", "words"),
    [
        (asks(1, "ping"), -32601, "has no ping"),
        (asks(1, "logging/setLevel", level="info"), -32601, "has no"),
        (asks(1, "resources/subscribe", uri="a:b"), -32601, "has no"),
        (asks(1, "notifications/cancelled"), -32601, "has no"),
        (request(1, "tools/list"), -32602, "/params/_meta"),
        (request(1, "tools/list", _meta={VERSION: 7}), -32602, "protocol version"),
        (request(1, "tools/list", _meta={VERSION: NEW}), -32602, "clientCapabilities"),
        (request(1, "tools/list", _meta={VERSION: NEW, CAPABILITIES: {}, LEVEL: "loud"}), -32602, "logLevel"),
        (request(1, "tools/list", _meta={VERSION: "2031-01-01", CAPABILITIES: {}}), -32022, "2031-01-01"),
        (request(1, "tools/list", _meta={VERSION: "2025-11-25", CAPABILITIES: {}}), -32022, "2025-11-25"),
    ],
)
def test_what_is_not_a_request_of_its_revision_is_refused(frame: Any, code: int, words: str) -> None:
    begun = [*begin(asks(0, "server/discover")), expect_to_client(lambda found: found["id"] == 0)]
    hold([*begun, client(frame), expect_to_client(an_error(1, code, words))])


@pytest.mark.parametrize(
    ("method", "code", "expected"),
    [("resources/read", -32002, -32602), ("tools/call", -32050, -32603), ("tools/call", -32007, -32007)],
)
def test_codes_of_the_server_are_those_of_the_client(method: str, code: int, expected: int) -> None:
    params = {"uri": "a:b"} if method == "resources/read" else {"name": "a"}
    hold(
        [
            *begin(asks(1, method, **params)),
            expect_to_server(request(1, method, **params)),
            server(error(1, code, "no")),
            expect_to_client(an_error(1, expected, "no")),
        ]
    )


def test_an_unknown_method_is_for_the_server_to_judge() -> None:
    hold(
        [
            *begin(asks(1, "acme/do", x=1)),
            expect_to_server(request(1, "acme/do", x=1, _meta={})),
            server(error(1, -32601, "no such method")),
            expect_to_client(an_error(1, -32601, "no such method")),
        ]
    )


def test_an_id_is_used_for_one_request_at_a_time() -> None:
    hold(
        [
            *begin(asks(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            client(asks(1, "tools/list")),
            expect_to_client(an_error(None, -32600, "not answered yet")),
            server(result(1, {"tools": []})),
            expect_to_client(lambda frame: frame["id"] == 1 and SERVER in frame["result"]["_meta"]),
        ]
    )


@pytest.mark.parametrize("second", ["tools/list", "server/discover"])
def test_a_server_that_refuses_is_asked_again_by_the_next_request(second: str) -> None:
    hold(
        [
            client(asks(1, "tools/list")),
            *asked_what_it_is(),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server(error("dragoman-initialize", -32603, "not today")),
            expect_to_client(an_error(1, -32603, "not today")),
            client(asks(2, second)),
            *opening(probe=2),
            expect_to_server(request(1, second)) if second == "tools/list" else expect_to_client(is_answer(2)),
        ]
    )


def test_a_server_that_refuses_and_ends_is_gone() -> None:
    hold(
        [
            client(asks(1, "tools/list")),
            *asked_what_it_is(),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server(error("dragoman-initialize", -32603, "not today")),
            expect_to_client(an_error(1, -32603, "not today")),
            server_closes(),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def is_answer(key: int) -> Callable[[Any], bool]:
    return lambda frame: frame["id"] == key and "result" in frame


def test_a_server_that_does_not_open_is_not_waited_for_for_ever() -> None:
    hold(
        [
            client(asks(1, "tools/list")),
            *asked_what_it_is(),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            expect_to_client(an_error(1, -32000, "timed out")),
            expect_end(Outcome.INITIALIZATION_TIMED_OUT),
        ],
        init_timeout_s=0.1,
    )


def test_a_server_that_pings_is_answered() -> None:
    hold([*begin(asks(1, "server/discover")), expect_to_client(lambda frame: frame["id"] == 1), *ping()])


def ping() -> list[Step]:
    return [server(request("p", "ping")), expect_to_server(result("p", {}))]


def test_a_question_without_a_call_is_refused() -> None:
    hold(
        [
            *begin(asks(1, "server/discover")),
            expect_to_client(lambda frame: frame["id"] == 1),
            server(request("r", "roots/list")),
            expect_to_server(an_error("r", -32601)),
        ]
    )


def test_an_answer_that_is_not_one_fails_its_call_alone() -> None:
    hold(
        [
            *begin(asks(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(b'{"jsonrpc":"2.0","id":1,"result":7}\n'),
            expect_to_client(an_error(1, -32603, "not a response")),
            *ping(),
        ]
    )


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b"hello\n", None),
        (b'{"jsonrpc":"1.0","id":7,"method":"a"}\n', 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}\n', None),
    ],
)
def test_a_line_that_is_not_a_request_is_answered_without_a_null(line: bytes, key: int | None) -> None:
    def is_answer(frame: Any) -> bool:
        return frame.get("id") == key and ("id" in frame) == (key is not None) and frame["error"]["code"] < -32599

    begun = [*begin(asks(0, "server/discover")), expect_to_client(lambda found: found["id"] == 0)]
    hold([*begun, client(line), expect_to_client(is_answer), *ping()])


def test_a_request_that_is_not_answered_in_time_is_given_up() -> None:
    proxy = hold(
        [
            *begin(asks(1, "tools/call", name="a")),
            expect_to_server(request(1, "tools/call", name="a")),
            expect_to_server(lambda frame: frame["params"]["requestId"] == 1),
            expect_to_client(an_error(1, -32000, "did not answer within 0.1 s")),
            server(result(1, {"content": []})),  # too late
            *ping(),
        ],
        request_timeout_s=0.1,
    )
    assert proxy.counters.timed_out == 1


def test_a_request_that_makes_progress_and_a_stream_are_not_given_up() -> None:
    def progress(value: int, token: Any) -> dict[str, Any]:
        return notification("notifications/progress", progressToken=token, progress=value)

    steps: list[Step] = []
    for value in range(1, 5):
        steps += [time_passes(0.08), server(progress(value, 1)), expect_to_client(progress(value, "p"))]
    hold(
        [
            *begin(asks(1, "tools/call", meta={"progressToken": "p"}, name="a"), tools={"listChanged": True}),
            expect_to_server(request(1, "tools/call", name="a", _meta={"progressToken": 1})),
            client(listens("l", toolsListChanged=True)),
            expect_to_client(acknowledged("l", toolsListChanged=True)),
            *steps,
            server(result(1, {"content": []})),
            expect_to_client(lambda frame: frame["id"] == 1),
            server(notification("notifications/tools/list_changed")),
            expect_to_client(notification("notifications/tools/list_changed", _meta={SUBSCRIPTION: "l"})),
        ],
        request_timeout_s=0.2,
    )


def test_a_request_that_makes_progress_without_end_is_given_up() -> None:
    steps: list[Step] = []
    for value in range(1, 5):
        told = notification("notifications/progress", progressToken=1, progress=value)
        steps += [server(told), expect_to_client(told), time_passes(0.05)]
    hold(
        [
            *begin(asks(1, "tools/call", meta={"progressToken": 1}, name="a")),
            expect_to_server(request(1, "tools/call", name="a", _meta={"progressToken": 1})),
            *steps,
            expect_to_server(lambda frame: frame["params"]["requestId"] == 1),
            expect_to_client(an_error(1, -32000, "did not answer within 0.3 s")),
        ],
        request_timeout_s=0.2,
        request_ceiling_s=0.3,
    )


def test_a_listener_is_acknowledged_where_the_server_garbles_its_answer_to_the_subscription() -> None:
    asked = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}
    acknowledged = {"toolsListChanged": True}
    hold(
        [
            *begin(
                asks(1, "subscriptions/listen", notifications=asked),
                resources={"subscribe": True},
                tools={"listChanged": True},
            ),
            expect_to_server(request(1, "resources/subscribe", uri="file:///a")),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"a":\n'),
            expect_to_client(lambda frame: frame["params"]["notifications"] == acknowledged),
        ]
    )
