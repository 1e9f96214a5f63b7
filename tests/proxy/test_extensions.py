"""An extension without a conversion of its own is negotiated by the two peers, whatever their revisions."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy import conversation, per_request, test_per_request
from tests.proxy.conversation import (
    READY,
    Step,
    client,
    expect_to_client,
    expect_to_server,
    initialize,
    initialized,
    request,
    result,
    server,
)
from tests.proxy.per_request import IDENTITY, complete, discovered
from tests.proxy.validity import hold

CLIENT_HAS = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
SERVER_HAS = {"io.modelcontextprotocol/ui": {}, "com.example/x": {"level": 2}}
PAGE = {"ui": {"resourceUri": "ui://weather/dash"}}
TOOL = {"name": "weather", "inputSchema": {"type": "object"}, "_meta": PAGE}
CONTENTS = [{"uri": "ui://weather/dash", "mimeType": "text/html", "text": "<p>", "_meta": {"ui": {"csp": {}}}}]


def lists_and_reads(ask: Any, answer: Any, hears: Any, is_answered: Any) -> list[Step]:
    """A tool and its page come with the metadata that belongs to the extension."""
    return [
        client(ask(1, "tools/list")),
        expect_to_server(hears("tools/list")),
        server(answer(1, tools=[TOOL])),
        expect_to_client(is_answered(1, "tools", [TOOL])),
        client(ask(2, "resources/read", uri="ui://weather/dash")),
        expect_to_server(hears("resources/read")),
        server(answer(2, contents=CONTENTS)),
        expect_to_client(is_answered(2, "contents", CONTENTS)),
    ]


def is_called(method: str) -> Any:
    return lambda frame: frame["method"] == method


def has(key: Any, member: str, items: list[Any]) -> Any:
    """Match a result with these items, to which a repair rule may have added a name."""

    def matches(frame: Any) -> bool:
        found = frame["result"][member]
        return bool(frame["id"] == key and [{**item, **one} for item, one in zip(found, items, strict=True)] == found)

    return matches


@pytest.mark.parametrize(("one", "other"), list(itertools.product(HANDSHAKE_REVISIONS, repeat=2)))
def test_among_revisions_with_a_handshake(one: str, other: str) -> None:
    conversation.hold(
        [
            client(initialize(one, extensions=CLIENT_HAS)),
            expect_to_server(lambda frame: frame["params"]["capabilities"]["extensions"] == CLIENT_HAS),
            server(initialized(other, extensions=SERVER_HAS, tools={}, resources={})),
            expect_to_client(lambda frame: frame["result"]["capabilities"]["extensions"] == SERVER_HAS),
            client(READY),
            expect_to_server(READY),
            *lists_and_reads(request, lambda key, **members: result(key, members), is_called, has),
        ]
    )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_with_a_handshake_before_a_server_without(revision: str) -> None:
    def is_asked(method: str) -> Any:
        def matches(frame: Any) -> bool:
            told = frame["params"]["_meta"][per_request.META + "clientCapabilities"]
            return frame["method"] == method and bool(told == {"extensions": CLIENT_HAS})

        return matches

    def answers(key: Any, **members: Any) -> dict[str, Any]:
        return complete(key, **members, ttlMs=0, cacheScope="private", _meta=IDENTITY)

    conversation.hold(
        [
            client(initialize(revision, extensions=CLIENT_HAS)),
            expect_to_server(is_called("initialize")),
            server({"jsonrpc": "2.0", "id": 0, "error": per_request.NO_HANDSHAKE}),
            expect_to_server(is_called("server/discover")),
            server(discovered("dragoman-discover-1", extensions=SERVER_HAS, tools={}, resources={})),
            expect_to_client(lambda frame: frame["result"]["capabilities"]["extensions"] == SERVER_HAS),
            client(READY),
            *lists_and_reads(request, answers, is_asked, has),
        ]
    )


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_without_a_handshake_before_a_server_with_one(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    def asks(key: Any, method: str, **params: Any) -> dict[str, Any]:
        return test_per_request.asks(key, method, has={"extensions": CLIENT_HAS}, **params)

    opened = test_per_request.opening(revision, extensions=SERVER_HAS, tools={}, resources={})
    opened[2] = expect_to_server(lambda frame: frame["params"]["capabilities"] == {"extensions": CLIENT_HAS})
    hold(
        [
            client(asks("a", "server/discover")),
            *opened,
            expect_to_client(lambda frame: SERVER_HAS.items() <= frame["result"]["capabilities"]["extensions"].items()),
            *lists_and_reads(asks, lambda key, **members: result(key, members), is_called, has),
        ]
    )
    assert "is not told of" not in caplog.text
