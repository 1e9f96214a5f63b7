"""A shared server that is lost and started again: its clients stay."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.settings import RestartPolicy
from tests.core.switch.talk import Talk
from tests.proxy.conversation import initialized, notification, request, result


def crash(talk: Talk) -> Any:
    talk.switch.upstream.close("the server exited with status 1")
    return talk._heard()


def return_again(talk: Talk) -> Any:
    talk.switch.upstream.expire()
    ((name, offered),) = talk._heard()
    assert name == "server"
    return talk.says("server", initialized("2025-11-25", offered["id"], tools={}))


def error(answer: Any) -> Any:
    return answer["id"], "being started again" in answer["error"]["message"]


def test_a_question_is_taken_back_and_the_next_server_may_ask() -> None:
    talk = Talk(restart=RestartPolicy(attempts=3))
    number = talk.opens("A", sampling={})
    talk.says("A", request(1, "tools/call", name="a", arguments={}))
    question = request(7, "sampling/createMessage", messages=[], maxTokens=1)
    assert talk.streams(number, question) == [("A", question)]
    heard = crash(talk)
    assert heard[0][1]["id"] == 1
    assert heard[1] == (
        "A",
        notification("notifications/cancelled", requestId=7, reason="the server that asked is gone"),
    )
    return_again(talk)
    assert talk.says("A", result(7, {})) == [], "an answer to a server that is gone goes nowhere"
    ((_, call),) = talk.says("A", request(2, "tools/call", name="a", arguments={}))
    assert talk.streams(call["id"], question) == [("A", question)]


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_call_that_was_given_up_before_the_next_server_was_there_is_suspected_of_nothing(is_cancelled: bool) -> None:
    talk = Talk(restart=RestartPolicy(attempts=3))
    talk.opens("A", "B", sampling={})
    crash(talk)
    assert talk.says("A", request(1, "tools/call", name="a", arguments={})) == []
    if is_cancelled:
        talk.says("A", notification("notifications/cancelled", requestId=1))
    else:
        talk.leaves("A")
    sent = [frame.get("method") for name, frame in return_again(talk) if name == "server"]
    assert sent == ["notifications/initialized"]
    talk.time_passes(60)
    talk.says("B", request(1, "tools/call", name="b", arguments={}))
    question = request(7, "sampling/createMessage", messages=[], maxTokens=1)
    assert talk.says("server", question) == [("B", question)]


def test_calls_that_wait_for_their_turn_go_to_the_next_server() -> None:
    talk = Talk(restart=RestartPolicy(attempts=3), asks=True)
    talk.opens("A", "B")
    talk.says("A", request(1, "tools/call", name="a", arguments={}))
    assert talk.says("B", request(1, "tools/call", name="b", arguments={})) == []
    assert [(name, error(answer)) for name, answer in crash(talk)] == [("A", (1, True))]
    sent = [frame for name, frame in return_again(talk) if name == "server"]
    assert sent[-1]["params"]["name"] == "b"


def test_without_the_policy_all_sessions_end() -> None:
    talk = Talk()
    talk.opens("A", "B")
    crash(talk)
    assert set(talk.ended) == {"A", "B"}


def test_a_call_that_the_lost_server_never_answered_is_suspected_of_nothing_any_more() -> None:
    talk = Talk(restart=RestartPolicy(attempts=3))
    talk.opens("A", "B", sampling={})
    talk.says("A", request(1, "tools/call", name="a", arguments={}))
    talk.says("A", notification("notifications/cancelled", requestId=1))
    talk.time_passes(60)
    crash(talk)
    return_again(talk)
    talk.says("B", request(1, "tools/call", name="b", arguments={}))
    question = request(7, "sampling/createMessage", messages=[], maxTokens=1)
    assert talk.says("server", question) == [("B", question)]
