"""An upstream edge whose server forgets the session: what it says to have another one, and what waits meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.commands import Send, Wake
from dragoman.core.edges.greeting import INITIALIZED_FRAME
from dragoman.core.edges.lifecycle import UpstreamState as State
from dragoman.core.envelope import Frame, Malformed, error_frame
from dragoman.core.exact_json import decode, encode_line
from tests.core.upstream_talk import UpstreamTalk, bodies_in, frame_of
from tests.proxy.conversation import initialized, notification, request, result

*_, C, D = dragoman_spec.HANDSHAKE_REVISIONS


class Desk(UpstreamTalk):
    """A server that forgets the session, and has another one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.ready = bodies_in(self.opening)

    def lose(self, frame: Frame | None, renewed: bool = False) -> None:
        is_request = frame is not None and frame.kind == "request"
        error = error_frame(frame.key, -32000, "404 Not Found") if frame is not None and is_request else None
        self.edge.recovery.lose_session(frame, error, renewed)

    def renew(self) -> None:
        self.hear(initialized(D))

    def sent(self) -> list[Any]:
        commands = [command for command in self.commands() if not isinstance(command, Wake)]
        assert all(isinstance(command, Send) for command in commands)
        return bodies_in(commands)


def methods(frames: list[Any]) -> list[Any]:
    return [frame.get("method") for frame in frames]


def subscribe(key: int, uri: str) -> Any:
    return request(key, "resources/subscribe", uri=uri)


def test_the_same_initialize_is_offered_again_and_the_frame_sent_again_after_initialized() -> None:
    desk = Desk()
    call = desk.say(request(7, "tools/list"))
    desk.sent()
    desk.lose(call)
    assert desk.sent() == desk.hello
    desk.renew()
    assert desk.sent() == [*desk.ready, request(7, "tools/list")]
    desk.hear(result(7, {"tools": []}))
    assert desk.told == [result(7, {"tools": []})], "the client hears of the call alone"


def test_what_was_not_even_sent_waits_and_may_meet_a_404_of_its_own() -> None:
    desk = Desk()
    desk.say(subscribe(1, "a:1"))
    call, unsent = desk.say(request(2, "tools/list")), desk.say(subscribe(3, "a:2"))
    desk.sent()
    desk.lose(call)
    desk.edge.recovery.take_back([unsent])
    assert desk.sent() == desk.hello
    desk.renew()
    *_, asked = desk.sent()
    desk.hear(result(asked["id"], {}))
    assert desk.sent() == [request(2, "tools/list"), subscribe(3, "a:2")]
    desk.lose(unsent)
    assert desk.sent() == desk.hello
    assert not desk.told


def test_several_frames_that_meet_the_same_loss_renew_once() -> None:
    desk = Desk()
    calls = [desk.say(request(number, "tools/list")) for number in range(1, 5)]
    desk.sent()
    for call in calls[:3]:
        desk.lose(call)
    assert desk.sent() == desk.hello
    desk.renew()
    assert [frame.get("id") for frame in desk.sent()[1:]] == [1, 2, 3]
    desk.lose(calls[3], renewed=True)
    assert desk.sent() == [request(4, "tools/list")], "late news of the old session"
    assert not desk.told


def test_a_second_loss_of_the_same_request_fails_it_and_nothing_else() -> None:
    desk = Desk()
    call = desk.say(request(1, "tools/list"))
    desk.lose(call)
    desk.renew()
    desk.sent()
    desk.lose(call)
    assert desk.sent() == []
    assert [frame["error"]["message"] for frame in desk.told] == ["404 Not Found"]
    other = desk.say(request(2, "tools/list"))
    desk.sent()
    desk.lose(other)
    assert desk.sent() == desk.hello


@pytest.mark.parametrize("frame", [notification("notifications/roots/list_changed"), notification("x/y", a=1)])
def test_a_notification_is_sent_again_once(frame: Any) -> None:
    desk = Desk()
    said = desk.say(frame)
    desk.lose(said)
    desk.renew()
    assert desk.sent()[-1] == frame
    desk.lose(said)
    assert desk.sent() == []
    again = desk.say(frame)  # the same words, said another time
    desk.sent()
    desk.lose(again)
    assert desk.sent() == desk.hello


def test_a_server_that_forgets_the_session_at_initialized_each_time_is_not_asked_for_ever() -> None:
    desk = Desk()
    desk.lose(INITIALIZED_FRAME)
    assert desk.sent() == desk.hello
    desk.renew()
    (send,) = desk.outbox.take_all()
    assert isinstance(send, Send)
    (announced,) = send.frames
    assert decode(announced.raw) == desk.ready[0]
    desk.lose(announced)
    assert desk.sent() == []
    assert desk.edge.state is State.READY


def test_responses_are_not_sent_again_and_while_there_is_no_session_left_to_the_transport() -> None:
    """It knows in which session they were asked for, and fails what waits for them."""
    desk = Desk()
    answer = desk.say(result("q1", {}))
    desk.sent()
    desk.lose(answer)
    assert desk.sent() == desk.hello
    desk.say(result("q2", {}))
    assert desk.sent() == [result("q2", {})]
    desk.renew()
    assert desk.sent() == desk.ready


def test_the_new_session_is_asked_one_by_one_for_what_stands_before_anything_else() -> None:
    desk = Desk()
    desk.say(request(1, "logging/setLevel", level="debug"))
    desk.say(request(2, "logging/setLevel", level="error"))
    desk.say(subscribe(3, "a:1"))
    desk.say([subscribe(4, "a:2"), request(5, "ping")])
    desk.say(request(6, "resources/unsubscribe", uri="a:1"))
    call = desk.say(request(7, "tools/list"))
    desk.sent()
    desk.lose(call)
    desk.renew()
    *_, level = desk.sent()
    assert level == request(level["id"], "logging/setLevel", level="error")
    desk.say(result("q", {}))  # what it asks meanwhile is answered at once: it may depend on that
    desk.say(request(8, "ping"))
    assert desk.edge.state is State.RECOVERING
    desk.hear(result(level["id"], {}))
    response, again = desk.sent()
    assert response == result("q", {})
    assert again == subscribe(again["id"], "a:2")
    desk.edge.take(error_frame(f'"{again["id"]}"'.encode(), -32602, "no such resource"))
    assert [frame["id"] for frame in desk.sent()] == [7, 8]
    assert not desk.told


def test_a_subscription_that_was_not_looked_at_is_asked_for_once() -> None:
    desk = Desk()
    desk.say(subscribe(1, "a:1"))
    given_back = desk.say(subscribe(2, "a:2"))
    desk.sent()
    desk.lose(given_back)
    desk.renew()
    *_, first = desk.sent()
    assert first["params"] == {"uri": "a:1"}
    desk.hear(result(first["id"], {}))
    assert desk.sent() == [subscribe(2, "a:2")]
    desk.lose(None)
    desk.renew()
    *_, first = desk.sent()
    desk.hear(result(first["id"], {}))
    assert methods(desk.sent()) == ["resources/subscribe"]


def test_a_server_that_leaves_a_subscription_unanswered_is_asked_the_rest_at_once() -> None:
    desk = Desk()
    for number in range(3):
        desk.say(subscribe(number, f"a:{number}"))
    call = desk.say(request(7, "tools/list"))
    desk.sent()
    desk.lose(call)
    desk.sent()
    desk.renew()
    asked = desk.sent()[len(desk.ready) :]
    desk.edge.expire()
    asked += desk.sent()
    *subscribed, last = asked
    assert [frame["params"]["uri"] for frame in subscribed] == ["a:0", "a:1", "a:2"]
    assert last == request(7, "tools/list")
    assert desk.edge.state is State.READY
    assert desk.end is None


def test_a_session_that_is_forgotten_while_it_is_asked_again_loses_what_was_asked_alone() -> None:
    desk = Desk()
    desk.say(subscribe(1, "a:1"))
    call = desk.say(request(2, "tools/list"))
    desk.sent()
    desk.lose(call)
    desk.renew()
    *_, asked = desk.sent()
    desk.lose(frame_of(asked))
    assert desk.sent() == [request(2, "tools/list")]
    assert desk.edge.state is State.READY


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (initialized(C), f"in a new session it speaks {C}, not {D}"),
        ({"jsonrpc": "2.0", "id": 0, "error": {"code": -32001, "message": "no more", "data": {"x": 1}}}, "no more"),
        (Frame(b'{"jsonrpc":"2.0","id":0,"result":[]}', "result", b"0", None), "not an object"),
        (Frame(b'{"jsonrpc":"2.0","id":0,"result":{]}', "result", b"0", None), "cannot be read"),
    ],
)
def test_without_a_new_session_what_waits_fails_and_what_comes_next_tries_again(answer: Any, words: str) -> None:
    desk = Desk()
    call = desk.say(request(7, "tools/list"))
    desk.lose(call)
    desk.say([request(8, "ping"), request(9, "ping")])
    for failed in ([7], [7, 8, 9]):  # what came since the offer gets one of its own
        assert desk.sent()[-1:] == desk.hello
        desk.edge.take(answer if isinstance(answer, Frame) else frame_of(answer))
        assert [frame["id"] for frame in desk.told] == failed
    assert desk.sent() == []
    for frame in desk.told:
        assert words in frame["error"]["message"]
    desk.say(request(10, "tools/list"))
    assert desk.sent() == desk.hello
    desk.renew()
    assert desk.sent() == [*desk.ready, request(10, "tools/list")]


def test_an_answer_that_is_not_a_response_is_no_new_session() -> None:
    desk = Desk()
    desk.lose(desk.say(request(7, "tools/list")))
    key = encode_line(desk.hello[0]["id"]).strip()
    desk.edge.take(Malformed(-32600, "both result and error", key, True))
    assert "both result and error" in desk.told[0]["error"]["message"]
    assert desk.edge.state is State.RECOVERING


def test_what_goes_on_in_the_old_session_passes_and_a_ping_is_answered() -> None:
    desk = Desk()
    desk.say(request(1, "tools/call", name="slow"))
    desk.lose(desk.say(request(2, "tools/list")))
    desk.sent()
    desk.hear(notification("notifications/progress", progressToken=1, progress=1))
    desk.hear(request("p", "ping"))
    desk.hear(result(1, {"content": []}))
    assert desk.sent() == [result("p", {})]
    assert [frame.get("id", frame.get("method")) for frame in desk.told] == ["notifications/progress", 1]


def test_what_waits_is_bounded() -> None:
    desk = Desk(queue_bytes=1000)
    desk.lose(desk.say(request(1, "tools/list")))
    desk.say(request(2, "tools/call", name="x" * 900))
    desk.say(request(3, "tools/call", name="x" * 900))
    (refused,) = desk.told
    assert refused["id"] == 3
    assert "too many frames wait" in refused["error"]["message"]


def test_a_server_that_is_lost_meanwhile_is_lost() -> None:
    desk = Desk()
    desk.lose(desk.say(request(1, "tools/list")))
    desk.edge.close("it is gone")
    assert desk.end == "it is gone"
    assert desk.edge.state is State.LOST


def test_a_server_that_says_on_its_own_that_the_session_is_gone_gets_a_new_one() -> None:
    desk = Desk()
    desk.say(subscribe(1, "a:1"))
    desk.sent()
    desk.lose(None)
    assert desk.sent() == desk.hello
    desk.renew()
    *_, asked = desk.sent()
    desk.lose(None)  # and once more, while it is asked again
    assert desk.sent() == desk.hello
    desk.hear(result(asked["id"], {}))
    desk.renew()
    *_, asked = desk.sent()
    desk.hear(result(asked["id"], {}))
    assert desk.edge.state is State.READY


def test_a_request_that_cannot_be_read_is_not_repeated() -> None:
    desk = Desk()
    for number, method in enumerate(("logging/setLevel", "resources/subscribe")):
        line = f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{]}}}}\n'.encode()
        desk.edge.send(Frame(line, "request", str(number).encode(), method))
    desk.outbox.take_all()
    desk.lose(None)
    desk.renew()
    assert desk.sent() == [*desk.hello, *desk.ready]
    assert desk.edge.state is State.READY
