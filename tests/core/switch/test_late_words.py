"""What a shared server says late, about a call that is over: its owner hears it or nobody, never another session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.label import PRINCIPAL
from dragoman.core.settings import RestartPolicy
from tests.core.switch.talk import Heard, Talk
from tests.core.switch.test_questions import ALL, TASK, elicit
from tests.core.switch.test_restarts import crash, return_again
from tests.core.switch.test_shared import call
from tests.proxy.conversation import an_error, error, initialize, notification, request, result

LOG = notification("notifications/message", level="info", data="about a")
CANCEL = notification("notifications/cancelled", requestId=1)


def cancels(talk: Talk) -> None:
    talk.says("a", CANCEL)


def leaves(talk: Talk) -> None:
    talk.leaves("a")


def is_failed_by_the_transport(talk: Talk) -> None:
    number = talk.switch._desk.loans.latest
    talk.fails(number, "nothing came for 300 s")


ENDINGS = [cancels, leaves, is_failed_by_the_transport]


def left_unanswered(ending: Callable[[Talk], None], method: str = "tools/call", **settings: Any) -> tuple[Talk, int]:
    """Let a call of `a` end without an answer; give the number that the server knows it by. `b` is there."""
    talk = Talk(**settings)
    number = talk.opens("a", "b", **ALL)
    talk.says("a", request(1, method, name="t"))
    ending(talk)
    talk.time_passes(3600)
    return talk, number


def refused(heard: Heard, key: Any = 0) -> bool:
    [(to, frame)] = heard
    return to == "server" and frame["id"] == key and "error" in frame


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_late_question_is_not_given_to_the_only_call(ending: Callable[[Talk], None]) -> None:
    talk, _ = left_unanswered(ending)
    talk.says("b", call(1))
    assert refused(talk.says("server", elicit(0)))
    assert talk.switch.counters.refused == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_late_log_message_is_not_given_to_the_only_call(ending: Callable[[Talk], None]) -> None:
    talk, _ = left_unanswered(ending)
    talk.says("b", call(1))
    assert talk.says("server", LOG) == []
    assert talk.switch.counters.dropped == 1


@pytest.mark.parametrize("answer", [b'"%d"', b"%d"])
def test_a_late_answer_may_be_garbled_or_have_another_type(answer: bytes) -> None:
    talk, number = left_unanswered(cancels)
    talk.says("b", call(1))
    talk.says("server", b'{"jsonrpc":"2.0","x":1,"id":%s,"result":[]}\n' % (answer % number))
    assert talk.says("server", elicit(0)) == [("b", elicit(0))]


def test_progress_of_what_nobody_waits_for_reaches_nobody() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", request(1, "tools/call", name="t", _meta={"progressToken": "p"}))
    progress = notification("notifications/progress", progressToken=number, progress=1)
    assert talk.says("server", progress) == [
        ("a", notification("notifications/progress", progressToken="p", progress=1))
    ]
    cancels(talk)
    assert talk.says("server", progress) == []


def of_principals(**names: str) -> tuple[Talk, int]:
    """Let sessions of these principals open, and call something that is answered."""
    talk = Talk()
    for name, principal in names.items():
        before = PRINCIPAL.set(principal)
        talk.opens(name, **ALL)
        PRINCIPAL.reset(before)
    for name in names:
        ((_, asked),) = talk.says(name, call(1))
        talk.says("server", result(asked["id"], {}))
    return talk, asked["id"] + 1


def test_a_question_that_comes_after_its_call_was_answered_reaches_no_other_principal() -> None:
    talk, number = of_principals(a="ada", b="bob")
    talk.says("b", call(2))
    assert refused(talk.says("server", elicit(0)))
    assert talk.streams(number, elicit(1)) == [("b", elicit(1))], "the stream says whose it is"
    assert talk.says("a", call(2)) == [("server", call(number + 1))], "nobody waits for a turn that helps nobody"
    talk.leaves("a")
    assert refused(talk.says("server", elicit(2)), 2)


@pytest.mark.parametrize("principal", ["ada", ""])
def test_one_principal_may_be_asked_in_another_session(principal: str) -> None:
    talk, _ = of_principals(a=principal, b=principal)
    talk.says("b", call(2))
    assert talk.says("server", elicit(0)) == [("b", elicit(0))]


def test_a_principal_that_has_called_nothing_is_no_reason_to_refuse() -> None:
    talk, _ = of_principals(a="ada")
    before = PRINCIPAL.set("bob")
    talk.opens("b", **ALL)
    PRINCIPAL.reset(before)
    ((_, listed),) = talk.says("b", request(1, "tools/list"))
    talk.says("server", result(listed["id"], {"tools": []}))
    talk.says("a", call(2))
    assert talk.says("server", elicit(0)) == [("a", elicit(0))]


def test_a_session_is_asked_about_what_it_cancelled_itself() -> None:
    talk, _ = left_unanswered(cancels)
    talk.says("a", call(2))
    assert talk.says("server", elicit(0)) == [("a", elicit(0))]


def test_the_stream_of_another_call_still_says_whose_it_is() -> None:
    talk, number = left_unanswered(leaves)
    talk.says("b", call(1))
    assert talk.streams(number + 1, elicit(0)) == [("b", elicit(0))]
    assert talk.streams(number + 1, LOG) == [("b", LOG)]


def test_what_lists_and_looks_up_makes_nobody_suspect_of_a_call() -> None:
    talk, _ = left_unanswered(cancels, "tools/list")
    talk.says("b", request(1, "tools/list"))
    assert refused(talk.says("server", elicit(0)))
    talk.says("b", call(2))
    assert talk.says("server", elicit(1)) == [("b", elicit(1))]


@pytest.mark.parametrize("method", ["prompts/get", "resources/read", "completion/complete", "vendor/do"])
def test_whatever_might_ask_makes_suspect(method: str) -> None:
    talk, _ = left_unanswered(leaves, method)
    talk.says("b", call(1))
    assert refused(talk.says("server", elicit(0)))


def test_the_id_of_what_was_cancelled_is_free_again_and_its_answer_reaches_nobody() -> None:
    talk, number = left_unanswered(cancels, calls=1)
    assert talk.says("a", call(1)) == [("server", call(number + 1))]
    assert talk.says("server", result(number, {"late": True})) == []
    assert talk.says("server", result(number + 1, {})) == [("a", result(1, {}))]


def test_of_too_many_suspects_the_owners_stay_suspect() -> None:
    talk = Talk(suspects=2)
    number = talk.opens("a", "b", **ALL)
    for key in range(3):
        talk.says("a", call(key))
        talk.says("a", notification("notifications/cancelled", requestId=key))
    talk.time_passes(3600)
    assert len(talk.switch._desk.loans.suspects._by_key) == 2
    for key in range(3):
        talk.says("server", result(number + key, {}))
    talk.says("a", call("mine"))
    assert talk.says("server", elicit(0)) == [("a", elicit(0))]
    talk.says("server", result(number + 3, {}))
    talk.says("b", call(1))
    assert refused(talk.says("server", elicit(1), b""), 1)
    talk.leaves("a")
    assert refused(talk.says("server", elicit(2)), 2)


def test_the_next_server_has_had_the_requests_of_nobody() -> None:
    talk = Talk(restart=RestartPolicy(attempts=3))
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1, task={}))
    talk.says("server", result(number, {"task": {"taskId": "t1"}}))
    talk.says("b", request(1, "tools/list"))
    crash(talk)
    return_again(talk)
    talk.says("b", call(2))
    assert talk.says("server", LOG) == [("b", LOG)]
    related = notification("notifications/vendor", _meta=TASK)
    assert talk.says("server", related) == [], "it may be a task of somebody else now"


def test_who_is_alone_is_not_asked_what_may_be_about_a_caller_that_has_left() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("server", result(number, {}))
    talk.leaves("a")
    assert refused(talk.says("server", elicit(0)))
    assert talk.says("server", LOG) == []


def test_who_is_alone_is_asked_where_nobody_else_ever_called() -> None:
    talk = Talk()
    talk.opens("a", "b", **ALL)
    talk.leaves("a")
    assert talk.says("server", elicit(0)) == [("b", elicit(0))]


def test_what_comes_on_a_stream_after_its_answer_is_not_given_to_the_only_call() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.streams(number, result(number, {}))
    talk.says("b", call(1))
    assert refused(talk.streams(number, elicit(0)))
    assert talk.streams(number, LOG) == []
    assert talk.switch.counters.dropped == 1
    assert not talk.switch.asks


# Streams


def test_what_comes_in_one_array_with_its_answer_is_not_given_to_the_only_call() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("b", call(1))
    heard = talk.streams(number, [result(number, {}), elicit(0), LOG])
    assert heard[0] == ("a", result(1, {}))
    assert refused(heard[1:])


def test_a_stream_that_is_not_known_is_nobodys() -> None:
    talk = Talk()
    number = talk.opens("a", **ALL)
    talk.says("a", call(1))
    assert refused(talk.streams(number + 70, elicit(0)))
    assert talk.streams(1, LOG) == []  # that of `initialize`


def test_a_stream_of_what_was_cancelled_is_still_its_owners() -> None:
    talk, number = left_unanswered(cancels)
    talk.says("b", call(1))
    assert talk.streams(number, elicit(0)) == [("a", elicit(0))]
    assert talk.streams(number, LOG) == [("a", LOG)]


def test_the_stream_of_a_session_that_has_left_is_nobodys() -> None:
    talk, number = left_unanswered(leaves)
    talk.says("b", call(1))
    assert refused(talk.streams(number, elicit(0)))
    assert talk.streams(number, LOG) == []


def test_there_are_no_roots_for_what_is_over() -> None:
    talk = Talk()
    number = talk.opens("a", **ALL)
    talk.says("a", call(1))
    talk.streams(number, result(number, {}))
    assert talk.streams(number, request("r", "roots/list")) == [("server", result("r", {"roots": []}))]


# Tasks and elicitations


def test_what_names_a_task_that_is_not_known_is_not_given_to_the_only_call() -> None:
    talk = Talk()
    talk.opens("a", "b", **ALL)
    talk.says("b", call(1))
    assert refused(talk.says("server", elicit(0, _meta=TASK)))
    for related in ({"taskId": 5}, [], None):
        meta = {"io.modelcontextprotocol/related-task": related}
        assert talk.says("server", notification("notifications/vendor", _meta=meta)) == []


def test_a_task_that_is_not_known_yet_is_told_by_its_stream() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1, task={}))
    talk.says("b", call(1))
    assert talk.streams(number, elicit(0, _meta=TASK)) == [("a", elicit(0, _meta=TASK))]


def test_an_elicitation_that_two_sessions_were_sent_to_is_nobodys() -> None:
    talk = Talk()
    number = talk.opens("a", "b", elicitation={"url": {}})
    needed = {"elicitations": [{"elicitationId": "e", "url": "https://y"}]}
    for offset, name in enumerate("ab"):
        talk.says(name, call(1))
        talk.says("server", error(number + offset, -32042, "first", **needed))
    assert talk.says("server", notification("notifications/elicitation/complete", elicitationId="e")) == []


def test_an_id_that_is_asked_twice_is_not_answered_by_two() -> None:
    talk = Talk()
    number = talk.opens("a", "b", **ALL)
    talk.says("a", call(1))
    talk.says("b", call(1))
    assert talk.streams(number, elicit(0)) == [("a", elicit(0))]
    [(to, frame)] = talk.streams(number + 1, elicit(0))
    assert to == "server"
    assert an_error(None, -32600, "not answered yet")(frame)
    assert talk.says("a", result(0, {})) == [("server", result(0, {}))]


def test_a_transport_that_gives_up_the_opening_or_what_is_answered_makes_nobody_suspect() -> None:
    talk = Talk()
    talk.says("a", initialize("2025-11-25", key="i"))
    talk.fails(77, "no")
    assert len(talk.switch._desk.loans.suspects._by_key) == 0
    talk.fails(1, "no")
    assert len(talk.switch._desk.loans.suspects._by_key) == 0


# The log


def test_a_flood_of_refusals_is_no_flood_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk()
    talk.opens("a", "b", **ALL)
    talk.says("a", call(0))
    talk.says("b", call(0))
    caplog.clear()
    for key in range(100):
        talk.says("server", elicit(key))
        talk.says("a", request(key + 1, "notifications/vendor"))
        talk.says("a", notification("vendor/do"))
    assert [record.levelname for record in caplog.records if "refused" in record.getMessage()] == ["WARNING"] * 2
    assert len([record for record in caplog.records if "dropped" in record.getMessage()]) == 1
    assert (talk.switch.counters.refused, talk.switch.counters.dropped) == (200, 100)
    talk.time_passes(2)
    talk.says("a", notification("vendor/do"))
    assert "99 more" in caplog.text
