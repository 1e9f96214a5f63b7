"""Frames in an order that no good peer would choose, between a client without a handshake and a server with one."""

from __future__ import annotations

import pytest

from tests.proxy.conversation import client, expect_to_client, expect_to_server, result, server, time_passes
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, Client
from tests.proxy.test_per_request_tasks import TASK, begin_at_tasks, call, creates, elicit, fetches
from tests.proxy.validity import hold


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_call_that_becomes_a_task_after_its_server_has_asked_goes_on(asked_first: bool) -> None:
    """Before its client is asked, and while it is to come back."""
    peer = Client()
    asked = peer.is_asked("a", **{"question-1": "Who?"})
    becomes = [server(result(2, {"task": TASK})), expect_to_server(fetches)]
    hold(
        [
            *begin_at_tasks("required"),
            expect_to_server(creates),
            server(elicit(7)),
            *([asked, *becomes] if asked_first else [*becomes, asked]),
            time_passes(0.3),
            client(lambda: call("b", inputResponses={"question-1": ACCEPTED}, requestState=peer.state)),
            expect_to_server(result(7, ACCEPTED)),
            server(result(3, DONE)),
            expect_to_client(result("b", DONE_NEW)),
        ],
        questions="park",
    )
