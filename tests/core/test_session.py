"""The machine by itself, between two byte streams: lines in, commands out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

import dragoman_spec
from dragoman.core.commands import Finish, Outcome, Send, Side
from dragoman.core.edges.lifecycle import FrontState as State
from dragoman.core.edges.wiring import Bridging
from dragoman.core.envelope import Frame
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.settings import Settings
from dragoman.core.switch.direct import Direct
from tests.proxy.conversation import READY, error, initialize, initialized, notification, request, result
from tests.support.wired import OPENED, Sent, Timer, Wired, wiring

A, B, C, D = dragoman_spec.HANDSHAKE_REVISIONS
CLIENT, SERVER = Side.CLIENT, Side.SERVER
METADATA = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def make_session(**settings: Any) -> Wired:
    settings.setdefault("expect_echo", False)  # most are not about offers
    return Wired(Settings(**settings))


def open_session(client_revision: str, server_revision: str, **settings: Any) -> Wired:
    session = make_session(**settings)
    session.receive(CLIENT, encode_line(initialize(client_revision)))
    session.receive(SERVER, encode_line(initialized(server_revision)))
    session.receive(CLIENT, encode_line(READY))
    assert session.state is State.READY
    return session


def sent(commands: Iterable[Any], side: Side) -> bytes:
    return b"".join(command.data for command in commands if isinstance(command, Sent) and command.side is side)


def test_opening_gives_these_commands() -> None:
    session = make_session(init_timeout_s=7.0)
    hello, answer, ready = encode_line(initialize(C)), encode_line(initialized(C)), encode_line(READY)
    assert session.receive(CLIENT, hello) == [Sent(SERVER, hello), Timer(7.0)]
    assert session.receive(SERVER, answer) == [Sent(CLIENT, answer), Timer(7.0)]
    assert session.receive(CLIENT, ready) == [Timer(None), Sent(SERVER, ready)]


def test_a_client_that_never_initialises_has_as_long_as_one_that_does() -> None:
    session = make_session(init_timeout_s=7.0)
    assert session.open() == [Timer(7.0), OPENED]
    assert session.receive(CLIENT, encode_line(request(1, "tools/list"))) == []
    *answered, end = session.expire()
    assert decode(sent(answered, CLIENT))["error"]["data"]["waitingFor"] == "the client's initialize"
    assert isinstance(end, Finish)
    assert end.outcome is Outcome.INITIALIZATION_TIMED_OUT


def test_blanks_before_the_end_are_nothing() -> None:
    session = open_session(C, C)
    assert session.receive(SERVER, b" \r") == []
    assert sent(session.close(SERVER, "it ended"), CLIENT) == b""


def test_the_clock_starts_anew_when_initialize_was_refused() -> None:
    session = make_session(init_timeout_s=7.0)
    session.open()
    session.receive(CLIENT, encode_line(initialize(D)))
    assert Timer(7.0) in session.receive(SERVER, encode_line(error(0, -32603, "no API key")))
    assert session.state is State.CONNECTING


def test_lines_for_one_peer_are_written_together() -> None:
    session = open_session(A, D)
    lines = encode_line(request(1, "tools/list")) + encode_line(request(2, "prompts/list"))
    assert session.receive(CLIENT, lines) == [Sent(SERVER, lines)]


def test_equal_revisions_hand_on_the_object_that_came() -> None:
    session = open_session(D, D)
    line = encode_line(request(1, "tools/list"))
    (send,) = session.receive(CLIENT, line)
    assert isinstance(send, Sent)
    assert send.data is line


CONVERSATION = [
    (CLIENT, initialize(A)),
    (SERVER, initialized(D)),
    (CLIENT, READY),
    (CLIENT, request(1, "tools/list")),
    (CLIENT, request("1", "ping")),
    (SERVER, result("1", {})),
    (SERVER, result(1, {"tools": [{"name": "t", "title": "T", "inputSchema": {"type": "object"}}]})),
    (CLIENT, [request(5, "ping")]),
    (SERVER, notification("notifications/progress", progressToken=1, progress=1, message="m")),
    (SERVER, request(9, "elicitation/create", message="m", requestedSchema={})),
]


def hold_in_pieces(size: int) -> tuple[bytes, bytes]:
    session = make_session()
    heard = {CLIENT: b"", SERVER: b""}
    for side, frame in CONVERSATION:
        line = encode_line(frame)
        for start in range(0, len(line), size):
            commands = session.receive(side, line[start : start + size])
            for listener in heard:
                heard[listener] += sent(commands, listener)
    return heard[CLIENT], heard[SERVER]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_what_comes_out_does_not_depend_on_how_it_comes_in(size: int) -> None:
    assert hold_in_pieces(size) == hold_in_pieces(10_000)


def test_a_restart_is_asked_for_before_the_offer_is_repeated() -> None:
    session = make_session()
    session.receive(CLIENT, encode_line(initialize(D)))
    session.receive(SERVER, encode_line(error(0, -32602, "Unsupported protocol version")) + b"half a li")
    restart, offer = session.close(SERVER, "gone")
    assert restart == OPENED
    assert isinstance(offer, Sent)
    assert decode(offer.data)["params"]["protocolVersion"] == C
    answer = encode_line(initialized(C, "dragoman-initialize-2"))
    assert b'"2025-11-25"' in sent(session.receive(SERVER, answer), CLIENT)


def test_a_retry_that_cannot_be_translated_ends_the_session() -> None:
    def translate(source: str, target: str) -> Any:
        if target == C:
            return Refusing(source, target)
        return dragoman_spec.translator(source, target)

    class Refusing:
        identity = False

        def __init__(self, source: str, target: str) -> None:
            self.source, self.target = source, target

        def touches(self, kind: str, method: str | None) -> bool:
            return True

        def translate(self, frame: Any, method: str | None = None) -> Any:
            raise dragoman_spec.Untranslatable("no")

    session = Wired(Settings(), translate)
    session.receive(CLIENT, encode_line(initialize(D)))
    commands = session.receive(SERVER, encode_line(error(0, -32602, "Unsupported protocol version")))
    assert decode(sent(commands, CLIENT))["error"]["code"] == -32602
    assert session.state is State.FAILED


def test_the_end_is_told_once() -> None:
    session = open_session(A, D)
    assert session.close(CLIENT, "bye")[-1] == Finish(Outcome.CLIENT_CLOSED, "the client has closed: bye")
    assert session.close(SERVER, "bye") == []
    assert session.stop("bye") == []


def test_after_the_end_the_client_still_hears_the_server() -> None:
    session = open_session(A, A)
    session.close(CLIENT, "bye")
    line = encode_line(notification("notifications/tools/list_changed"))
    assert session.receive(SERVER, line) == [Sent(CLIENT, line)]


def test_a_failed_session_answers_what_still_comes() -> None:
    session = make_session()
    session.receive(CLIENT, encode_line(initialize(A)))
    session.close(SERVER, "the server exited with status 1")
    assert session.state is State.FAILED
    answer = decode(sent(session.receive(CLIENT, encode_line(request(2, "tools/list"))), CLIENT))
    assert answer["error"]["message"] == "the server exited with status 1"
    assert session.receive(CLIENT, encode_line(notification("notifications/x"))) == []
    assert session.receive(SERVER, encode_line(notification("notifications/x"))) == []
    assert b"error" in sent(session.receive(CLIENT, encode_line(initialize(A, 7))), CLIENT)


def test_a_timer_that_rings_late_is_nothing() -> None:
    session = open_session(A, D)
    assert session.expire() == []
    assert session.state is State.READY


def test_an_initialize_that_crosses_the_stop_is_told_why(caplog: pytest.LogCaptureFixture) -> None:
    session = make_session()
    session.stop("the proxy was stopped by SIGTERM")
    answer = decode(sent(session.receive(CLIENT, encode_line(initialize(A, 7))), CLIENT))
    assert (answer["id"], answer["error"]["message"]) == (7, "the proxy was stopped by SIGTERM")
    assert not caplog.records
    assert session.receive(CLIENT, encode_line(notification("notifications/initialized"))) == []


def test_the_server_queue_is_bounded() -> None:
    session = make_session(queue_frames=1)
    first = session.receive(SERVER, encode_line(request(1, "roots/list")))
    assert first == []
    answer = decode(sent(session.receive(SERVER, encode_line(request(2, "roots/list"))), SERVER))
    assert (answer["id"], answer["error"]["code"]) == (2, -32000)


def test_notifications_beyond_the_queue_are_dropped() -> None:
    session = make_session(queue_frames=0)
    session.receive(CLIENT, encode_line(initialize(A)))
    assert session.receive(CLIENT, encode_line(notification("notifications/roots/list_changed"))) == []


def test_the_answer_to_initialize_may_be_refused_by_the_translation() -> None:
    session = make_session()
    session.receive(CLIENT, encode_line(initialize(A)))
    bad = initialized(D)
    bad["result"]["capabilities"] = "all of them"
    answer = decode(sent(session.receive(SERVER, encode_line(bad)), CLIENT))
    assert answer["id"] == 0
    assert answer["error"]["code"] in (-32602, -32603)


def test_an_initialize_that_the_translation_refuses_is_answered_and_may_be_repeated() -> None:
    session = make_session(server_revision=A)
    bad = initialize(D)
    bad["params"]["capabilities"] = "all of them"
    answer = decode(sent(session.receive(CLIENT, encode_line(bad)), CLIENT))
    assert answer["error"]["code"] == -32602
    assert session.state is State.CONNECTING


def test_a_server_that_was_let_go_of_is_not_heard_any_more() -> None:
    """Several frames may come together, and the first of them be the end."""
    session = open_session(C, C)
    session.switch.upstream.release()
    assert session.receive(SERVER, encode_line(request(1, "ping"))) == []


def test_a_request_too_late_for_its_session_is_refused_under_its_own_id() -> None:
    """Over HTTP, where clients of one session choose the same ids, it is known here by a number of ours."""

    def asked(request_id: int, number: bytes) -> Frame:
        body = {**request(request_id, "tools/list"), "params": {"_meta": METADATA}}
        return Frame(encode_line(body), "request", number, "tools/list", body)

    bridging = Bridging(lambda: 0.0, lambda: 0.0, bytes, lambda: None)  # type: ignore[arg-type, return-value]
    switch = Direct(replace(wiring(), bridging=bridging))
    switch.front.take(asked(30, b"1"))
    switch.front.stop("it is ending")
    switch.outbox.take_all()
    switch.front.take(asked(40, b"2"))
    (send,) = [command for command in switch.outbox.take_all() if isinstance(command, Send)]
    (answer,) = send.frames
    assert (answer.key, decode(answer.raw)["id"]) == (b"2", 40)
