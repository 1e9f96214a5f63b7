"""What crosses an open session, in both directions, for peers of equal and of different revisions."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    client,
    error,
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
)

A, B, C, D = HANDSHAKE_REVISIONS
PAIRS = [(one, other) for one in HANDSHAKE_REVISIONS for other in HANDSHAKE_REVISIONS]
CAPABILITIES = ("roots", "sampling", "elicitation")

CLIENT_REQUESTS = [
    ("ping", {}, {}),
    ("tools/list", {"cursor": "c1"}, {"tools": [], "nextCursor": "c2"}),
    ("tools/call", {"name": "add", "arguments": {"a": 1}}, {"content": [{"type": "text", "text": "2"}]}),
    ("resources/list", {}, {"resources": []}),
    ("resources/templates/list", {}, {"resourceTemplates": []}),
    ("resources/subscribe", {"uri": "file:///a"}, {}),
    ("resources/unsubscribe", {"uri": "file:///a"}, {}),
    ("prompts/list", {}, {"prompts": []}),
    ("prompts/get", {"name": "p"}, {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}),
    ("logging/setLevel", {"level": "debug"}, {}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}},
        {"completion": {"values": ["v1"]}},
    ),
]
SERVER_REQUESTS = [
    ("ping", {}, {}),
    ("roots/list", {}, {"roots": [{"uri": "file:///home"}]}),
    (
        "sampling/createMessage",
        {"messages": [{"role": "user", "content": {"type": "text", "text": "q"}}], "maxTokens": 9},
        {"role": "assistant", "content": {"type": "text", "text": "a"}, "model": "m"},
    ),
]
CLIENT_NOTIFICATIONS = [
    ("notifications/roots/list_changed", {}),
    ("notifications/progress", {"progressToken": "t", "progress": 0.5}),
    ("notifications/cancelled", {"requestId": 99, "reason": "late"}),
]
SERVER_NOTIFICATIONS = [
    ("notifications/message", {"level": "info", "data": {"deep": [1, 2.0, None]}}),
    ("notifications/progress", {"progressToken": 7, "progress": 1, "total": 2}),
    ("notifications/resources/updated", {"uri": "file:///a"}),
    ("notifications/resources/list_changed", {}),
    ("notifications/tools/list_changed", {}),
    ("notifications/prompts/list_changed", {}),
    ("notifications/cancelled", {"requestId": "gone"}),
]


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
def test_everything_crosses_in_both_directions(client_revision: str, server_revision: str) -> None:
    steps = opening(client_revision, server_revision, CAPABILITIES)
    for key, (method, params, answer) in enumerate(CLIENT_REQUESTS, 1):
        steps += [client(request(key, method, **params)), expect_to_server(request(key, method, **params))]
        steps += [server(result(key, answer)), expect_to_client(result(key, answer))]
    for key, (method, params, answer) in enumerate(SERVER_REQUESTS, 1):
        steps += [server(request(f"s{key}", method, **params)), expect_to_client(request(f"s{key}", method, **params))]
        steps += [client(result(f"s{key}", answer)), expect_to_server(result(f"s{key}", answer))]
    for method, params in CLIENT_NOTIFICATIONS:
        steps += [client(notification(method, **params)), expect_to_server(notification(method, **params))]
    for method, params in SERVER_NOTIFICATIONS:
        steps += [server(notification(method, **params)), expect_to_client(notification(method, **params))]
    hold(steps)


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
def test_errors_cross_in_both_directions(client_revision: str, server_revision: str) -> None:
    hold(
        [
            *opening(client_revision, server_revision, CAPABILITIES),
            client(request(1, "tools/call", name="x")),
            expect_to_server(request(1, "tools/call", name="x")),
            server(error(1, -32602, "unknown tool", tool="x")),
            expect_to_client(error(1, -32602, "unknown tool", tool="x")),
            server(request(1, "roots/list")),
            expect_to_client(request(1, "roots/list")),
            client(error(1, -32603, "broken")),
            expect_to_server(error(1, -32603, "broken")),
        ]
    )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_equal_revisions_pass_the_very_bytes(revision: str) -> None:
    opening_line = (
        b'{ "method":"initialize","id" : 0,"params":{"capabilities":{},"protocolVersion":"%s","clientInfo":'
        b'{"name":"c","version":"1","extra":18446744073709551617}} , "jsonrpc" : "2.0"}\r\n' % revision.encode()
    )
    answer = (
        b'{"result":{"capabilities":{"x":{}},"protocolVersion":"%s","serverInfo":{"name":"s","version":"1"}},'
        b'"jsonrpc":"2.0","id":0}\n' % revision.encode()
    )
    ready = b'{"method":"notifications/initialized" ,"jsonrpc":"2.0"}\n'
    call = b'{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"name":"\\u0061","n":1.50,"n":1e2}}\n'
    reply = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"x":"\\ud800","y":123456789012345678901234567890}}\n'
    hold(
        [
            client(opening_line),
            expect_to_server(opening_line),
            server(answer),
            expect_to_client(answer),
            client(ready),
            expect_to_server(ready),
            client(call),
            expect_to_server(call),
            server(reply),
            expect_to_client(reply),
        ]
    )


@pytest.mark.parametrize(("client_revision", "server_revision"), [(A, D), (D, A), (C, C)])
def test_ids_keep_type_and_value(client_revision: str, server_revision: str) -> None:
    steps = opening(client_revision, server_revision)
    for key in (1, "1", "", "é", 'a"b', 2**70, -3, "\ud800"):
        steps += [client(request(key, "tools/list")), expect_to_server(request(key, "tools/list"))]
        steps += [server(result(key, {"tools": []})), expect_to_client(result(key, {"tools": []}))]
    hold(steps)


def test_one_and_the_string_one_are_two_requests() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            client(request("1", "resources/read", uri="file:///a")),
            expect_to_server(request(1, "tools/list")),
            expect_to_server(request("1", "resources/read", uri="file:///a")),
            server(result("1", {"contents": [{"uri": "file:///a", "text": "t", "name": "a"}]})),
            expect_to_client(result("1", {"contents": [{"uri": "file:///a", "text": "t"}]})),
            server(result(1, {"tools": [{"name": "t", "title": "T", "inputSchema": {"type": "object"}}]})),
            expect_to_client(result(1, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})),
        ]
    )


def test_progress_tokens_cross_with_their_requests() -> None:
    call = request(1, "tools/call", name="slow", _meta={"progressToken": "p-1"})
    progress = notification("notifications/progress", progressToken="p-1", progress=1, message="half")
    hold(
        [
            *opening(A, D),
            client(call),
            expect_to_server(call),
            server(progress),
            expect_to_client(notification("notifications/progress", progressToken="p-1", progress=1)),
            server(result(1, {"content": []})),
            expect_to_client(result(1, {"content": []})),
        ]
    )


def test_the_answer_to_a_cancelled_request_still_crosses() -> None:
    cancel = notification("notifications/cancelled", requestId=1)
    answer = result(1, {"content": [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]})
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/call", name="slow")),
            expect_to_server(request(1, "tools/call", name="slow")),
            client(cancel),
            expect_to_server(cancel),
            server(answer),
            expect_to_client(result(1, {"content": [{"type": "text", "text": "[Audio content: audio/wav]"}]})),
        ]
    )


def test_responses_nobody_asked_for_are_dropped_and_counted() -> None:
    proxy = hold(
        [
            *opening(A, D),
            server(result(5, {})),
            client(result("x", {})),
            client(request(1, "ping")),
            expect_to_server(request(1, "ping")),
            server(result("1", {})),
            server(result(1, {})),
            expect_to_client(result(1, {})),
            server(result(1, {})),
        ]
    )
    assert proxy.counters.unmatched == 4


def test_a_request_id_in_use_is_refused_without_ending_the_first() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            client(request(1, "ping")),
            expect_to_client(lambda frame: frame["id"] is None and frame["error"]["code"] == -32600),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
            client(request(1, "ping")),
            expect_to_server(request(1, "ping")),
        ]
    )


@pytest.mark.parametrize("server_revision", [A, D])
@pytest.mark.parametrize(("asked", "answered"), [("3", 3), (3, "3")])
def test_an_id_that_came_back_as_another_type_is_restored(asked: Any, answered: Any, server_revision: str) -> None:
    hold(
        [
            *opening(A, server_revision),
            client(request(asked, "ping")),
            expect_to_server(request(asked, "ping")),
            server(result(answered, {})),
            expect_to_client(result(asked, {})),
        ]
    )


def test_an_id_of_another_type_is_no_answer_without_the_rule() -> None:
    hold(
        [
            *opening(A, D),
            client(request("3", "ping")),
            expect_to_server(request("3", "ping")),
            server(result(3, {})),
            server(result("3", {})),
            expect_to_client(result("3", {})),
        ],
        rules=frozenset(),
    )


def test_an_initialize_that_is_answered_under_another_type_is_answered_under_its_own() -> None:
    hello = {**initialize(A), "id": "0"}
    answer = {**initialized(A), "id": "0"}
    hold(
        [
            client(hello),
            expect_to_server(hello),
            server(initialized(A)),
            expect_to_client(answer),
        ]
    )
