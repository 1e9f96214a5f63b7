"""A client whose requests each speak for themselves, at a server with a handshake."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman_spec import HANDSHAKE_REVISIONS, LATEST
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
    initialized,
    request,
    result,
    server,
)
from tests.proxy.validity import hold

NEW = "2026-07-28"
OLD = HANDSHAKE_REVISIONS[-1]
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"
SERVER = "io.modelcontextprotocol/serverInfo"
TASKS = {"io.modelcontextprotocol/tasks": {}}
IDENTITY = {SERVER: {"name": "test", "version": "1"}}


def asks(key: Any, method: str, *, has: Any = None, meta: Any = None, **params: Any) -> dict[str, Any]:
    """A request of the client."""
    metadata = {VERSION: NEW, CAPABILITIES: has or {}, **(meta or {})}
    return request(key, method, **params, _meta=metadata)


def asked_what_it_is(number: int = 1, code: int = -32601) -> list[Step]:
    """The server does not know the question."""
    return [
        expect_to_server(lambda frame: frame["method"] == "server/discover"),
        server(error(f"dragoman-discover-{number}", code)),
    ]


def settling() -> list[Step]:
    """A server whose client has roots may ask for them before anything else."""
    ping = "dragoman-ping"
    return [expect_to_server(lambda frame: (frame["method"], frame["id"]) == ("ping", ping)), server(result(ping, {}))]


def opening(revision: str = OLD, probe: int = 1, **server_has: Any) -> list[Step]:
    """The first request has the server opened, which is first asked whether it needs that."""
    return [
        *asked_what_it_is(probe),
        expect_to_server(lambda frame: frame["method"] == "initialize"),
        server(initialized(revision, '"dragoman-initialize"'[1:-1], **server_has)),
        expect_to_server(READY),
    ]


@pytest.mark.parametrize("second", [b"{}", b"5", b'"tools/call"'])
def test_a_request_with_two_methods_is_refused(second: bytes) -> None:
    meta = b'"_meta":{"%s":"%s","%s":{}}' % (VERSION.encode(), NEW.encode(), CAPABILITIES.encode())
    line = b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{%s},"method":%s}\n' % (meta, second)
    hold(
        [
            client(asks(1, "tools/list")),
            *opening(tools={}),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            client(line),
            expect_to_client(lambda frame: (frame["id"], frame["error"]["code"]) == (2, -32600)),
            server(result(1, {"tools": []})),
            expect_to_client(lambda frame: frame["id"] == 1),
        ]
    )


def test_a_server_is_introduced() -> None:
    def is_introduction(frame: Any) -> bool:
        found = frame["result"]
        return (
            frame["id"] == "a"
            and found["supportedVersions"][0] == LATEST
            and found["capabilities"] == {"tools": {"listChanged": True}, "extensions": TASKS}
            and found["_meta"] == IDENTITY
            and (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
        )

    hold(
        [
            client(asks("a", "server/discover")),
            *opening(tools={"listChanged": True}, tasks={}),
            expect_to_client(is_introduction),
        ]
    )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_tools_are_listed_and_called(revision: str) -> None:
    listed = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": IDENTITY}
    said = {"content": [{"type": "text", "text": "hello"}]}
    hold(
        [
            client(asks(1, "tools/list")),
            *opening(revision),
            expect_to_server(lambda frame: frame["method"] == "tools/list" and not frame.get("params")),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, listed)),
            client(asks("x", "tools/call", name="hello", arguments={"a": 1})),
            expect_to_server(request(2, "tools/call", name="hello", arguments={"a": 1})),
            server(result(2, said)),
            expect_to_client(result("x", {**said, "resultType": "complete", "_meta": IDENTITY})),
            client_closes(),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_no_principal_takes_all_places_of_a_shared_connection() -> None:
    hold(
        [
            client(asks(1, "tools/list")),
            *opening("2025-06-18"),
            client(asks(2, "tools/list")),
            client(asks(3, "tools/list")),
            client(asks(4, "tools/list")),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            expect_to_client(an_error(3, -32000, "2 requests")),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
        ],
        open_requests=4,
        whose={1: "Ann", 2: "Ann", 3: "Ann", 4: "Ben"},
    )
