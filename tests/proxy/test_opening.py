"""How a session opens: which revision each side is spoken to in, what is offered, retried, queued and refused."""

from __future__ import annotations

import asyncio
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
    opening,
    request,
    result,
    server,
    server_closes,
    server_restarts,
    the_clock_is_put_forward,
    time_passes,
)
from tests.support.waiting import IdleClockLoop

A, B, C, D = HANDSHAKE_REVISIONS


def offers(revision: str, key: Any = 0, **capabilities: Any) -> Step:
    def offered(frame: Any) -> bool:
        params = frame["params"]
        same_key = key is None or frame["id"] == key
        return same_key and params["protocolVersion"] == revision and params["capabilities"] == capabilities

    return expect_to_server(offered)


def answers(revision: str) -> Step:
    return expect_to_client(lambda frame: frame["result"]["protocolVersion"] == revision)


@pytest.mark.parametrize("asked", ["1999-01-01", "2099-01-01", "2026-07-28", "", None, 7])
def test_an_unknown_revision_is_answered_with_the_newest_of_the_handshake(asked: Any) -> None:
    hold([client(initialize(asked)), offers(D), server(initialized(D)), answers(D)], rules=DEFAULT_RULES)


def test_a_client_value_goes_on_as_it_came_without_the_echo_rule() -> None:
    rules = DEFAULT_RULES - {"echoing-server"}
    hold([client(initialize("2099-01-01")), offers("2099-01-01"), server(initialized(C)), answers(D)], rules=rules)


def test_a_per_request_revision_is_never_offered() -> None:
    hold([client(initialize("2026-07-28")), offers(D)], rules=DEFAULT_RULES - {"echoing-server"})


def test_the_server_may_be_offered_another_revision() -> None:
    hold(
        [client(initialize(D, elicitation={})), offers(A), server(initialized(A, tools={})), answers(D)],
        server_revision=A,
    )


def test_the_client_may_be_pinned_to_a_revision() -> None:
    hold([client(initialize(D)), offers(B), server(initialized(D)), answers(B)], client_revision=B)


def test_client_capabilities_that_the_server_lacks_are_left_out() -> None:
    hold(
        [client(initialize(D, roots={}, elicitation={"form": {}}, tasks={"list": {}})), offers(B, roots={})],
        server_revision=B,
    )


def test_server_capabilities_that_the_client_lacks_are_left_out() -> None:
    hold(
        [
            client(initialize(A)),
            offers(A),
            server(initialized(D, tools={}, completions={}, tasks={"list": {}})),
            expect_to_client(lambda frame: frame["result"]["capabilities"] == {"tools": {}}),
        ]
    )


@pytest.mark.parametrize("answer", ["2099-01-01", None, 5, ["2025-06-18"]])
def test_a_server_that_answers_no_handshake_revision_fails_the_session(answer: Any) -> None:
    words = ["'supported': ['2024-11-05', '2025-03-26'", f"'requested': '{C}'"]
    hold(
        [
            client(initialize(C)),
            offers(C),
            server(initialized(answer)),
            expect_to_client(an_error(0, -32602, "Unsupported protocol version", *words)),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


REJECTIONS = [
    ({"code": -32602, "message": "Unsupported protocol version", "data": {"supported": [A], "requested": D}}, A),
    ({"code": -32602, "message": "Unsupported protocol version", "data": {"supported": [A, B]}}, B),
    ({"code": -32000, "message": "no", "data": {"supportedVersions": [C, "1999-01-01"]}}, C),
    ({"code": -32602, "message": "x", "data": {"supported": A}}, A),
    ({"code": -32602, "message": f"Unsupported protocol version: {D}. Supported versions: {A}, {B}"}, B),
    ({"code": -32600, "message": "Bad Request: Unsupported protocol version"}, C),
    ({"code": -32603, "message": "Unknown version", "data": "try 2025-03-26 please"}, B),
    ({"code": -32602, "message": "protocolVersion must be one of 2024-11-05"}, A),
]


@pytest.mark.parametrize(("rejection", "second"), REJECTIONS)
def test_an_explicit_rejection_is_answered_with_one_other_offer(rejection: dict[str, Any], second: str) -> None:
    hold(
        [
            client(initialize(D, key="c-0")),
            offers(D, key="c-0"),
            server({"jsonrpc": "2.0", "id": "c-0", "error": rejection}),
            offers(second, key="dragoman-initialize-2"),
            server(initialized(second, key="dragoman-initialize-2")),
            expect_to_client(lambda frame: frame["id"] == "c-0" and frame["result"]["protocolVersion"] == D),
            client(READY),
            expect_to_server(READY),
        ]
    )


def test_the_oldest_revision_rejected_without_a_list_leads_to_the_newest() -> None:
    hold([client(initialize(A)), offers(A), server(error(0, -32602, "Unsupported protocol version")), offers(D, None)])


def test_a_server_that_accepts_anything_is_offered_the_newest_first() -> None:
    audio = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
    hold(
        [
            client(initialize(A)),
            offers(D),
            server(initialized(D)),
            expect_to_client(lambda frame: frame["result"]["protocolVersion"] == A),
            client(READY),
            expect_to_server(READY),
            client(request(1, "tools/call", name="record")),
            expect_to_server(request(1, "tools/call", name="record")),
            server(result(1, {"content": [audio]})),
            expect_to_client(result(1, {"content": [{"type": "text", "text": "[Audio content: audio/wav]"}]})),
        ],
        rules=DEFAULT_RULES,
    )


def test_a_server_that_rejects_the_newest_is_offered_what_the_client_asked_for_and_then_the_next_older() -> None:
    hold(
        [
            client(initialize(B)),
            offers(D),
            server(error(0, -32602, "Unsupported protocol version")),
            offers(B, None),
            server(error("dragoman-initialize-2", -32602, "Unsupported protocol version")),
            offers(A, None),
            server(error("dragoman-initialize-3", -32602, "Unsupported protocol version")),
            expect_to_client(an_error(0, -32602, "Unsupported protocol version", "'requested': '2025-03-26'")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ],
        rules=DEFAULT_RULES,
    )


def test_a_server_that_names_what_it_speaks_is_offered_that_and_nothing_after_it() -> None:
    hold(
        [
            client(initialize(A)),
            offers(D),
            server(error(0, -32602, "Unsupported protocol version", supported=[B])),
            offers(B, None),
            server(error("dragoman-initialize-2", -32602, "Unsupported protocol version")),
            expect_to_client(an_error(0, -32602, "Unsupported protocol version")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ],
        rules=DEFAULT_RULES,
    )


def test_without_another_offer_the_first_is_what_the_client_asked_for() -> None:
    hold([client(initialize(B)), offers(B)], rules=DEFAULT_RULES, retry_older=False)


def test_a_second_rejection_fails_the_session() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(error(0, -32602, "Unsupported protocol version")),
            offers(C, None),
            server(error("dragoman-initialize-2", -32602, "Unsupported protocol version", supported=[A])),
            expect_to_client(an_error(0, -32602, "Unsupported protocol version", A, "'requested': '2025-11-25'")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


def test_the_second_offer_can_be_turned_off() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(error(0, -32602, "Unsupported protocol version", supported=[A])),
            expect_to_client(an_error(0, -32602, "Unsupported protocol version")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ],
        retry_older=False,
    )


def test_a_server_of_the_per_request_era_that_does_not_say_what_it_is_is_named_as_such() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(error(0, -32022, "Unsupported protocol version", supported=["2026-07-28"], requested=D)),
            expect_to_server(lambda frame: frame["method"] == "server/discover"),
            server(error("dragoman-discover-1", -32601)),
            expect_to_client(an_error(0, -32602, "2026-07-28", "per-request era")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


def test_a_server_that_dies_of_its_rejection_is_started_once_more() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(error(0, -32602, "Unsupported protocol version", supported=[A])),
            offers(A, None),
            server_closes(),
            time_passes(0.05),
            server_restarts(),
            offers(A, None),
            server(initialized(A, key="dragoman-initialize-2")),
            answers(D),
        ]
    )


def test_a_server_that_dies_twice_fails_the_session() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(error(0, -32602, "Unsupported protocol version", supported=[A])),
            offers(A, None),
            server_closes(),
            time_passes(0.05),
            server_restarts(),
            offers(A, None),
            server_closes(),
            expect_to_client(an_error(0, -32000, "server has closed")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_a_silent_death_is_not_retried() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server_closes(),
            expect_to_client(an_error(0, -32000, "server has closed")),
            expect_end(Outcome.SERVER_CLOSED),
        ]
    )


def test_an_error_of_another_kind_passes_and_the_client_may_ask_again(caplog: pytest.LogCaptureFixture) -> None:
    refusal = b'{"jsonrpc":"2.0", "id":0,"error":{"code":-32603,"message":"no API key"}}\n'
    hold(
        [
            client(initialize(D)),
            client(request(1, "tools/list")),
            offers(D),
            server(refusal),
            expect_to_client(refusal),
            expect_to_client(an_error(1, -32000, "initialize was refused")),
            client(request(3, "tools/list")),  # nothing that it could wait for is under way
            expect_to_client(an_error(3, -32000, "initialize was refused: no API key")),
            client(initialize(D, key=2)),
            offers(D, 2),
            server(initialized(D, 2)),
            answers(D),
        ]
    )
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["the server refused initialize: no API key (-32603)"]


def test_an_error_without_id_is_taken_for_the_answer_to_initialize() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(error(None, -32700, "what?")),
            expect_to_client(error(0, -32700, "what?")),
            client_closes(),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":0,"result":"yes"}\n',
        b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion" "2025-11-25"}}\n',
        b'{"jsonrpc":"2.0","id":0,"error":["no"]}\n',
        b'{"jsonrpc":"1.0","id":0,"result":{}}\n',
    ],
)
def test_a_garbled_answer_to_initialize_fails_the_session(answer: bytes) -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            server(answer),
            expect_to_client(an_error(0, -32603, "initialize")),
            expect_end(Outcome.INITIALIZATION_FAILED),
        ]
    )


def test_requests_wait_until_the_session_is_open_and_keep_their_order() -> None:
    changed = notification("notifications/roots/list_changed")
    hold(
        [
            client(request(1, "tools/list")),
            client(initialize(D)),
            offers(D),
            client(request(2, "prompts/list")),
            client(changed),
            server(initialized(D)),
            answers(D),
            client(request(3, "resources/list")),
            client(READY),
            expect_to_server(READY),
            expect_to_server(request(1, "tools/list")),
            expect_to_server(request(2, "prompts/list")),
            expect_to_server(changed),
            expect_to_server(request(3, "resources/list")),
        ]
    )


def test_a_script_piped_in_at_once_is_served_to_its_end() -> None:
    hold(
        [
            client(initialize(A)),
            client(READY),
            client(request(1, "tools/list")),
            client_closes(),
            offers(A),
            server(initialized(D)),
            answers(A),
            expect_to_server(READY),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_queued_request_can_be_cancelled() -> None:
    hold(
        [
            client(initialize(D)),
            offers(D),
            client(request("a", "tools/list")),
            client(notification("notifications/cancelled", requestId="a")),
            client(notification("notifications/cancelled", requestId="unknown")),
            client(notification("notifications/cancelled")),
            server(initialized(D)),
            answers(D),
            client(READY),
            expect_to_server(READY),
        ]
    )


def test_initialisation_that_takes_too_long_fails_all_that_waits() -> None:
    hold(
        [
            client(initialize(D)),
            client(request(1, "tools/list")),
            offers(D),
            expect_to_client(an_error(0, -32000, "timed out after 0.05 s", "server's answer", "InitializationTimeout")),
            expect_to_client(an_error(1, -32000, "timed out", "'offered': '2025-11-25'")),
            expect_end(Outcome.INITIALIZATION_TIMED_OUT),
        ],
        init_timeout_s=0.05,
    )


def test_requests_before_an_initialize_that_never_comes_time_out() -> None:
    hold(
        [
            client(request(1, "tools/list")),
            expect_to_client(an_error(1, -32000, "waiting for the client's initialize")),
            expect_end(Outcome.INITIALIZATION_TIMED_OUT),
        ],
        init_timeout_s=0.05,
    )


def test_requests_before_an_initialized_that_never_comes_time_out_and_the_session_stays() -> None:
    hold(
        [
            *opening(D, D)[:-2],
            client(request(1, "tools/list")),
            expect_to_client(an_error(1, -32000, "waiting for the client's notifications/initialized")),
            client(READY),
            expect_to_server(READY),
        ],
        init_timeout_s=0.05,
    )


def test_ping_is_always_answered() -> None:
    hold(
        [
            client(request("p1", "ping")),
            expect_to_client(result("p1", {})),
            server(request(5, "ping")),
            expect_to_server(result(5, {})),
            client(initialize(D)),
            offers(D),
            client(request("p2", "ping")),
            expect_to_client(result("p2", {})),
            server(request(6, "ping")),
            expect_to_server(result(6, {})),
        ]
    )


def test_log_messages_pass_before_the_session_is_open() -> None:
    message = notification("notifications/message", level="info", data="starting")
    hold(
        [
            server(message),
            expect_to_client(message),
            client(initialize(A)),
            offers(A),
            server(message),
            expect_to_client(message),
            server(initialized(D)),
            answers(A),
            server(message),
            expect_to_client(message),
        ]
    )


def test_server_requests_wait_until_the_session_is_open() -> None:
    hold(
        [
            client(initialize(D, roots={})),
            offers(D, roots={}),
            server(request(1, "roots/list")),
            server(initialized(D)),
            answers(D),
            client(READY),
            expect_to_server(READY),
            expect_to_client(request(1, "roots/list")),
        ]
    )


def test_the_legacy_name_of_initialized_is_accepted_and_never_sent() -> None:
    steps = [*opening(A, D)[:-2], client(notification("initialized")), expect_to_server(READY)]
    hold([*steps, client(notification("initialized")), expect_to_server(READY)])


def test_the_legacy_name_of_initialized_is_not_accepted_without_its_rule() -> None:
    rules = DEFAULT_RULES - {"legacy-initialized-name"}
    legacy = notification("initialized")
    steps = [*opening(A, A)[:-2], client(legacy), client(READY), expect_to_server(READY), expect_to_server(legacy)]
    hold(steps, rules=rules)


def test_initialize_again_under_the_same_id_does_not_end_the_first() -> None:
    hold(
        [
            client(initialize(A)),
            offers(A),
            client(initialize(A)),
            expect_to_client(an_error(None, -32600, "initialize")),
            server(initialized(A)),
            answers(A),
        ]
    )


def test_initialize_as_a_notification_is_refused() -> None:
    frame = initialize(A)
    del frame["id"]
    hold([client(frame), expect_to_client(an_error(None, -32600, "initialize"))])


def test_an_initialize_that_cannot_be_read_is_answered() -> None:
    broken = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities" {}}}\n'
    hold([client(broken), expect_to_client(an_error(None, -32700, "not JSON"))])


def test_a_client_of_both_eras_may_open_a_session_after_all() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    hold(
        [
            client(request(1, "server/discover", _meta=meta)),
            expect_to_client(an_error(1, -32022, "2026-07-28", D, "'requested': '2027-01-01'")),
            *opening(D, D),
        ]
    )


def test_notifications_and_responses_before_initialize_are_dropped() -> None:
    hold([client(READY), client(result(1, {})), client(b"[]\n"), *opening_after_batch()])


def opening_after_batch() -> list[Step]:
    return [expect_to_client(an_error(None, -32600, "batch")), *opening(D, D)]


def test_too_many_early_requests_are_refused() -> None:
    steps = [client(request(n, "tools/list")) for n in range(300)]
    refused = [expect_to_client(an_error(n, -32000, "too many")) for n in range(256, 300)]
    hold([*steps, *refused, client(notification("notifications/x")), client_closes(), *closed_early()])


def closed_early() -> list[Step]:
    return [
        *(expect_to_client(an_error(n, -32000, "without sending initialize")) for n in range(256)),
        expect_end(Outcome.CLIENT_CLOSED),
    ]


def test_an_initialize_without_params_is_given_the_benefit_of_the_doubt() -> None:
    hold(
        [
            client({"jsonrpc": "2.0", "id": 1, "method": "initialize"}),
            expect_to_server(lambda frame: frame["params"]["protocolVersion"] == D),
        ]
    )


def test_an_initialize_with_params_of_the_wrong_type_is_answered() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": [1]}
    hold([client(frame), expect_to_client(an_error(1, -32600, "params"))])


def test_an_early_request_with_params_of_the_wrong_type_waits_for_the_server_to_judge() -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}
    hold([client(frame), *opening(D, D), expect_to_server(frame)])


@pytest.mark.parametrize("asked", [A, D])
def test_a_second_initialize_is_answered_as_the_first_was(asked: str) -> None:
    """A gateway has opened the session, and hands on what its client sends; servers on SDKs answer that."""
    again = [
        client(initialize(asked, key="again", sampling={})),
        expect_to_client(initialized(C, "again", tools={})),
    ]
    hold(
        [
            *opening(C, C, server_has=["tools"])[:-2],
            *again,
            client(READY),
            expect_to_server(READY),
            *again,
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
        ]
    )


def test_an_initialize_before_the_answer_to_the_first_is_refused() -> None:
    hold(
        [
            client(initialize(C)),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            client(initialize(C, key=1)),
            expect_to_client(an_error(1, -32600, "first of its session")),
            server(initialized(C)),
            answers(C),
        ]
    )


@pytest.mark.parametrize(
    ("silent_s", "said"),
    [(6.0, ["slow has not answered for 5 s; still waiting, because it may be starting"]), (4.0, [])],
)
def test_the_log_says_once_that_a_silent_server_is_waited_for(
    caplog: pytest.LogCaptureFixture, silent_s: float, said: list[str]
) -> None:
    asked = [client(initialize(C)), expect_to_server(lambda frame: frame["method"] == "initialize")]
    hold(
        [*asked, the_clock_is_put_forward(silent_s), server(initialized(C)), answers(C), the_clock_is_put_forward(6.0)],
        server_name="slow",
    )
    assert [one.getMessage() for one in caplog.records if one.name == "dragoman.waiting"] == said


def test_no_timer_runs_once_the_session_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs makes each turn of the event loop dearer, and so each call."""
    started: list[tuple[Any, asyncio.TimerHandle]] = []
    start = IdleClockLoop.call_at

    def call_at(loop: IdleClockLoop, when: float, callback: Any, *args: Any, **context: Any) -> asyncio.TimerHandle:
        timer = start(loop, when, callback, *args, **context)
        started.append((callback, timer))
        return timer

    def runs_none(_: Any) -> bool:
        ours = [timer for callback, timer in started if callback.__module__.startswith("dragoman")]
        return bool(ours) and all(timer.cancelled() for timer in ours)

    monkeypatch.setattr(IdleClockLoop, "call_at", call_at)
    hold(
        [
            *opening(C, C, server_has=["tools"]),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": []})),
            expect_to_client(runs_none),
        ]
    )
