"""Requests that nobody waits for, at a server without a handshake: whom its words without a name may reach."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.core.edges.per_request import PerRequestEdge, PerRequestLoan
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import classify, id_of
from dragoman.core.exact_json import encode_line
from tests.proxy.conversation import notification, result


class Asker:
    """Wants log messages, and keeps what it hears."""

    def __init__(self, owner: str) -> None:
        self.heard: list[Any] = []
        self.lent = PerRequestLoan("tools/call", owner, self.hear, self.hear, hears_logs=True)

    def hear(self, frame: Any) -> None:
        self.heard.append(frame.body)


@pytest.mark.parametrize(
    ("whose", "is_answered", "hears"), [("ann", False, True), ("ben", False, False), ("ben", True, True)]
)
def test_late_words_about_a_request_that_was_given_up_reach_its_owner_alone(
    whose: str, is_answered: bool, hears: bool
) -> None:
    upstream = SimpleNamespace(send=lambda frame: None, serve=lambda follower: None, takes_headers=False, revision=None)
    edge = PerRequestEdge(cast(UpstreamEdge, upstream))

    def says(frame: dict[str, Any]) -> None:
        edge.take_server(edge.upstream, classify(encode_line(frame), frame))

    first, second = Asker("ann"), Asker(whose)
    lent = edge.lend(first.lent, {"_meta": {}})
    edge.withdraw(lent)
    edge.lend(second.lent, {"_meta": {}})
    if is_answered:
        says(result(id_of(lent.key), {}))
    says(notification("notifications/message", level="info", data="of the first"))
    assert bool(second.heard) is hears
    assert first.heard == []
