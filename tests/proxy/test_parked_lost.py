"""The server loses a call that waits for its client: who comes back to answer is told so, and nothing is left over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.conversation import (
    READY,
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    initialized,
    result,
    server,
    server_closes,
    server_restarts,
    time_passes,
)
from tests.proxy.test_per_request import OLD, asks
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, FORM, Client, begin, call, elicit
from tests.proxy.validity import hold
from tests.support.waiting import until
from tests.transports.upstream import stage
from tests.transports.upstream.stage import Reply, Request, on_loop
from tests.transports.upstream.test_sessions import Forgetful


def test_over_pipes_the_retry_is_told_that_the_server_was_lost() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            server_closes(),
            time_passes(1.0),
            server_restarts(),
            expect_to_server(lambda frame: frame["method"] == "initialize"),
            server(lambda: initialized(OLD, "dragoman-initialize")),
            expect_to_server(READY),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(2, -32000, "the server was lost")),
            peer.retries(3, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(3, -32602, "call-unknown")),
            client(call(4)),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
            server(result(2, DONE)),
            expect_to_client(result(4, DONE_NEW)),
        ],
        restarts=1,
    )


class Unaware(Forgetful):
    """Of questions about what it is, too."""

    async def serve(self, request: Request, reply: Reply) -> None:
        if request.rpc == "server/discover":
            unknown = {"code": -32601, "message": "unknown"}
            await reply.json({"jsonrpc": "2.0", "id": request.frame["id"], "error": unknown})
        else:
            await super().serve(request, reply)


@pytest.mark.parametrize("on_stream", [True, False])
@pytest.mark.parametrize("when", ["response", "tools/list"])
@on_loop
async def test_over_http_the_retry_is_told_that_the_session_is_gone(on_stream: bool, when: str) -> None:
    """Although the stream of the call is still open."""
    forgetful = Unaware(on_stream, when)
    async with stage.server(forgetful.serve) as url, stage.client(url, opened=False) as peer:
        peer.send(call(1))
        asked: dict[str, Any] = (await peer.answer(1))["result"]
        if when == "tools/list":
            peer.send(asks(2, "tools/list", has=FORM))
            assert "result" in await peer.answer(2)
        again = {"inputResponses": {"question-1": {"action": "decline"}}, "requestState": asked["requestState"]}
        peer.send(call(3, **again))
        error = (await peer.answer(3))["error"]
        assert error["code"] == -32000
        assert "its session is gone" in error["message"]
        await until(lambda: forgetful.open_calls == 0)
        peer.send(call(4, **again))
        assert (await peer.answer(4))["error"]["data"]["reason"] == "call-unknown"
    assert set(forgetful.responses) <= {"s1"}
