"""The traffic of an open session, without the session."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.calls import Call
from dragoman.core.commands import Outbox, Side
from dragoman.core.edges.backend import NOTHING_READ
from dragoman.core.edges.exchange import Exchange
from dragoman.core.envelope import Frame, Refusal
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.peek import read_line
from dragoman.core.settings import Settings
from tests.proxy.conversation import an_error, error, notification, request, result

A, B, C, D = dragoman_spec.HANDSHAKE_REVISIONS
CLIENT, SERVER = Side.CLIENT, Side.SERVER


class Ends:
    """Both ends of an exchange: what stands for the client's edge, and for what is behind it."""

    takes_arrays = True
    reads = NOTHING_READ
    wants_lines = True
    own: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.posted: list[tuple[Side, bytes]] = []

    def send(self, frame: Frame) -> None:
        self.posted.append((CLIENT, frame.raw))

    def post(self, side: Side, frame: Frame) -> None:
        self.posted.append((side, frame.raw))

    def carry(self, call: Call, frame: Frame) -> None:
        self.posted.append((SERVER, frame.raw))

    def answered(self) -> None:
        """Nothing has to end here."""

    def notify(self, front: Any, frame: Frame) -> None:
        self.posted.append((SERVER, frame.raw))


class Talk:
    def __init__(self, client_revision: str | None, server_revision: str | None, **limits: int) -> None:
        self.ends: Any = Ends()
        self.exchange = Exchange(self.ends, self.ends, Settings(**limits), Outbox())
        translate = dragoman_spec.translator
        if client_revision is not None and server_revision is not None:
            upward = translate(client_revision, server_revision)
            self.exchange.speak(upward, translate(server_revision, client_revision))

    def relay(self, side: Side, frame: Any) -> list[tuple[Side, bytes]]:
        self.ends.posted.clear()
        line = frame if isinstance(frame, bytes) else encode_line(frame)
        told = read_line(line)
        assert isinstance(told, Frame)
        self.exchange.relay(side, told)
        posted: list[tuple[Side, bytes]] = self.ends.posted
        return posted

    def fail_all(self, *args: Any) -> list[tuple[Side, bytes]]:
        self.ends.posted.clear()
        self.exchange.fail_all(CLIENT, *args)
        posted: list[tuple[Side, bytes]] = self.ends.posted
        return posted


def test_everything_passes_before_the_revisions_are_known() -> None:
    line = encode_line(notification("notifications/message", level="info", data=1))
    assert Talk(None, None).relay(SERVER, line) == [(CLIENT, line)]


@pytest.mark.parametrize("revisions", [(A, A), (B, B), (A, D)])
def test_an_answer_that_nobody_asked_for_reaches_nobody(revisions: tuple[str, str]) -> None:
    talk = Talk(*revisions)
    assert talk.relay(SERVER, result(5, {})) == []
    assert talk.relay(CLIENT, result(5, {})) == []
    assert talk.exchange.counters.unmatched == 2


@pytest.mark.parametrize("revisions", [(A, A), (B, B), (D, D), (A, D), (D, A), (B, A), (A, B)])
def test_of_several_answers_only_the_first_reaches_who_asked(revisions: tuple[str, str]) -> None:
    talk = Talk(*revisions)
    talk.relay(CLIENT, request(1, "ping"))
    assert [decode(line) for _, line in talk.relay(SERVER, result(1, {"n": 1}))] == [result(1, {"n": 1})]
    assert talk.relay(SERVER, result(1, {"n": 2})) == []
    assert talk.relay(SERVER, result("1", {"n": 3})) == []


def test_an_answer_in_an_array_has_its_id_again() -> None:
    talk = Talk(B, B)
    talk.relay(CLIENT, request(1, "ping"))
    assert [decode(line) for _, line in talk.relay(SERVER, [result("1", {})])] == [[result(1, {})]]


@pytest.mark.parametrize("revisions", [(B, B), (A, B)])
def test_who_waits_for_an_answer_that_is_garbled_in_an_array_is_told(revisions: tuple[str, str]) -> None:
    talk = Talk(*revisions)
    talk.relay(CLIENT, request(1, "ping"))
    garbled = {"jsonrpc": "2.0", "id": 1, "result": []}
    [(to, line)] = talk.relay(SERVER, [garbled, result(1, {})])
    assert to is CLIENT
    assert an_error(1, -32603, "not a response")(decode(line))


def test_an_array_that_uses_an_id_twice_asks_it_once() -> None:
    talk = Talk(B, B)
    posted = talk.relay(CLIENT, [request(1, "ping"), request(1, "tools/list")])
    assert [(to, decode(line)) for to, line in posted] == [(SERVER, request(1, "ping"))]
    ((_, whole),) = talk.relay(SERVER, result(1, {}))
    assert [frame["id"] for frame in decode(whole)] == [None, 1]


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("revisions", [(A, A), (B, B), (A, D)])
def test_beyond_so_many_unanswered_requests_an_error_says_so(side: Side, revisions: tuple[str, str]) -> None:
    talk = Talk(*revisions, open_requests=2)
    for key in (1, 2):
        assert talk.relay(side, request(key, "ping"))[0][0] is side.other
    [(to, line)] = talk.relay(side, request(3, "ping"))
    assert to is side
    assert an_error(3, -32000, "more than 2 requests", "'limit': 2")(decode(line))
    assert talk.exchange.counters.excess == 1
    talk.relay(side.other, result(1, {}))
    assert talk.relay(side, request(3, "ping"))[0][0] is side.other


@pytest.mark.parametrize("side", Side)
def test_an_array_of_too_many_requests_is_refused_with_one_error(side: Side) -> None:
    talk = Talk(B, B, batch_requests=2)
    talk.relay(side.other, request("q", "ping"))
    posted = talk.relay(side, [*(request(key, "ping") for key in range(3)), result("q", {})])
    assert [to for to, _ in posted] == [side, side.other]
    assert an_error(None, -32000, "no more than 2 requests")(decode(posted[0][1]))
    assert decode(posted[1][1]) == result("q", {})


def test_an_id_without_end_is_refused() -> None:
    talk = Talk(A, A)
    [(to, line)] = talk.relay(CLIENT, request("x" * 2000, "ping"))
    assert to is CLIENT
    assert an_error("x" * 2000, -32600, "1024 bytes")(decode(line))


@pytest.mark.parametrize("method", ["ping", ""])
def test_an_id_without_end_in_an_array_is_refused(method: str) -> None:
    talk = Talk(B, B)
    posted = talk.relay(CLIENT, [request("x" * 2000, method), request(1, "ping")])
    assert [to for to, _ in posted] == [SERVER]
    assert decode(posted[0][1]) == request(1, "ping")


def test_a_flood_of_requests_is_no_flood_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(B, B, open_requests=1, batch_requests=1)
    for key in range(60):
        talk.relay(CLIENT, request(key, "ping"))
        talk.relay(CLIENT, [request(key, "ping")] * 2)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition("(")[2] for line in lines] == ["1 so far)", "10 so far)", "100 so far)"]


def test_an_error_without_id_crosses_where_both_revisions_have_it() -> None:
    line = encode_line({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}})
    assert Talk(D, D).relay(SERVER, line) == [(CLIENT, line)]


def test_an_error_without_id_is_kept_from_older_clients() -> None:
    assert Talk(C, D).relay(SERVER, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}}) == []


def test_an_answer_whose_id_came_back_as_text_has_its_number_again() -> None:
    talk = Talk(A, A)
    talk.relay(CLIENT, request(3, "ping"))
    assert talk.relay(SERVER, b'{"jsonrpc":"2.0","id":"3","result":{}}') == [(CLIENT, encode_line(result(3, {})))]


def test_an_answer_whose_id_came_back_as_text_and_that_cannot_be_read_fails_the_request() -> None:
    talk = Talk(A, A)
    talk.relay(CLIENT, request(3, "ping"))
    reason = "the server's answer cannot be read: not JSON: Expecting value at column 41"
    answer = talk.relay(SERVER, b'{"jsonrpc":"2.0","id":"3","result":{"a":nothing}}')
    assert answer == [(CLIENT, encode_line(error(3, -32603, reason)))]


def test_an_answer_to_neither_id_is_nobodys() -> None:
    talk = Talk(A, D)
    talk.relay(CLIENT, request(3, "ping"))
    assert talk.relay(SERVER, b'{"jsonrpc":"2.0","id":"4","result":{}}') == []


def test_answers_in_an_array_end_requests_that_came_alone() -> None:
    talk = Talk(B, B)
    talk.relay(CLIENT, request(1, "ping"))
    talk.relay(CLIENT, request(2, "ping"))
    answers = encode_line([result(1, {}), error(2, -1)])
    assert talk.relay(SERVER, answers) == [(CLIENT, answers)]
    assert not talk.exchange.calls[CLIENT].waiting


def test_answers_that_come_alone_end_requests_of_an_array() -> None:
    talk = Talk(B, B)
    talk.relay(CLIENT, [request(1, "ping"), request(2, "ping")])
    line = encode_line(result(1, {}))
    talk.relay(SERVER, line)
    ((_, whole),) = talk.fail_all(-32000, "gone")
    assert whole.startswith(b"[{")
    assert b'"id":2' in whole


def test_failing_names_the_method_that_was_asked() -> None:
    talk = Talk(A, D)
    talk.relay(CLIENT, request("k", "tools/list"))
    posted = talk.fail_all(-32000, "gone", {"why": "not"})
    expected = {"method": "tools/list", "why": "not"}
    assert posted == [(CLIENT, encode_line(error("k", -32000, "gone", **expected)))]


def test_a_cancellation_in_an_array_is_noted() -> None:
    talk = Talk(B, B)
    talk.relay(CLIENT, [request(1, "ping"), notification("notifications/cancelled", requestId=1)])
    assert not talk.exchange.calls[CLIENT].waiting


# Ids that the peer may still answer


def restarted(talk: Talk) -> None:
    """Let the server be another one."""
    talk.exchange.interrupt(Refusal(-32000, "gone", {}))


def withdrawn(talk: Talk) -> None:
    """Let the server take its question back."""
    talk.relay(SERVER, notification("notifications/cancelled", requestId=1))


ASKED = request(1, "sampling/createMessage", messages=[], maxTokens=1, _meta={"progressToken": 1})


@pytest.mark.parametrize("revisions", [(D, D), (A, D)])
@pytest.mark.parametrize("end", [restarted, withdrawn])
def test_a_question_gets_an_id_of_its_own_while_another_one_may_be_answered(end: Any, revisions: Any) -> None:
    talk = Talk(*revisions)
    talk.exchange.know_client({"sampling": {}}, dragoman_spec.load(revisions[0]).METHODS)
    talk.relay(SERVER, ASKED)
    end(talk)
    [(_, line)] = talk.relay(SERVER, ASKED)
    asked = decode(line)
    assert asked["id"] != 1
    assert asked["params"]["_meta"]["progressToken"] == asked["id"]
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "no"}}
    assert talk.relay(CLIENT, result(1, {**said, "model": "first"})) == [], "the answer to the first"
    progress = notification("notifications/progress", progressToken=1, progress=1)
    assert talk.relay(CLIENT, progress) == [], "that of the first"
    own = notification("notifications/progress", progressToken=asked["id"], progress=1)
    assert [decode(line) for _, line in talk.relay(CLIENT, own)] == [progress]
    assert [decode(line) for _, line in talk.relay(CLIENT, result(asked["id"], said))] == [result(1, said)]
    [(_, line)] = talk.relay(SERVER, ASKED)
    assert decode(line)["id"] == 1, "the first is answered, so its id is free again"


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_a_request_of_another_proxy_never_has_an_id_that_one_of_our_own_may_have(side: Side) -> None:
    talk = Talk(D, D)
    asked = request("dragoman-health-1", "ping")
    for _ in range(1100):  # more than the ids that are remembered because their answers may still come
        [(to, line)] = talk.relay(side, asked)
        assert to is side.other
        assert decode(line)["id"] != "dragoman-health-1"
        answer = result("dragoman-health-1", {})
        assert [decode(told) for _, told in talk.relay(to, {**answer, "id": decode(line)["id"]})] == [answer]
    assert talk.relay(side, request(1, "ping")) == [(side.other, encode_line(request(1, "ping")))]


def test_a_question_with_another_id_is_taken_back_under_that() -> None:
    talk = Talk(D, D)
    talk.relay(SERVER, ASKED)
    withdrawn(talk)
    [(_, line)] = talk.relay(SERVER, ASKED)
    asked = decode(line)["id"]
    [(to, refused)] = talk.relay(SERVER, ASKED)
    assert to is SERVER
    assert an_error(None, -32600, "not answered yet")(decode(refused))
    [(_, line)] = talk.relay(SERVER, notification("notifications/cancelled", requestId=1))
    assert decode(line)["params"]["requestId"] == asked


def test_questions_of_an_array_have_ids_of_their_own_too() -> None:
    talk = Talk(B, B)
    talk.relay(SERVER, [request(1, "ping"), request(2, "ping")])
    restarted(talk)
    heard = [decode(line) for _, line in talk.relay(SERVER, [request(1, "ping"), request(3, "ping")])]
    keys = [frame["id"] for frame in heard]
    assert keys[0] not in (1, 2, 3)
    assert keys[1] == 3
    answers = [result(keys[0], {}), result(3, {})]
    (whole,) = [decode(line) for _, line in talk.relay(CLIENT, answers)]
    assert sorted(answer["id"] for answer in whole) == [1, 3]


def test_who_leaves_more_unanswered_than_is_kept_gets_new_ids_for_all() -> None:
    talk = Talk(D, D)
    for key in range(1100):
        talk.relay(SERVER, request(key, "ping"))
    restarted(talk)
    [(_, line)] = talk.relay(SERVER, request("new", "ping"))
    assert decode(line)["id"] != "new"
