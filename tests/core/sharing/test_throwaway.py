"""A fresh server for every request, without transports: what each of them and the session hear."""

from __future__ import annotations

from typing import Any

from dragoman.core.exact_json import decode, encode_line
from dragoman.core.sharing.throwaway import Deliveries, Phase, Run, Throwaways
from tests.proxy.conversation import an_error, error, initialize, initialized, notification, request, result
from tests.support.frames import cut_off
from tests.support.frames import heard as lines

REVISION = "2025-11-25"


def heard(deliveries: Deliveries) -> list[tuple[Run | None, Any]]:
    """Give what everybody hears; no frame says no more than that a run is over."""
    return [(run, decode(frame.raw)) for run, frame in deliveries if frame is not None]


def asks(machine: Throwaways, frame: Any) -> Run:
    """Let the session ask; give the run that is opened for it."""
    [(run, _)] = machine.receive(lines(encode_line(frame)))
    assert run is not None
    return run


def answers(machine: Throwaways, run: Run, *frames: Any) -> list[tuple[Run | None, Any]]:
    data = b"".join(frame if isinstance(frame, bytes) else encode_line(frame) for frame in frames)
    return heard(machine.receive_server(run, lines(data)))


def opened() -> Throwaways:
    machine = Throwaways()
    run = asks(machine, initialize(REVISION, key="i"))
    answers(machine, run, initialized(REVISION, "i"))
    return machine


def working(machine: Throwaways, frame: Any) -> Run:
    run = asks(machine, frame)
    answers(machine, run, initialized(REVISION, "i"))
    assert run.phase is Phase.WORKING
    return run


def test_a_refusal_of_initialize_is_passed_on_and_opens_nothing() -> None:
    machine = Throwaways()
    run = asks(machine, initialize(REVISION, key="i"))
    refusal = error("i", -32602, "Unsupported protocol version")
    assert answers(machine, run, refusal) == [(None, refusal)]
    [(to, frame)] = heard(machine.receive(lines(encode_line(request(1, "tools/list")))))
    assert to is None
    assert an_error(1, -32600, "initialize")(frame)


def test_an_answer_to_initialize_that_cannot_be_read_is_passed_on_as_it_came() -> None:
    machine = Throwaways()
    run = asks(machine, initialize(REVISION, key="i"))
    line = b'{"jsonrpc":"2.0","id":"i","result":{nonsense}}\n'
    [(to, passed), _] = machine.receive_server(run, lines(line))
    assert to is None
    assert passed is not None
    assert passed.raw == line


def test_an_answer_that_had_to_be_decoded_loses_what_does_not_last() -> None:
    machine = Throwaways()
    run = asks(machine, initialize(REVISION, key="i"))
    body = initialized(REVISION, "i", tools={"listChanged": True})
    line = b'{"vendor":1,' + encode_line({"result": body["result"], "id": "i", "vendor": 2, "jsonrpc": "2.0"})[1:]
    [(to, frame)] = answers(machine, run, line)
    assert to is None
    assert frame["result"]["capabilities"] == {"tools": {}}


def test_an_answer_that_is_no_response_fails_the_request() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/list"))
    [(to, frame)] = answers(machine, run, b'{"x":1,"jsonrpc":"2.0","id":1,"result":[]}\n')
    assert to is None
    assert an_error(1, -32000, "not a response")(frame)
    assert run.phase is Phase.OVER


def test_a_server_that_goes_after_its_answer_is_not_missed() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/list"))
    answers(machine, run, result(1, {"tools": []}))
    assert machine.lose(run, "gone") == []


def test_what_comes_after_the_answer_is_not_heard() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/list"))
    news = notification("notifications/message", level="info", data="late")
    assert answers(machine, run, result(1, {"tools": []}), news) == [(None, result(1, {"tools": []}))]


def test_a_server_that_is_still_opening_hears_nothing_of_a_cancellation() -> None:
    machine = opened()
    run = asks(machine, request(1, "tools/list"))
    assert heard(machine.receive(lines(encode_line(notification("notifications/cancelled", requestId=1))))) == []
    assert run.phase is Phase.OVER


def test_an_unreadable_notification_of_the_session_goes_nowhere() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/list"))
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{nonsense}}\n'
    assert machine.receive(lines(line)) == []
    assert run.phase is Phase.WORKING


def test_what_a_server_asked_is_withdrawn_when_it_is_gone() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/call", name="t"))
    [(_, asked)] = answers(machine, run, request("q", "elicitation/create", message="?"))
    [_, (to, withdrawn)] = answers(machine, run, result(1, {}))
    assert to is None
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == asked["id"]


def test_of_two_answers_in_one_array_the_first_counts() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/call", name="t"))
    both = encode_line([result(1, {"first": True}), result(1, {"first": False})])
    assert answers(machine, run, both) == [(None, result(1, {"first": True}))]


def test_a_whole_answer_without_line_feed_counts_when_the_server_ends() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/list"))
    last = cut_off(encode_line(result(1, {"tools": []})).rstrip())
    assert heard(machine.receive_server(run, last)) == [(None, result(1, {"tools": []}))]
    assert machine.lose(run, "gone") == []


def test_half_an_answer_fails_the_request_when_the_server_ends() -> None:
    machine = opened()
    run = working(machine, request(1, "tools/list"))
    [(_, frame)] = heard(machine.receive_server(run, cut_off(encode_line(result(1, {"tools": []}))[:-2])))
    assert an_error(1, -32000, "in the middle of a frame")(frame)
