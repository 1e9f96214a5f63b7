"""Questions of one call: which are open, under which keys, and which may not be put."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.asking import CallOwner, OpenQuestions, RefusedQuestion
from dragoman.core.rules.state import Binding
from dragoman.errors import RemoteProtocolError

C, D = "2025-06-18", "2025-11-25"
ALL = {"elicitation": {}, "roots": {}, "sampling": {}}


def asking(capabilities: Any = ALL, revision: str = D, most: int = 16) -> OpenQuestions:
    return OpenQuestions(CallOwner(Binding("files", "tools/call", "d"), capabilities, revision), most)


def test_no_answers_leave_everything_open() -> None:
    desk = asking()
    desk.add_question(b"7", "roots/list", None)
    assert desk.take_answers(None) == ([], ())
    assert len(desk) == 1


def test_none_of_the_answers_counts_where_one_is_malformed() -> None:
    desk = asking()
    desk.add_question(b"7", "roots/list", None)
    desk.add_question(b"8", "roots/list", None)
    with pytest.raises(RemoteProtocolError):
        desk.take_answers({"question-1": {"roots": []}, "question-2": 5})
    assert len(desk) == 2


@pytest.mark.parametrize(
    ("desk", "method", "params", "codes"),
    [
        (asking(), "tasks/get", {"taskId": "t"}, (-32601, None)),
        (asking({}), "roots/list", None, (-32601, None)),
        (asking(), "sampling/createMessage", {"messages": [], "maxTokens": 1, "tools": []}, (-32601, None)),
        (asking(), "elicitation/create", None, (-32602, -32603)),
        (asking(most=0), "roots/list", None, (-32603, -32603)),
    ],
)
def test_what_is_not_put_is_refused_to_the_server_and_may_end_the_call(
    desk: OpenQuestions, method: str, params: Any, codes: tuple[int, int | None]
) -> None:
    turned = desk.add_question(b"7", method, params)
    assert isinstance(turned, RefusedQuestion)
    assert (turned.reply.code, turned.error and turned.error.code) == codes
    assert len(desk) == 0
