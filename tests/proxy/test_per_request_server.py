"""A client of any revision with a handshake works with a server that has none: one call after the other."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman_spec import DEFAULT_RULES, HANDSHAKE_REVISIONS
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
    initialize,
    initialized,
    notification,
    request,
    result,
    server,
    server_closes,
    server_restarts,
    time_passes,
)
from tests.proxy.per_request import (
    IDENTITY,
    META,
    NEWER,
    NO_HANDSHAKE,
    be_impatient,
    complete,
    discovered,
    opening,
    stamped,
    valid,
)

A, B, C, D = HANDSHAKE_REVISIONS
PROBE, PROBE_AGAIN = "dragoman-discover-1", "dragoman-discover-2"


def probes(frame: Any) -> bool:
    about = frame["params"]["_meta"]
    assert about[META + "clientInfo"]["name"] == "test"
    return frame["method"] == "server/discover" and frame["id"] == PROBE and valid(frame, NEWER)


def offers(frame: Any) -> bool:
    return bool(frame["method"] == "initialize")


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_tools_are_listed_and_called(revision: str) -> None:
    hold(
        [
            *opening(revision),
            client(request(1, "tools/list")),
            expect_to_server(stamped(1, "tools/list", {})),
            server(complete(1, tools=[], ttlMs=5, cacheScope="public", _meta=IDENTITY)),
            expect_to_client(result(1, {"tools": []})),
            client(request("a", "tools/call", name="x", arguments={"n": 1})),
            expect_to_server(stamped(2, "tools/call", {}, name="x", arguments={"n": 1})),
            server(complete(2, content=[{"type": "text", "text": "hi"}])),
            expect_to_client(result("a", {"content": [{"type": "text", "text": "hi"}]})),
        ]
    )


# Who is asked what it is


@pytest.mark.parametrize(
    "refusal",
    [
        {"code": -32601, "message": "Method not found"},
        {"code": -32022, "message": "go away"},
        {"code": -32602, "message": "_meta must hold io.modelcontextprotocol/protocolVersion"},
        {"code": -32600, "message": "this server speaks 2026-07-28"},
        {"code": -32000, "message": "no", "data": {"supported": [NEWER]}},
    ],
    ids=lambda refusal: str(refusal["code"]),
)
def test_who_refuses_in_words_of_the_per_request_era_is_asked_what_it_is(refusal: dict[str, Any]) -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server({"jsonrpc": "2.0", "id": 0, "error": refusal}),
            expect_to_server(probes),
            server(discovered(PROBE)),
            expect_to_client(lambda frame: frame["result"]["protocolVersion"] == D),
        ]
    )


def test_who_accepts_in_a_revision_without_a_handshake_is_asked_what_it_is() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(initialized(NEWER)),
            expect_to_server(probes),
            server(discovered(PROBE)),
            expect_to_client(lambda frame: frame["result"]["protocolVersion"] == D),
        ]
    )


def test_who_accepts_in_a_revision_without_a_handshake_and_has_nothing_to_say_fails_the_session() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(initialized(NEWER)),
            expect_to_server(probes),
            server(error(PROBE, -32601)),
            expect_to_client(an_error(0, -32602, f"the server answered with {NEWER}", "per-request era")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


def test_who_only_mentions_a_revision_without_a_handshake_is_not_asked() -> None:
    accepted = initialized(D)
    accepted["result"]["instructions"] = f"This server will speak {NEWER} next year."
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(accepted),
            expect_to_client(lambda frame: frame["result"]["instructions"].startswith("This server")),
        ]
    )


def test_who_rejects_the_revision_of_the_question_is_asked_again_in_one_that_it_names() -> None:
    hold(
        [
            client(initialize(B)),
            expect_to_server(probes),
            server({"jsonrpc": "2.0", "id": PROBE, "error": NO_HANDSHAKE}),
            expect_to_server(lambda frame: frame["id"] == PROBE_AGAIN and valid(frame, NEWER)),
            server(discovered(PROBE_AGAIN)),
            expect_to_client(lambda frame: frame["result"]["protocolVersion"] == B),
        ],
        server_revision=NEWER,
    )


def test_who_rejects_that_one_too_is_not_asked_a_third_time() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601, "not yet")),
            expect_to_server(probes),
            server({"jsonrpc": "2.0", "id": PROBE, "error": NO_HANDSHAKE}),
            expect_to_server(lambda frame: frame["id"] == PROBE_AGAIN),
            server({"jsonrpc": "2.0", "id": PROBE_AGAIN, "error": NO_HANDSHAKE}),
            expect_to_client(error(0, -32601, "not yet")),
        ]
    )


def test_who_names_no_revision_of_ours_is_not_asked_again() -> None:
    later = {**NO_HANDSHAKE, "data": {"supported": ["2099-01-01"], "requested": NEWER}}
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601, "not yet")),
            expect_to_server(probes),
            server({"jsonrpc": "2.0", "id": PROBE, "error": later}),
            expect_to_client(error(0, -32601, "not yet")),
        ]
    )


def test_a_server_with_a_handshake_is_never_asked_what_it_is() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32602, "clientInfo.name is required")),
            expect_to_client(error(0, -32602, "clientInfo.name is required")),
            client(initialize(D, key=1)),
            expect_to_server(offers),
            server(initialized(D, key=1)),
            expect_to_client(lambda frame: frame["id"] == 1),
        ]
    )


def test_the_refusal_counts_where_the_server_has_a_handshake_after_all() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601, "not yet")),
            expect_to_server(probes),
            server(error(PROBE, -32601)),
            expect_to_client(error(0, -32601, "not yet")),
        ]
    )


def test_another_revision_is_offered_where_the_server_has_a_handshake_after_all() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32022, "go away")),
            expect_to_server(probes),
            server(error(PROBE, -32601)),
            expect_to_server(lambda frame: frame["params"]["protocolVersion"] == C),
            server(initialized(C, key="dragoman-initialize-2")),
            expect_to_client(lambda frame: frame["result"]["protocolVersion"] == D),
        ]
    )


def test_a_refusal_that_is_not_json_is_no_reason_to_ask() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(b'{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"2026-07-28",}}\n'),
            expect_to_client(an_error(0, -32603, "is not a response")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


def test_a_server_that_dies_of_the_question_is_started_again() -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601, "not yet")),
            expect_to_server(probes),
            server_closes(),
            expect_to_client(error(0, -32601, "not yet")),
            server_restarts(),
            client(initialize(D, key=1)),
            expect_to_server(offers),
            server(initialized(D, key=1)),
            expect_to_client(lambda frame: frame["id"] == 1),
        ]
    )


def test_a_server_that_does_not_say_what_it_is_has_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    be_impatient(monkeypatch, 0.05)
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601, "not yet")),
            expect_to_server(probes),
            expect_to_client(error(0, -32601, "not yet")),
        ]
    )


def test_nothing_happens_to_a_session_that_ended_while_its_server_was_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    be_impatient(monkeypatch, 0.3)
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601)),
            expect_to_server(probes),
            expect_to_client(an_error(0, -32000)),
            expect_end(Outcome.INITIALIZATION_TIMED_OUT),
            time_passes(0.5),
        ],
        init_timeout_s=0.1,
    )
    assert "internal error" not in caplog.text


def test_a_server_that_is_said_to_have_no_handshake_is_offered_none() -> None:
    hold(
        [
            client(initialize(B)),
            expect_to_server(probes),
            server(discovered(PROBE)),
            expect_to_client(lambda frame: frame["result"]["protocolVersion"] == B),
        ],
        server_revision=NEWER,
    )


def test_a_server_that_is_said_to_have_no_handshake_and_has_one_fails_the_session() -> None:
    hold(
        [
            client(initialize(B)),
            expect_to_server(probes),
            server(error(PROBE, -32601)),
            expect_to_client(an_error(0, -32603, NEWER, "does not")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ],
        server_revision=NEWER,
    )


# What each side is told of the other


def test_the_client_is_told_what_can_be_delivered() -> None:
    told = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "extensions": {"x/y": {}}}
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601)),
            expect_to_server(probes),
            server(discovered(PROBE, **told)),
            expect_to_client(
                result(
                    0,
                    {
                        "protocolVersion": D,
                        "capabilities": {"logging": {}, **told},
                        "serverInfo": {"name": "stateless", "version": "2"},
                        "instructions": "Be brief",
                    },
                )
            ),
        ]
    )


def test_a_server_without_a_name_gets_one() -> None:
    nameless = complete(PROBE, supportedVersions=[NEWER], capabilities={}, ttlMs=0, cacheScope="private")
    hold(
        [
            client(initialize(D)),
            expect_to_server(offers),
            server(error(0, -32601)),
            expect_to_server(probes),
            server(nameless),
            expect_to_client(lambda frame: valid(frame, D, "initialize") and frame["result"]["serverInfo"]["name"]),
        ]
    )


def test_the_server_is_told_what_the_client_can_be_asked() -> None:
    has = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}, "tasks": {"list": {}}}
    hold(
        [
            *opening(D, has),
            client(request(1, "tools/list")),
            expect_to_server(stamped(1, "tools/list", {"elicitation": {"form": {}}, "sampling": {}, "roots": {}})),
            server(complete(1, tools=[], ttlMs=0, cacheScope="private")),
            expect_to_client(result(1, {"tools": []})),
        ]
    )


# What the client asks that its server does not have


def test_a_ping_is_answered_here() -> None:
    hold([*opening(), client(request("p", "ping")), expect_to_client(result("p", {}))])


def test_the_log_level_goes_with_every_request_after_it_was_set() -> None:
    def has_level(level: str | None) -> Any:
        return lambda frame: frame["params"]["_meta"].get(META + "logLevel") == level

    answer = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    hold(
        [
            *opening(logging={}, tools={}),
            client(request(1, "tools/list")),
            expect_to_server(has_level(None)),
            server(complete(1, **answer)),
            expect_to_client(result(1, {"tools": []})),
            client(request(2, "logging/setLevel", level="warning")),
            expect_to_client(result(2, {})),
            client(request(3, "tools/list")),
            expect_to_server(has_level("warning")),
            server(notification("notifications/message", level="error", data="x")),
            expect_to_client(notification("notifications/message", level="error", data="x")),
            server(complete(2, **answer)),
            expect_to_client(result(3, {"tools": []})),
        ]
    )


def test_a_log_level_that_does_not_exist_is_refused() -> None:
    conversation = [*opening(logging={}), client(request(2, "logging/setLevel", level="loud"))]
    hold([*conversation, expect_to_client(an_error(2, -32602))])


NO_LOGGING: dict[str, Any] = {"tools": {}}


def opens(told: Any) -> list[Step]:
    """A session at a server that does not declare `logging`."""
    return [
        *opening(**NO_LOGGING)[:-2],
        expect_to_client(lambda frame: frame["result"]["capabilities"] == told),
        client(READY),
    ]


def test_a_server_that_does_not_declare_logging_is_told_the_level_all_the_same() -> None:
    hold(
        [
            *opens({"logging": {}, **NO_LOGGING}),
            client(request(2, "logging/setLevel", level="warning")),
            expect_to_client(result(2, {})),
            client(request(3, "tools/list")),
            expect_to_server(lambda frame: frame["params"]["_meta"][META + "logLevel"] == "warning"),
            server(notification("notifications/message", level="error", data="x")),
            expect_to_client(notification("notifications/message", level="error", data="x")),
        ]
    )


def test_a_server_that_does_not_declare_logging_offers_none_without_the_rule() -> None:
    conversation = [*opens(NO_LOGGING), client(request(2, "logging/setLevel", level="info"))]
    rules = DEFAULT_RULES - {"echoing-server", "assume-logging"}
    hold([*conversation, expect_to_client(an_error(2, -32601))], rules=rules)


def test_a_log_message_without_a_request_is_nobodys() -> None:
    hold(
        [
            *opening(),
            server(notification("notifications/message", level="error", data="x")),
            client(request("p", "ping")),
            expect_to_client(result("p", {})),
        ]
    )


def test_a_method_that_the_server_cannot_have_is_refused() -> None:
    hold([*opening(D), client(request(1, "tasks/list")), expect_to_client(an_error(1, -32601))])


# Calls


def test_progress_has_the_token_that_the_client_gave_and_grows() -> None:
    def progress(token: Any, value: float) -> dict[str, Any]:
        return notification("notifications/progress", progressToken=token, progress=value, total=9)

    hold(
        [
            *opening(D),
            client(request("a", "tools/call", name="x", _meta={"progressToken": "mine"})),
            expect_to_server(lambda frame: frame["params"]["_meta"]["progressToken"] == 1),
            server(progress(1, 1)),
            expect_to_client(progress("mine", 1)),
            server(progress(1, 1)),
            server(progress("mine", 5)),
            server(progress(1, 2)),
            expect_to_client(progress("mine", 2)),
            server(complete(1, content=[])),
            expect_to_client(result("a", {"content": []})),
            server(progress(1, 3)),
        ]
    )


def test_a_cancelled_call_is_cancelled_at_the_server_under_its_id_there() -> None:
    def cancelled(frame: Any) -> bool:
        return frame == notification("notifications/cancelled", requestId=1, reason="enough") and valid(frame, NEWER)

    hold(
        [
            *opening(D),
            client(request("a", "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", name="x")),
            client(notification("notifications/cancelled", requestId="a", reason="enough")),
            expect_to_server(cancelled),
            server(complete(1, content=[])),
            client(request("a", "ping")),
            expect_to_client(result("a", {})),
        ]
    )


def test_an_id_that_came_back_as_text_is_known() -> None:
    hold(
        [
            *opening(D),
            client(request("a", "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", name="x")),
            server(complete("1", content=[])),
            expect_to_client(result("a", {"content": []})),
        ]
    )


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (result(1, {"resultType": "surprise"}), -32603),
        (result(1, {"resultType": "task", "task": {}}), -32603),
        (result(1, {"resultType": "input_required"}), -32603),
        (error(1, -32022, "not that one", supported=["2099-01-01"], requested=NEWER), -32603),
        (error(1, -32000, "own"), -32000),
        (error(1, -32602, "no such tool"), -32602),
        (b'{"jsonrpc":"2.0","id":1,"result":[]}\n', -32603),
        (b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",}}\n', -32603),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}\n', -32603),
    ],
)
def test_what_is_no_answer_is_an_error(answer: Any, code: int) -> None:
    def is_it(frame: Any) -> bool:
        return frame["id"] == "a" and frame["error"]["code"] == code and valid(frame, D)

    hold(
        [
            *opening(D),
            client(request("a", "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", name="x")),
            server(answer),
            expect_to_client(is_it),
        ]
    )


def test_input_cannot_be_wanted_for_a_list() -> None:
    hold(
        [
            *opening(D, {"roots": {}}),
            client(request(7, "tools/list")),
            expect_to_server(stamped(1, "tools/list")),
            server(result(1, {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}})),
            expect_to_client(an_error(7, -32603, "input_required")),
        ]
    )


def test_a_capability_that_the_server_misses_is_a_failed_call() -> None:
    missing = error(1, -32021, "needs it", requiredCapabilities={"elicitation": {"form": {}}})
    hold(
        [
            *opening(A),
            client(request(7, "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", name="x")),
            server(missing),
            expect_to_client(lambda frame: frame["result"]["isError"] and "elicitation" in str(frame)),
        ]
    )


def test_a_request_of_the_server_is_refused_and_reaches_nobody() -> None:
    hold(
        [
            *opening(D, {"roots": {}}),
            server(request(1, "roots/list")),
            expect_to_server(an_error(1, -32601)),
        ]
    )


# Ends


def test_a_server_that_is_gone_is_opened_again_by_the_next_request(caplog: pytest.LogCaptureFixture) -> None:
    hold(
        [
            *opening(D),
            client(request(7, "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", name="x")),
            server_closes(),
            expect_to_client(an_error(7, -32000, "closed")),  # it may have run
            client(request(8, "tools/list")),
            time_passes(0.01),
            server_restarts(),
            expect_to_server(stamped(2, "tools/list")),
            server(complete(2, tools=[], ttlMs=0, cacheScope="private")),
            expect_to_client(result(8, {"tools": []})),
            client(request(9, "tools/call", name="x")),
            expect_to_server(stamped(3, "tools/call", name="x")),
            server_closes(),
            expect_to_client(an_error(9, -32000, "closed")),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([line for line in warned if "opened again" in line]) == 2


def test_what_a_client_hears_is_asked_for_again_when_the_server_is_gone() -> None:
    changed = notification("notifications/tools/list_changed")
    listens = {"toolsListChanged": True}
    hold(
        [
            *opening(D, tools={"listChanged": True}),
            expect_to_server(stamped(1, "subscriptions/listen", notifications=listens)),
            server(acknowledged(1, listens)),
            server_closes(),
            time_passes(1.5),
            server_restarts(),
            expect_to_server(stamped(2, "subscriptions/listen", notifications=listens)),
            server(acknowledged(2, listens)),
            expect_to_client(changed),  # as it may have
        ]
    )


def acknowledged(key: int, granted: dict[str, Any]) -> dict[str, Any]:
    meta = {META + "subscriptionId": key}
    return notification("notifications/subscriptions/acknowledged", notifications=granted, _meta=meta)


def test_a_client_that_says_no_more_is_still_answered() -> None:
    hold(
        [
            *opening(D),
            client(request(7, "tools/call", name="x")),
            expect_to_server(stamped(1, "tools/call", name="x")),
            client_closes(),
            time_passes(0.01),
            server(complete(1, content=[])),
            expect_to_client(result(7, {"content": []})),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_what_comes_with_the_handshake_waits_for_its_end() -> None:
    hold(
        [
            client(initialize(D)),
            client(READY),
            client(request(1, "tools/list")),
            expect_to_server(offers),
            server(error(0, -32601)),
            expect_to_server(probes),
            server(discovered(PROBE, tools={})),
            expect_to_client(lambda frame: frame["id"] == 0),
            expect_to_server(stamped(1, "tools/list")),
            server(complete(1, tools=[], ttlMs=0, cacheScope="private")),
            expect_to_client(result(1, {"tools": []})),
        ]
    )


def test_an_array_of_requests_is_answered_by_an_array() -> None:
    both = [request(1, "ping"), request(2, "tools/list")]
    hold(
        [
            *opening(B),
            client(both),
            expect_to_server(stamped(1, "tools/list")),
            server(complete(1, tools=[], ttlMs=0, cacheScope="private")),
            expect_to_client([result(1, {}), result(2, {"tools": []})]),
        ]
    )
