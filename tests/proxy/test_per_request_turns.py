"""Which calls go on at a server that asks without saying what about, and whose its questions are then."""

from __future__ import annotations

import pytest

from dragoman.core.switch.to_session import loans
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    notification,
    request,
    result,
    server,
    time_passes,
)
from tests.proxy.test_per_request import asks
from tests.proxy.test_per_request_asked import ACCEPTED, DONE, DONE_NEW, FORM, Client, begin, call, elicit
from tests.proxy.validity import hold

UNCLEAR = "not clear"
TASKS = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


def sent(key: int, name: str = "search") -> Step:
    return expect_to_server(lambda frame: (frame["id"], frame["params"]["name"]) == (key, name))


def told_of(key: int) -> Step:
    """The server hears that nobody waits for this call."""
    return expect_to_server(
        lambda frame: frame["method"] == "notifications/cancelled" and frame["params"]["requestId"] == key
    )


def cancels(key: int) -> Step:
    return client(notification("notifications/cancelled", requestId=key))


def parked(peer: Client) -> list[Step]:
    """The first call waits for its client."""
    return [*begin(), server(elicit(7)), peer.is_asked(1, **{"question-1": "Who?"})]


def task() -> list[Step]:
    """The first call is a task that waits for its client."""
    return [
        *begin(has=TASKS),
        server(elicit(7)),
        expect_to_client(lambda frame: frame["result"]["resultType"] == "task"),
    ]


def comes_back(peer: Client, key: int) -> list[Step]:
    return [
        peer.retries(key, **{"question-1": ACCEPTED}),
        expect_to_server(result(7, ACCEPTED)),
        server(result(1, DONE)),
        expect_to_client(result(key, DONE_NEW)),
    ]


def test_a_call_that_waits_for_its_client_holds_nobody_up() -> None:
    peer = Client()
    hold(
        [
            *parked(peer),
            client(call(2, name="search")),
            sent(2),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            *comes_back(peer, 3),
        ],
        whose={2: "Ben"},
    )


def test_one_that_leaves_all_calls_waiting_keeps_nobody_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that opens a connection for each request may have all places: none of them is taken back."""
    monkeypatch.setattr(loans, "TURN_S", 0.1)
    peer = Client()
    hold(
        [
            *parked(peer),
            client(call(2, name="search")),
            sent(2),
            server(elicit(8, "And you?")),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            *comes_back(peer, 3),
        ],
        most_parked=1,
        whose={1: ("a",), 2: ("b",), 3: ("c",)},
    )


def test_a_task_that_waits_for_its_client_holds_nobody_up() -> None:
    tasks = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    hold(
        [
            *begin(has=tasks),
            server(elicit(7)),
            expect_to_client(lambda frame: frame["result"]["resultType"] == "task"),
            client(call(2, name="search")),
            sent(2),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ],
        whose={2: "Ben"},
    )


def test_a_call_behind_one_that_asks_goes_on_as_soon_as_that_waits_for_its_client() -> None:
    hold(
        [
            *begin(name="first"),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
            server(elicit(7)),  # from here on calls take turns
            expect_to_server(an_error(7, -32601, "no call is open")),
            client(call(2, has=TASKS)),
            sent(2, "greet"),
            client(call(3, name="search")),
            time_passes(0.1),
            server(elicit(8)),
            sent(3),
            expect_to_client(lambda frame: frame["id"] == 2 and frame["result"]["resultType"] == "task"),
        ],
        questions="task",
    )


def test_a_task_whose_question_nobody_answers_is_not_given_up_for_other_calls() -> None:
    """There is a time for tasks."""
    hold([*task(), client(call(2)), sent(2, "greet"), time_passes(0.5)], questions="task", parked_s=0.2)


def test_a_tool_that_has_asked_waits_for_those_that_wait_for_their_clients() -> None:
    """Others overtake it, for as long as it cannot go anyway."""
    hold(
        [
            *task(),
            client(call(2)),
            client(call(3, name="search")),
            sent(3),
            server(result(3, DONE)),
            expect_to_client(result(3, DONE_NEW)),
            server(result(1, DONE)),
            expect_to_server(an_error(7, -32603, "the call is over")),
            sent(2, "greet"),
        ],
        questions="task",
    )


def test_calls_that_are_under_way_still_go_one_after_the_other() -> None:
    hold(
        [
            *task(),
            client(call(2, name="search")),
            client(call(3, name="find")),
            sent(2),
            time_passes(0.05),
            server(result(2, DONE)),
            sent(3, "find"),
            expect_to_client(result(2, DONE_NEW)),
        ],
        questions="task",
    )


def test_a_question_beside_a_call_of_somebody_else_is_refused() -> None:
    """The server may answer a call without waiting for what it has asked in it: who is left proves nothing."""
    peer = Client()
    hold(
        [
            *parked(peer),
            client(call(2, name="search")),
            sent(2),
            server(elicit(8, "And you?")),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
            *comes_back(peer, 3),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ],
        whose={2: "Ben"},
    )


def test_a_question_is_not_put_to_whoever_is_left_if_the_other_was_cancelled() -> None:
    """The server may have asked on behalf of the one that is gone."""
    hold(
        [
            *begin(),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(elicit(7)),
            time_passes(0.05),
            cancels(1),
            expect_to_server(an_error(7, -32601, UNCLEAR)),
            told_of(1),
        ],
        whose={2: "Ben"},
    )


def test_a_question_that_crosses_a_cancellation_is_put_to_nobody_else() -> None:
    hold(
        [
            *begin(),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            cancels(1),
            told_of(1),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, UNCLEAR)),
        ],
        whose={2: "Ben"},
    )


def test_the_next_call_waits_a_moment_for_the_end_of_one_that_was_cancelled() -> None:
    hold(
        [
            *task(),
            server(result(1, DONE)),
            expect_to_server(an_error(7, -32603, "the call is over")),
            client(call(3)),
            sent(2, "greet"),
            client(call(4)),
            cancels(3),
            told_of(2),
            server(elicit(8)),
            expect_to_server(an_error(8, -32603, "nobody waits")),
            sent(3, "greet"),
        ],
        questions="task",
    )


def test_calls_of_others_wait_for_none() -> None:
    """Nobody is asked any more, so there is nothing to wait for."""
    hold(
        [
            *parked(Client()),
            client(call(2)),
            sent(2, "greet"),
            client(call(3)),
            sent(3, "greet"),
            server(elicit(8)),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
        ],
        whose={2: "Ben", 3: "Cem"},
    )


def test_a_question_after_the_answer_to_its_call_reaches_nobody_else() -> None:
    """It may be about the call that is over, whose client is somebody else."""
    hold(
        [
            *begin(),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
            client(call(2)),
            sent(2, "greet"),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, UNCLEAR)),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ],
        whose={1: "Ann", 2: "Ben"},
    )


def test_who_only_lists_keeps_nobody_else_from_being_asked() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            client(asks("list", "tools/list", has=FORM)),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            server(result(2, {"tools": []})),
            expect_to_client(lambda frame: frame["id"] == "list"),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
        ],
        whose={1: "Ann", "list": "Ben"},
    )


def test_as_many_questions_as_calls_that_nobody_can_tell_apart_do_not_all_wait() -> None:
    hold(
        [
            *begin(has=TASKS),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(elicit(7)),
            server(elicit(8)),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
            server(result(2, DONE)),
            expect_to_client(lambda frame: (frame["id"], frame["result"]["resultType"]) == (1, "task")),
            expect_to_client(result(2, DONE_NEW)),
        ],
        questions="task",
    )


def test_as_many_questions_as_calls_are_left_do_not_all_wait_either() -> None:
    """What holds for two calls holds for the two that are left of three."""
    hold(
        [
            *begin(has=TASKS),
            client(call(2)),
            client(call(3)),
            sent(2, "greet"),
            sent(3, "greet"),
            *(server(elicit(number)) for number in (7, 8, 9)),
            expect_to_server(an_error(9, -32601, UNCLEAR)),
            server(result(3, DONE)),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
            expect_to_client(result(3, DONE_NEW)),
            server(result(2, DONE)),
            expect_to_client(lambda frame: (frame["id"], frame["result"]["resultType"]) == (1, "task")),
            expect_to_client(result(2, DONE_NEW)),
        ],
        questions="task",
    )


def test_a_question_that_waits_too_long_is_refused() -> None:
    hold(
        [
            *begin(),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, UNCLEAR)),
        ],
        parked_s=0.2,
        whose={2: "Ben"},
    )


def test_a_question_that_is_taken_back_waits_no_longer() -> None:
    hold(
        [
            *begin(has=TASKS),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(elicit(7)),
            server(notification("notifications/cancelled", requestId=7)),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
            time_passes(0.1),
        ],
        questions="task",
    )


def test_a_server_that_asks_without_end_beside_a_call_that_waits_is_refused() -> None:
    hold(
        [
            *begin(has=TASKS),
            *(client(call(number)) for number in range(2, 20)),
            *(sent(number, "greet") for number in range(2, 20)),
            *(server(elicit(f"q{number}")) for number in range(17)),
            expect_to_server(an_error("q16", -32601, UNCLEAR)),
        ],
        questions="task",
    )


def test_a_question_of_no_call_is_told_so() -> None:
    asked = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {}}
    hold(
        [
            *begin(),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
            server(asked),
            expect_to_server(an_error(7, -32601, "no call is open")),
        ]
    )


HOME = {"roots": [{"uri": "file:///home"}]}
BOTH = {"roots": {}, "elicitation": {"form": {}}}


def tells_roots(peer: Client) -> list[Step]:
    return [
        *begin(has=BOTH),
        server(request("once", "roots/list")),
        peer.is_asked(1, **{"question-1": None}),
        client(lambda: call(2, has=BOTH, inputResponses={"question-1": HOME}, requestState=peer.state)),
        expect_to_server(result("once", HOME)),
    ]


AGAIN = [server(request("again", "roots/list")), expect_to_server(result("again", HOME))]


def test_roots_that_are_known_are_told_without_a_call() -> None:
    hold(
        [*tells_roots(Client()), server(result(1, DONE)), expect_to_client(result(2, DONE_NEW)), *AGAIN],
        roots_ttl_s=60.0,
    )


def test_roots_that_are_known_are_told_whichever_call_it_is() -> None:
    peer = Client()
    hold(
        [
            *tells_roots(peer),
            server(elicit(7)),
            peer.is_asked(2, **{"question-2": "Who?"}),
            client(call(3, name="search", has=BOTH)),
            sent(2),
            *AGAIN,
        ],
        roots_ttl_s=60.0,
    )


def test_a_call_waits_seconds_at_most_for_one_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server asks about it may be about the other one, too, and is refused: the client has its answer."""
    monkeypatch.setattr(loans, "TURN_S", 0.2)
    hold(
        [
            *task(),
            client(call(2)),
            sent(2, "greet"),
            server(elicit(8)),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ],
        questions="task",
    )


def test_a_call_waits_seconds_at_most_for_one_that_goes_on_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loans, "TURN_S", 0.2)
    hold(
        [*task(), client(call(2, name="search")), sent(2), client(call(3, name="search")), sent(3)],
        questions="task",
    )


def test_a_question_waits_seconds_at_most_for_the_client_of_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loans, "TURN_S", 0.2)
    hold(
        [
            *task(),
            client(call(2, name="search")),
            sent(2),
            server(elicit(8)),
            expect_to_server(an_error(8, -32601, UNCLEAR)),
        ],
        questions="task",
    )
