"""What the client is asked in a session that another instance had has an id that nobody has given out there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.core.envelope import Frame, classify
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.marking import Marking
from dragoman.transports.http.streamable_session import StreamableSession
from dragoman.transports.http.streams import StreamConnection
from tests.transports.http.stage import on_loop

QUESTION = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}


def frame_of(body: Any) -> Frame:
    found = classify(json.dumps(body).encode(), body)
    assert isinstance(found, Frame)
    return found


def said(frame: Frame | None) -> Any:
    return None if frame is None else json.loads(frame.raw)


def marked(key: Any) -> Any:
    return said(Marking("a1").mark(frame_of({**QUESTION, "id": key})))["id"]


@pytest.mark.parametrize("key", [1, "1", "s0:1:1", 'a"b'])
def test_an_answer_comes_back_under_the_id_that_the_server_gave(key: Any) -> None:
    frame = Marking("a1").unmark(frame_of({**ANSWER, "id": marked(key)}))
    assert said(frame) == {**ANSWER, "id": key}


@pytest.mark.parametrize("key", [1, "1", "dragoman-b2:1", "dragoman-a1:{"])
def test_an_answer_to_what_was_asked_elsewhere_is_for_nobody(key: Any) -> None:
    assert Marking("a1").unmark(frame_of({**ANSWER, "id": key})) is None


def test_a_cancellation_names_the_question_as_the_client_knows_it() -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "late"}}
    heard = said(Marking("a1").mark(frame_of(told)))
    assert heard["params"] == {"requestId": marked(1), "reason": "late"}


def test_what_the_client_asks_and_is_answered_passes_as_it_is() -> None:
    assert said(Marking("a1").unmark(frame_of(QUESTION))) == QUESTION
    assert said(Marking("a1").mark(frame_of(ANSWER))) == ANSWER


def test_an_array_keeps_what_is_for_somebody() -> None:
    answers = [{**ANSWER, "id": marked(7)}, ANSWER]
    assert said(Marking("a1").unmark(frame_of(answers))) == [{**ANSWER, "id": 7}]
    assert Marking("a1").unmark(frame_of([ANSWER])) is None


@on_loop
async def test_a_stream_of_another_instance_is_not_taken_for_one_of_here() -> None:
    before, here = StreamableSession(FrontConfig()), StreamableSession(FrontConfig(), "a1")
    for session in (before, here):
        session.stand(StreamConnection())
    assert before.resume("g1-0", StreamConnection())
    assert not here.resume("g1-0", StreamConnection())
    await here.close()
    await before.close()
