"""On which call's stream a server's request or notification goes out, where its transport does not say."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.batches import Batch
from dragoman.core.calls import Call, Calls, read_token
from dragoman.core.envelope import Frame, classify
from dragoman.core.exact_json import encode_line
from dragoman.core.streams import ANNOUNCED, NOBODY, place
from tests.proxy.conversation import notification, request

LOG = notification("notifications/message", level="info", data="x")


def frame_of(body: Any, stream: bytes | None = None) -> Frame:
    frame = classify(encode_line(body), body, stream)
    assert isinstance(frame, Frame)
    return frame


def table(*bodies: Any, batch: Batch | None = None) -> Calls:
    """Give requests that wait."""
    calls = Calls()
    for body in bodies:
        frame = frame_of(body)
        call = Call(frame.key or b"", frame.method or "", batch)
        assert calls.add(call) is None
        if (token := read_token(frame)) is not None:
            calls.note_token(call, token)
    return calls


def call(key: Any, token: Any = None) -> Any:
    return request(key, "tools/call", name="t", **({} if token is None else {"_meta": {"progressToken": token}}))


def test_the_only_call_gets_what_is_said() -> None:
    assert place(frame_of(LOG), table(call(2)), Calls()).stream == b"2"


def test_for_a_proxy_before_several_clients_the_only_call_is_no_proof() -> None:
    assert place(frame_of(LOG), table(call(2)), Calls(), guesses=False).stream == NOBODY
    assert place(frame_of(LOG, b"9"), table(call(2)), Calls(), guesses=False).stream == b"9"
    told = frame_of(notification("notifications/progress", progressToken="a", progress=1))
    assert place(told, table(call(2, "a"), call(3)), Calls(), guesses=False).stream == b"2"


def test_what_one_of_several_servers_says_is_about_a_call_that_it_has() -> None:
    question = frame_of(request("q", "elicitation/create", message="m"))
    calls = table(call(2), call(3))
    assert place(question._replace(source=("a", b"3")), calls, Calls()).stream == b"3"
    assert place(question._replace(source=("a", b"2", b"3")), calls, Calls()).stream is None


def test_of_several_calls_none_is_guessed() -> None:
    assert place(frame_of(LOG), table(call(2), call(3)), Calls()).stream is None


def test_the_calls_of_one_array_have_one_stream() -> None:
    assert place(frame_of(LOG), table(call(2), call(3), batch=Batch(2)), Calls()).stream in (b"2", b"3")


@pytest.mark.parametrize("method", sorted(ANNOUNCED))
def test_news_belong_to_no_call(method: str) -> None:
    assert place(frame_of(notification(method)), table(call(2)), Calls()).stream is None


def test_what_the_transport_says_stands() -> None:
    assert place(frame_of(LOG, b"9"), table(call(2)), Calls()).stream == b"9"


@pytest.mark.parametrize(("token", "expected"), [("a", b"2"), (7, b"3"), ("7", None)])
def test_progress_goes_by_its_token(token: Any, expected: bytes | None) -> None:
    told = frame_of(notification("notifications/progress", progressToken=token, progress=1))
    assert place(told, table(call(2, "a"), call(3, 7)), Calls()).stream == expected


def test_progress_of_a_request_that_is_over_belongs_to_no_call() -> None:
    calls = table(call(2, "a"), call(3, "b"))
    calls.take(b"2")
    told = frame_of(notification("notifications/progress", progressToken="a", progress=1))
    assert place(told, calls, Calls()).stream is None


def test_a_cancellation_goes_where_its_request_went() -> None:
    calls, asked = table(call(2)), table(question := request("q", "elicitation/create", message="m"))
    assert place(frame_of(question), calls, asked).stream == b"2"
    calls.add(Call(b"3", "tools/call"))
    asked.cancel(b'"q"')
    told = frame_of(notification("notifications/cancelled", requestId="q"))
    assert place(told, calls, asked).stream == b"2"


def test_a_token_is_forgotten_with_its_request() -> None:
    for end in (lambda calls: calls.take(b"2"), lambda calls: calls.cancel(b"2"), lambda calls: calls.take_all()):
        calls = table(call(2, "a"))
        end(calls)
        assert not calls.tokens


def test_a_token_that_is_used_again_belongs_to_the_newer_request() -> None:
    calls = table(call(2, "a"), call(3, "a"))
    calls.take(b"2")
    told = frame_of(notification("notifications/progress", progressToken="a", progress=1))
    assert place(told, calls, Calls()).stream == b"3"
