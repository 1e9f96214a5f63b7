"""A tool that asks its client in a way that works in the other era alone: the failure says which option helps."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    READY,
    Step,
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
)
from tests.proxy.per_request import discovered
from tests.proxy.test_per_request import asks

D, NEWER = HANDSHAKE_REVISIONS[-1], "2026-07-28"
OLDER_HELPS, NEWER_HELPS = f"--server-revision {D}", f"--server-revision {NEWER}"
NO_CHANNEL = (
    "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests."
)
ASKS = (
    NO_CHANNEL,
    "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.",
    "Server-to-client requests are not available on protocol revision 2026-07-28: 'elicitation/create' cannot be sent.",
)
ANSWERS = (
    "Handler returned an invalid result",
    "Tool 'choose' returned an InputRequiredResult to request client input; this connection negotiated '2025-11-25'.",
    "Handler for tools/call returned an input-required result, but this request is served on 2025-11-25.",
)


def in_session(*more: Step) -> list[Step]:
    return [
        client(initialize(D)),
        expect_to_server(lambda frame: frame["method"] == "initialize"),
        server(initialized(D)),
        expect_to_client(initialized(D)),
        client(READY),
        expect_to_server(READY),
        client(request(1, "tools/call", name="choose", arguments={})),
        expect_to_server(lambda frame: frame["method"] == "tools/call"),
        *more,
    ]


def by_request(*more: Step) -> list[Step]:
    return [
        client(asks(1, "tools/call", name="confirm", arguments={})),
        expect_to_server(lambda frame: frame["method"] == "server/discover"),
        server(discovered("dragoman-discover-1", tools={})),
        expect_to_server(lambda frame: frame["method"] == "tools/call"),
        *more,
    ]


def failed(text: str, is_error: bool = True) -> dict[str, Any]:
    return result(1, {"content": [{"type": "text", "text": text}], "isError": is_error, "resultType": "complete"})


@pytest.mark.parametrize(
    ("conversation", "said", "helps"),
    [*((by_request, said, OLDER_HELPS) for said in ASKS), *((in_session, said, NEWER_HELPS) for said in ANSWERS)],
)
def test_an_error_that_says_so_names_the_option(
    conversation: Any, said: str, helps: str, caplog: pytest.LogCaptureFixture
) -> None:
    def tells(frame: Any) -> bool:
        message = frame["error"]["message"]
        return message.startswith(f"{said} (") and helps in message and frame["error"]["code"] == -32603

    hold(conversation(server(error(1, -32603, said)), expect_to_client(tells)))
    assert helps in caplog.text


@pytest.mark.parametrize("said", ASKS)
def test_a_tool_that_fails_so_names_the_option(said: str, caplog: pytest.LogCaptureFixture) -> None:
    def tells(frame: Any) -> bool:
        first, second = frame["result"]["content"]
        return bool(first["text"] == said and OLDER_HELPS in second["text"])

    hold(by_request(server(failed(said)), expect_to_client(tells)))
    assert OLDER_HELPS in caplog.text


@pytest.mark.parametrize(
    ("conversation", "answer"),
    [
        (in_session, error(1, -32600, NO_CHANNEL)),  # a server over HTTP without state: no revision helps
        (by_request, error(1, -32603, ANSWERS[0])),
        (by_request, error(1, -32603, f"{NO_CHANNEL} (another proxy says: {OLDER_HELPS})")),
        (by_request, failed(NO_CHANNEL, is_error=False)),
        (by_request, failed("the file is not there")),
    ],
)
def test_what_says_anything_else_passes_as_it_is(conversation: Any, answer: Any) -> None:
    hold(conversation(server(answer), expect_to_client(answer)))
