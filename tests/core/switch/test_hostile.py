"""Frames with the wrong thing in every place, from both sides: nothing breaks, and nobody else hears of it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from dragoman.core.exact_json import encode_line
from tests.core.switch.talk import Talk
from tests.core.switch.test_shared import call
from tests.proxy import per_request
from tests.proxy.conversation import an_error, client, expect_to_client, hold, initialize, request

WRONG: list[Any] = [None, True, 0, -1.5, "", "x", [], [[]], [1], {}, {"taskId": []}, {"uri": 1}]
REQUESTS = [
    "initialize",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/get",
    "tasks/list",
    "tools/call",
    "ping",
    "roots/list",
    "elicitation/create",
    "sampling/createMessage",
    "x",
]
NOTES = [
    "initialized",
    "cancelled",
    "progress",
    "message",
    "resources/updated",
    "tasks/status",
    "elicitation/complete",
    "roots/list_changed",
    "tools/list_changed",
    "x",
]
NAMES = [
    "_meta",
    "progressToken",
    "requestId",
    "uri",
    "level",
    "taskId",
    "elicitationId",
    "task",
    "mode",
    "io.modelcontextprotocol/related-task",
]


def hostile_frames() -> list[bytes]:
    """Every method with every wrong value as its params and within them."""
    frames: list[Any] = [*WRONG, [WRONG]]
    params = [*WRONG, *({name: wrong} for name in NAMES for wrong in WRONG), {"_meta": {"progressToken": []}}]
    for key, (method, param) in enumerate(itertools.product(REQUESTS, params), 1000):
        frames.append({"jsonrpc": "2.0", "id": key, "method": method, "params": param})
    for method, param in itertools.product(NOTES, params):
        frames.append({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": param})
    for key, member, wrong in itertools.product([*WRONG, 3], ("result", "error", "both"), WRONG):
        frames.append(
            {
                "jsonrpc": "2.0",
                "id": key,
                **({"result": wrong, "error": wrong} if member == "both" else {member: wrong}),
            }
        )
    lines = [encode_line(frame) for frame in frames]
    return [*lines, encode_line(frames[:40]), b"\n", b"{\n", b"\xff\n", *(line[:-5] + b"!\n" for line in lines[20:])]


LINES = [*hostile_frames(), encode_line({"jsonrpc": "2.0", "id": "9" * 5000, "result": {}})]


def test_a_hostile_session_harms_nobody_else() -> None:
    talk = Talk(calls=10_000)
    talk.opens("good", "bad", elicitation={})
    for line in LINES:
        assert {to for to, _ in talk.says("bad", line)} <= {"bad", "server"}
    talk.leaves("bad")
    talk.time_passes(1000)
    [(to, asked)] = talk.says("good", call(1))
    assert to == "server"
    assert talk.says("server", {"jsonrpc": "2.0", "id": asked["id"], "result": {}})[-1][0] == "good"


def test_a_call_answers_no_question_of_the_server() -> None:
    talk = Talk()
    talk.opens("a", "b", roots={})
    told = talk.says("a", {**call("both"), "result": {"roots": []}})
    assert [(to, frame["error"]["code"]) for to, frame in told] == [("a", -32600)]
    for extra in ({"error": None}, {"Result": {}}, {"Method": "x"}):
        [(to, frame)] = talk.says("a", {**call(str(extra)), **extra})
        assert to == "server"
        assert set(frame) == {"jsonrpc", "id", "method", "params"}


def test_a_hostile_server_breaks_nothing() -> None:
    talk = Talk()
    number = talk.opens("a", "b", elicitation={}, sampling={}, roots={})
    for key in range(40):
        talk.says("a", call(key, task={}, _meta={"progressToken": key}))
        talk.says("b", request(key, "tasks/list"))
    talk.says("a", request("s", "resources/subscribe", uri="x"))
    answers = [encode_line({"jsonrpc": "2.0", "id": number + n, "result": wrong}) for n, wrong in enumerate(WRONG * 5)]
    for line in [*LINES, *answers]:
        talk.says("server", line)
    assert talk.says("a", call("after"))[0][0] == "server"


def test_a_hostile_first_answer_is_an_error_or_passed_on() -> None:
    for line in LINES:
        talk = Talk()
        talk.says("a", initialize("2025-11-25"))
        talk.says("server", line)


@pytest.mark.parametrize(
    "answer",
    [b'{"x":1,"jsonrpc":"2.0","id":%d,"result":{},"error":{}}\n', b'{"x":1,"jsonrpc":"2.0","id":%d,"result":[]}\n'],
)
def test_a_garbled_answer_is_told_to_who_waits(answer: bytes) -> None:
    talk = Talk()
    number = talk.opens("a")
    talk.says("a", call("x"))
    [(to, frame)] = talk.says("server", answer % number)
    assert to == "a"
    assert an_error("x", -32603, "not a response")(frame)


@pytest.mark.parametrize(
    "answer",
    [b'{"x":1,"jsonrpc":"2.0","id":%d,"result":[]}\n', b'{"jsonrpc":"2.0","id":%d,"result":{nonsense}}\n'],
)
def test_a_garbled_answer_to_initialize_is_told_to_who_waits(answer: bytes) -> None:
    talk = Talk()
    [(_, offer)] = talk.says("a", initialize("2025-11-25", key="i"))
    [(to, frame)] = talk.says("server", answer % offer["id"])
    assert to == "a"
    assert an_error("i", -32603, "answer")(frame)


def test_an_answer_that_is_looked_into_and_cannot_be_read_is_an_error() -> None:
    talk = Talk()
    number = talk.opens("a")
    talk.says("a", request("x", "tasks/list"))
    [(to, frame)] = talk.says("server", b'{"jsonrpc":"2.0","id":%d,"result":{nonsense}}\n' % number)
    assert to == "a"
    assert an_error("x", -32603, "cannot be read")(frame)


@pytest.mark.parametrize("method", ["elicitation/create", "notifications/message"])
def test_what_the_server_says_and_cannot_be_read_goes_nowhere(method: str) -> None:
    talk = Talk()
    talk.opens("a", elicitation={})
    key = b'"id":5,' if method == "elicitation/create" else b""
    line = b'{"jsonrpc":"2.0",%s"method":"%s","params":{nonsense}}\n' % (key, method.encode())
    heard = talk.says("server", line)
    assert [(to, frame["error"]["code"]) for to, frame in heard] == ([("server", -32700)] if key else [])
    assert talk.switch.counters.malformed == 1


def test_a_line_over_the_limit_is_refused() -> None:
    talk = Talk(limit_bytes=1000)
    talk.opens("a")
    [(to, frame)] = talk.says("a", call("x", arguments={"x": "y" * 2000}))
    assert to == "a"
    assert an_error("x", -32600, "1000")(frame)


@pytest.mark.parametrize("method", ["tools/call", "ping", "x"])
def test_a_request_that_cannot_be_read_is_answered_where_the_server_has_no_sessions(method: str) -> None:
    line = b'{"jsonrpc":"2.0","id":"q","method":"%s","params":{nonsense}}\n' % method.encode()
    hold([*per_request.opening("2025-11-25"), client(line), expect_to_client(an_error("q", -32700))])
