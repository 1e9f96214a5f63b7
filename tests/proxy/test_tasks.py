"""Tasks between two peers of 2025-11-25, and between two of 2026-07-28 that have the extension: nothing is touched."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS, era, facts
from tests.proxy.conversation import (
    Step,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    opening,
    server,
)
from tests.proxy.test_per_request import NEW, asks
from tests.proxy.test_per_request_relay import opening as opening_newer

OLDER = next(revision for revision in HANDSHAKE_REVISIONS if "tasks" in facts(revision).server_capabilities)
RELATED = b'"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}'


def line(text: bytes) -> bytes:
    """A line as no encoder of ours would write it."""
    return b'{ "jsonrpc":"2.0", ' + text + b"}\n"


def to_server(text: bytes) -> list[Step]:
    return [client(line(text)), expect_to_server(line(text))]


def to_client(text: bytes) -> list[Step]:
    return [server(line(text)), expect_to_client(line(text))]


def test_tasks_of_the_server_pass_as_bytes() -> None:
    hold(
        [
            *opening(OLDER, OLDER, ["elicitation"], ["tools", "tasks"]),
            *to_server(b'"id":1,"method":"tools/call","params":{"name":"x","task":{"ttl":60000}}'),
            *to_client(b'"id":1,"result":{"task":{"taskId":"t","status":"working","ttl":null}}'),
            *to_server(b'"id":2,"method":"tasks/result","params":{"taskId":"t"}'),
            *to_client(b'"method":"notifications/tasks/status","params":{"taskId":"t","status":"input_required"}'),
            *to_client(b'"id":7,"method":"elicitation/create","params":{"message":"Who?",' + RELATED + b"}"),
            *to_server(b'"id":7,"result":{"action":"decline",' + RELATED + b"}"),
            *to_server(b'"id":3,"method":"tasks/get","params":{"taskId":"t"}'),
            *to_client(b'"id":3,"result":{"taskId":"t","status":"working","ttl":null}'),
            *to_server(b'"id":4,"method":"tasks/list"'),
            *to_client(b'"id":4,"result":{"tasks":[]}'),
            *to_server(b'"id":5,"method":"tasks/cancel","params":{"taskId":"t"}'),
            *to_client(b'"id":5,"error":{"code":-32602,"message":"it has ended"}'),
            *to_client(b'"id":2,"result":{"content":[],' + RELATED + b"}"),
        ]
    )


def test_tasks_of_the_client_pass_as_bytes() -> None:
    hold(
        [
            *opening(OLDER, OLDER, ["elicitation", "tasks"], ["tools"]),
            *to_client(b'"id":7,"method":"elicitation/create","params":{"message":"Who?","task":{}}'),
            *to_server(b'"id":7,"result":{"task":{"taskId":"c","status":"working","ttl":null}}'),
            *to_client(b'"id":8,"method":"tasks/result","params":{"taskId":"c"}'),
            *to_server(b'"id":8,"result":{"action":"decline"}'),
        ]
    )


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_requests_of_the_extension_pass_between_two_that_have_it(method: str) -> None:
    assert era(NEW) == "per_request"

    def passes(frame: Any) -> bool:
        return bool(frame["method"] == method and frame["params"]["taskId"] == "t")

    hold(
        [
            client(asks("a", method, taskId="t")),
            *opening_newer(),
            expect_to_server(passes),
            server(error("a", -32602, "no such task")),
            expect_to_client(error("a", -32602, "no such task")),
        ]
    )
