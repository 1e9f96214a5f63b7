"""What a server with a handshake is at work on: tables that do not grow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame
from dragoman.core.switch.to_handshake.works import Works


def test_questions_of_our_own_that_nobody_answers_do_not_pile_up() -> None:
    sent: list[Frame] = []
    works = Works(cast(UpstreamEdge, SimpleNamespace(send=sent.append)), restore_ids=True, label="x")
    answered: list[Any] = []
    for _ in range(5000):
        works.ask("tasks/cancel", {"taskId": "t"}, answered.append)
    assert len(sent) == 5000
    assert works.take_answered(b"1") == (None, None)
    assert len(works.take_open()) == 4096
