"""An upstream edge whose server is lost or goes silent: when it is started again, and what its clients are told."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.commands import Close, Command, Open, Send, Wake
from dragoman.core.edges.lifecycle import UpstreamState as State
from dragoman.core.exact_json import decode
from dragoman.core.settings import RestartPolicy
from tests.core.upstream_talk import NEWEST, UpstreamTalk
from tests.proxy.conversation import initialized, notification, request, result

TWICE = RestartPolicy(attempts=2, first_s=1.0, longest_s=3.0)


class Clients(UpstreamTalk):
    """A server that ends, and may come back."""

    def crash(self) -> None:
        self.edge.close("the server exited with status 1")


def waits(commands: list[Command]) -> list[float | None]:
    return [command.after_s for command in commands if isinstance(command, Wake)]


def welcome(**capabilities: Any) -> Any:
    answer = initialized(NEWEST)
    answer["result"]["capabilities"] = capabilities
    return answer


def test_a_session_ends_with_its_server_unless_somebody_wants_it_started_again() -> None:
    clients = Clients()
    clients.crash()
    assert clients.end == "the server exited with status 1"
    assert clients.edge.state is State.LOST
    assert clients.interruptions == []


def test_the_server_is_started_again_and_gets_the_same_session() -> None:
    clients = Clients(restart=TWICE)
    clients.say(request(5, "resources/subscribe", uri="a:1"))
    clients.say(request(6, "tools/list"))
    assert len(clients.bodies()) == 2
    clients.crash()
    assert len(clients.interruptions) == 1, "who had asked is told: it may have run"
    commands = clients.commands()
    assert [type(command) for command in commands] == [Close, Wake]
    assert waits(commands) == [1.0]

    clients.say(request(7, "prompts/list"))
    assert clients.commands() == [], "there is nobody to say it to"
    clients.edge.expire()
    commands = clients.commands()
    assert isinstance(commands[0], Open)
    assert [decode(frame.raw)["method"] for command in commands if isinstance(command, Send) for frame in command.frames
            ] == ["initialize"]  # fmt: skip
    clients.hear(welcome(tools={"listChanged": True}, prompts={}))
    again = clients.bodies()
    assert [body["method"] for body in again] == ["notifications/initialized", "resources/subscribe"]
    clients.hear(result(again[1]["id"], {}))
    assert [body["method"] for body in clients.bodies()] == ["prompts/list"], "and never tools/list, which may have run"
    assert clients.told == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}},
        notification("notifications/resources/updated", uri="a:1"),
    ]
    assert clients.edge.state is State.READY
    assert clients.edge.recovery.restarts == 1
    assert clients.end is None


def test_an_answer_to_what_the_server_asked_before_is_not_told_to_the_next_one() -> None:
    clients = Clients(restart=TWICE)
    clients.crash()
    clients.commands()
    clients.say(result("q", {}))
    clients.edge.expire()
    clients.say(result("q", {}))
    assert [body["method"] for body in clients.bodies()] == ["initialize"]
    clients.hear(welcome())
    assert [body["method"] for body in clients.bodies()] == ["notifications/initialized"]


def test_pauses_grow_and_attempts_end() -> None:
    clients = Clients(restart=RestartPolicy(attempts=3, first_s=1.0, longest_s=3.0))
    pauses = []
    for _ in range(3):
        clients.crash()
        assert clients.end is None
        pauses += waits(clients.commands())
        clients.edge.expire()
        clients.commands()
    clients.crash()
    assert pauses == [1.0, 2.0, 3.0]
    assert clients.end is not None
    assert "lost 4 times in a row" in clients.end


def test_chance_shortens_a_pause_by_half_at_most() -> None:
    assert RestartPolicy(9, 4.0, 60.0, lambda: 0.0).pause_s(1) == 4.0
    assert RestartPolicy(9, 4.0, 60.0, lambda: 0.5).pause_s(1) == 6.0
    assert RestartPolicy(9, 4.0, 60.0).pause_s(10_000) == 60.0


def test_what_waits_for_a_server_that_is_lost_again_fails() -> None:
    clients = Clients(restart=TWICE)
    clients.crash()
    clients.say(request(7, "prompts/list"))
    clients.edge.expire()
    clients.crash()
    (answer,) = clients.told
    assert answer["id"] == 7
    assert "being started again" in answer["error"]["message"]
    assert clients.edge.state is State.RECOVERING


def test_a_server_that_does_not_open_a_session_in_time_is_started_again() -> None:
    clients = Clients(restart=TWICE, init_timeout_s=7.0)
    clients.crash()
    clients.commands()
    clients.edge.expire()
    assert waits(clients.commands()) == [7.0]
    clients.edge.expire()
    assert clients.edge.state is State.RECOVERING
    assert "within 7 s" in clients.edge.recovery.trouble


def test_a_server_that_leaves_a_subscription_unanswered_is_not_started_again() -> None:
    clients = Clients(restart=TWICE, init_timeout_s=7.0)
    clients.say(request(5, "resources/subscribe", uri="a:1"))
    clients.crash()
    clients.edge.expire()
    clients.commands()
    clients.hear(welcome())
    assert waits(clients.commands()) == [5.0]
    clients.edge.expire()
    assert clients.edge.state is State.READY
    assert not clients.edge.recovery.is_paused
    assert waits(clients.commands()) == [None, 3.0], "what counts is how long the server has been open"


def test_attempts_count_anew_once_the_server_has_been_open_for_long() -> None:
    clients = Clients(restart=RestartPolicy(attempts=1, first_s=1.0, longest_s=3.0))
    for _ in range(5):
        clients.crash()
        clients.edge.expire()
        clients.hear(welcome())
        assert clients.edge.state is State.READY
        assert waits(clients.commands())[-1] == 3.0
        clients.edge.expire()
    assert clients.edge.recovery.restarts == 5
    clients.crash()
    clients.edge.expire()
    clients.hear(welcome())
    clients.crash()
    assert clients.end is not None, "it was not open for long"


def test_with_health_checks_too_a_server_must_be_open_for_long() -> None:
    clients = Clients(restart=RestartPolicy(attempts=1, first_s=1.0, longest_s=3.0), health_s=2.0)
    clients.crash()
    clients.edge.expire()
    clients.hear(welcome())
    clients.edge.expire()
    clients.crash()
    assert clients.end is not None


def test_a_silent_server_is_asked_and_then_counts_as_lost() -> None:
    clients = Clients(health_s=5.0)
    assert waits(clients.opening) == [5.0]
    clients.edge.expire()  # it had just agreed to the session
    assert waits(clients.commands()) == [5.0]
    clients.edge.expire()
    (ping,) = clients.bodies()
    assert ping["method"] == "ping"
    clients.edge.expire()
    assert clients.end is not None
    assert "10 s" in clients.end


def test_a_silent_server_is_started_again_where_that_is_wanted() -> None:
    clients = Clients(health_s=5.0, restart=TWICE)
    for _ in range(3):
        clients.edge.expire()
    assert clients.edge.state is State.RECOVERING
    assert any(isinstance(command, Close) for command in clients.commands()), "the silent one is closed at once"


@pytest.mark.parametrize("kind", ["result", "error"])
def test_the_answer_to_our_ping_is_ours_and_shows_that_the_server_is_there(kind: str) -> None:
    clients = Clients(health_s=5.0)
    clients.edge.expire()
    clients.edge.expire()
    (ping,) = clients.bodies()
    content = {} if kind == "result" else {"code": -32601, "message": "no ping"}
    clients.hear({"jsonrpc": "2.0", "id": ping["id"], kind: content})
    assert clients.told == []
    clients.edge.expire()
    assert clients.end is None


def test_who_talks_is_not_asked() -> None:
    clients = Clients(health_s=5.0)
    clients.commands()
    for _ in range(3):
        clients.hear(notification("notifications/tools/list_changed"))
        clients.edge.expire()
        assert clients.bodies() == []
    assert len(clients.told) == 3


def test_what_waits_fails_too_where_the_server_is_lost_before_it_has_the_old_session_again() -> None:
    clients = Clients(restart=TWICE)
    clients.say(request(5, "resources/subscribe", uri="a:1"))
    clients.crash()
    clients.say(request(7, "prompts/list"))
    clients.edge.expire()
    clients.hear(welcome())
    assert clients.edge.state is State.RECOVERING
    clients.crash()
    (answer,) = clients.told
    assert (answer["id"], "error" in answer) == (7, True)


def test_a_server_is_looked_after_in_its_new_session_too() -> None:
    clients = Clients(health_s=5.0)
    clients.edge.recovery.lose_session(None, None, renewed=False)
    clients.edge.expire()  # while there is no session: nothing to look after
    clients.commands()
    clients.hear(welcome())
    assert waits(clients.commands()) == [5.0]
    for _ in range(3):
        clients.edge.expire()
    assert clients.end is not None
