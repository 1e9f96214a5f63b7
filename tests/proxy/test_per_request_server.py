"""A client of any revision with a handshake works with a server that has none."""

from __future__ import annotations

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import client, expect_to_client, expect_to_server, hold, request, result, server
from tests.proxy.per_request import IDENTITY, complete, opening, stamped


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
