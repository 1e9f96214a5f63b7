"""The traffic of an open session, without the session."""

from __future__ import annotations

from typing import Any

import dragoman_spec
from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, encode_line, read_line
from dragoman.core.exchange import Exchange
from tests.proxy.conversation import error, notification, request, result

A, B, C, D = dragoman_spec.HANDSHAKE_REVISIONS
CLIENT, SERVER = Side.CLIENT, Side.SERVER


class Talk:
    def __init__(self, client_revision: str, server_revision: str) -> None:
        self.posted: list[tuple[Side, bytes]] = []
        self.exchange = Exchange(lambda side, line: self.posted.append((side, line)))
        translate = dragoman_spec.translator
        self.exchange.speak(translate(client_revision, server_revision), translate(server_revision, client_revision))

    def relay(self, side: Side, frame: Any) -> list[tuple[Side, bytes]]:
        self.posted.clear()
        line = frame if isinstance(frame, bytes) else encode_line(frame)
        told = read_line(line)
        assert isinstance(told, Frame)
        self.exchange.relay(side, told)
        return self.posted


def test_everything_passes_before_the_revisions_are_known() -> None:
    posted: list[tuple[Side, bytes]] = []
    exchange = Exchange(lambda side, line: posted.append((side, line)))
    line = encode_line(notification("notifications/message", level="info", data=1))
    told = read_line(line)
    assert isinstance(told, Frame)
    exchange.relay(SERVER, told)
    assert posted == [(CLIENT, line)]


def test_equal_peers_see_the_answers_that_nobody_asked_for() -> None:
    talk = Talk(A, A)
    line = encode_line(result(5, {}))
    assert talk.relay(SERVER, line) == [(CLIENT, line)]
    assert talk.exchange.counters.unmatched == 1


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
    answers = encode_line([result(1, {}), error(2, -1)])
    assert talk.relay(SERVER, answers) == [(CLIENT, answers)]
    assert not talk.exchange.in_flight[CLIENT].waiting


def test_answers_that_come_alone_end_requests_of_an_array() -> None:
    talk = Talk(B, B)
    talk.relay(CLIENT, [request(1, "ping"), request(2, "ping")])
    line = encode_line(result(1, {}))
    talk.relay(SERVER, line)
    talk.posted.clear()
    talk.exchange.fail_all(CLIENT, -32000, "gone")
    ((_, whole),) = talk.posted
    assert whole.startswith(b"[{")
    assert b'"id":2' in whole


def test_failing_names_the_method_that_was_asked() -> None:
    talk = Talk(A, D)
    talk.relay(CLIENT, request("k", "tools/list"))
    talk.posted.clear()
    talk.exchange.fail_all(CLIENT, -32000, "gone", {"why": "not"})
    expected = {"method": "tools/list", "why": "not"}
    assert talk.posted == [(CLIENT, encode_line(error("k", -32000, "gone", **expected)))]


def test_a_cancellation_in_an_array_is_noted() -> None:
    talk = Talk(B, B)
    talk.relay(CLIENT, [request(1, "ping"), notification("notifications/cancelled", requestId=1)])
    assert not talk.exchange.in_flight[CLIENT].waiting
