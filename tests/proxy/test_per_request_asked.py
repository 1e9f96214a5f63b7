"""A server with a handshake asks in the middle of a call, and its per-request client is asked by a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dragoman.core.commands import Outcome
from dragoman.proxy import make_bridging
from tests.proxy.conversation import (
    Step,
    an_error,
    client,
    client_closes,
    error,
    expect_end,
    expect_to_client,
    expect_to_server,
    notification,
    request,
    result,
    server,
    server_closes,
    time_passes,
)
from tests.proxy.test_per_request import IDENTITY, TASKS, asked_what_it_is, asks, opening, settling
from tests.proxy.validity import hold

GAVE_WAY = "another call waits for its client in its place; see --max-parked"
FORM = {"elicitation": {"form": {}}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
DONE = {"content": [{"type": "text", "text": "done"}]}
DONE_NEW = {**DONE, "resultType": "complete", "_meta": IDENTITY}


def elicit(key: Any, message: str = "Who?") -> dict[str, Any]:
    return request(key, "elicitation/create", message=message, requestedSchema=SCHEMA)


class Client:
    """A client that keeps the state which it was given."""

    def __init__(self) -> None:
        self.state: Any = None

    def is_asked(self, key: Any, **questions: Any) -> Step:
        """Expect to be asked; questions by key, with their messages."""

        def matches(frame: Any) -> bool:
            found = frame["result"]
            self.state = found["requestState"]
            said = {name: asked.get("params", {}).get("message") for name, asked in found["inputRequests"].items()}
            return frame["id"] == key and found["resultType"] == "input_required" and said == questions

        return expect_to_client(matches)

    def retries(self, key: Any, *, how: Callable[[str], str] = str, name: str = "greet", **answers: Any) -> Step:
        """Call again with answers and the state."""
        return client(lambda: call(key, name=name, inputResponses=answers, requestState=how(self.state)))


def call(key: Any, *, has: Any = None, name: str = "greet", **params: Any) -> dict[str, Any]:
    return asks(key, "tools/call", has=FORM if has is None else has, name=name, arguments={}, **params)


ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


def begin(key: Any = 1, **how: Any) -> list[Step]:
    settled = settling() if "roots" in how.get("has", ()) else []
    called = expect_to_server(lambda frame: frame["method"] == "tools/call")
    return [client(call(key, **how)), *opening(), *settled, called]


def test_a_question_is_answered_by_a_retry() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            server(result(1, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ]
    )


@pytest.mark.parametrize("capabilities", [FORM, {**FORM, "extensions": {"io.modelcontextprotocol/tasks": {}}}])
def test_the_calls_of_a_principal_that_may_not_come_back_end_at_once(capabilities: Any) -> None:
    hold(
        [
            *begin(has=capabilities),
            server(elicit(7)),
            expect_to_client(lambda frame: frame["result"]["resultType"] in ("input_required", "task")),
            client(notification("notifications/cancelled", reason="revoked")),
            expect_to_server(error(7, -32603, "revoked")),
            expect_to_server(notification("notifications/cancelled", requestId=1, reason="revoked")),
        ],
        whose={1: "Ann", None: "Ann"},
    )


def test_whoever_has_most_calls_that_wait_gives_its_oldest_to_another() -> None:
    peer, other = Client(), Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server({**elicit(8), "params": {**elicit(8)["params"], "_meta": {}}}),
            other.is_asked(2, **{"question-1": "Who?"}),
            client(call(3)),
            expect_to_server(lambda frame: frame["id"] == 3),
            server(elicit(9)),
            expect_to_server(an_error(7, -32603, "--max-parked")),
            expect_to_client(lambda frame: frame["id"] == 3 and frame["result"]["resultType"] == "input_required"),
            peer.retries(4, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(4, -32602, "call-gave-way")),
            other.retries(5, **{"question-1": ACCEPTED}),
            expect_to_server(result(8, ACCEPTED)),
            time_passes(1.1),
            expect_to_server(notification("notifications/cancelled", requestId=1, reason=GAVE_WAY)),
            server(result(2, DONE)),
            expect_to_client(result(5, DONE_NEW)),
        ],
        most_parked=2,
        whose={1: ("a",), 2: ("a",), 3: ("b",), 4: ("c",), 5: ("c",)},
    )


def parks(key: int, peer: Client) -> list[Step]:
    """A call whose client is asked something."""
    called = expect_to_server(lambda frame: (frame["method"], frame["id"]) == ("tools/call", key))
    first = [*begin()] if key == 1 else [client(call(key)), called]
    return [*first, server(elicit(f"about {key}")), peer.is_asked(key, **{"question-1": "Who?"})]


def test_the_oldest_is_the_one_whose_client_was_asked_longest_ago() -> None:
    """A client that has answered, and was asked again, is there: somebody else may have left long ago."""
    peers = [Client(), Client(), Client()]
    hold(
        [
            *parks(1, peers[0]),
            *parks(2, peers[1]),
            peers[0].retries(3, **{"question-1": ACCEPTED}),
            expect_to_server(result("about 1", ACCEPTED)),
            server(elicit("again", "Sure?")),
            peers[0].is_asked(3, **{"question-2": "Sure?"}),
            client(call(4)),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
            server(elicit("third")),
            expect_to_server(an_error("about 2", -32603, "--max-parked")),
            peers[2].is_asked(4, **{"question-1": "Who?"}),
            peers[1].retries(5, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(5, -32602, "call-gave-way")),
        ],
        most_parked=2,
    )


def test_three_questions_in_a_row() -> None:
    peer = Client()
    steps = begin()
    for number in range(1, 4):
        key = f"question-{number}"
        steps += [
            server(elicit(f"q{number}", f"{number}?")),
            peer.is_asked(number, **{key: f"{number}?"}),
            peer.retries(number + 1, **{key: ACCEPTED}),
            expect_to_server(result(f"q{number}", ACCEPTED)),
        ]
    hold([*steps, server(result(1, DONE)), expect_to_client(result(4, DONE_NEW))])


def test_two_questions_at_once_are_put_together() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7, "a")),
            server(elicit(8, "b")),
            peer.is_asked(1, **{"question-1": "a", "question-2": "b"}),
            peer.retries(2, **{"question-2": ACCEPTED}),
            expect_to_server(result(8, ACCEPTED)),
            peer.is_asked(2, **{"question-1": "a"}),
            peer.retries(3, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            server(result(1, DONE)),
            expect_to_client(result(3, DONE_NEW)),
        ]
    )


def test_what_the_server_says_while_nobody_is_there_waits() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            server(notification("notifications/cancelled", requestId=7)),
            server(result(1, DONE)),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_client(result(2, DONE_NEW)),
        ]
    )


def test_a_server_that_asks_what_was_not_declared_gets_the_error_and_the_call_goes_on() -> None:
    hold(
        [
            *begin(has={}),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, "did not declare")),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
        ]
    )


FAILED = {"content": [{"type": "text", "text": "nobody to ask"}], "isError": True}
SAMPLES = request(7, "sampling/createMessage", messages=[], maxTokens=1)


def lacks(key: int, **capabilities: Any) -> Any:
    def matches(frame: Any) -> bool:
        told = frame["error"]
        return (frame["id"], told["code"], told["data"]["requiredCapabilities"]) == (key, -32021, capabilities)

    return matches


@pytest.mark.parametrize(
    ("has", "question", "missing"),
    [
        ({}, elicit(7), {"elicitation": {}}),
        (None, SAMPLES, {"sampling": {}}),
        ({"sampling": {}}, {**SAMPLES, "params": {**SAMPLES["params"], "tools": []}}, {"sampling": {"tools": {}}}),
    ],
)
@pytest.mark.parametrize("answer", [result(1, FAILED), error(1, -32603, "no answer")])
def test_a_call_that_fails_for_what_was_not_declared_says_what_is_missing(
    has: Any, question: Any, missing: Any, answer: Any
) -> None:
    hold(
        [
            *(begin() if has is None else begin(has=has)),
            server(question),
            expect_to_server(an_error(7, -32601, "did not declare")),
            server(answer),
            expect_to_client(lacks(1, **missing)),
        ]
    )


def test_a_parked_call_that_fails_later_says_so_too() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(8)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            server(SAMPLES),
            expect_to_server(an_error(7, -32601, "did not declare")),
            server(result(1, FAILED)),
            expect_to_server(an_error(8, -32603, "is over")),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_client(lacks(2, sampling={})),
        ]
    )


def test_of_two_calls_neither_is_blamed_for_a_question_that_may_be_about_either() -> None:
    hold(
        [
            *begin(has={}),
            client(call(2, has={})),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, "did not declare")),
            server(result(1, FAILED)),
            expect_to_client(lambda frame: frame["id"] == 1 and frame["result"]["isError"]),
        ]
    )


def test_the_server_is_told_what_its_client_declared_and_nothing_else() -> None:
    declared = {"elicitation": {"form": {}}, "roots": {}}
    hold(
        [
            client(call(1, has=declared)),
            *asked_what_it_is(),
            expect_to_server(lambda frame: frame["params"]["capabilities"] == declared),
        ]
    )


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda state: state[:-4] + ("AAAA" if not state.endswith("AAAA") else "BBBB"), "state-unreadable"),
        (lambda state: "x", "state-unreadable"),
        (lambda state: 7, "state-unreadable"),
    ],
)
def test_a_state_that_was_changed_is_refused(how: Callable[[str], Any], reason: str) -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, how=how, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(2, -32602, reason)),
        ]
    )


def test_a_state_is_good_for_one_retry() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            peer.retries(3, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(3, -32602, "state-used")),
            server(result(1, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            peer.retries(4, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(4, -32602, "call-unknown")),
        ]
    )


def test_answers_for_another_call_are_refused() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            client(lambda: call(2, name="other", inputResponses={"question-1": ACCEPTED}, requestState=peer.state)),
            expect_to_client(an_error(2, -32602, "other-request")),
        ]
    )


def test_a_call_whose_client_does_not_return_is_given_up() -> None:
    peer = Client()
    gone = "the client did not come back to answer"
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            expect_to_server(an_error(7, -32603, gone)),
            expect_to_server(notification("notifications/cancelled", requestId=1, reason=gone)),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(2, -32602, "state-expired")),
        ],
        parked_s=0.2,
    )


def test_a_client_that_closes_leaves_nothing_behind() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            client_closes(),
            expect_to_server(lambda frame: frame["method"] == "notifications/cancelled"),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_server_that_asks_about_a_cancelled_call_once_its_client_has_left_is_refused() -> None:
    hold(
        [
            *begin("a"),
            client(asks("b", "tools/list", has=FORM)),
            expect_to_server(request(2, "tools/list")),
            client(notification("notifications/cancelled", requestId="a", reason="enough")),
            expect_to_server(notification("notifications/cancelled", requestId=1, reason="enough")),
            client_closes(),
            time_passes(0),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601)),
            server(result(2, {"tools": []})),
            expect_to_client(lambda frame: frame["id"] == "b"),
            expect_end(Outcome.CLIENT_CLOSED),
        ]
    )


def test_a_cancelled_call_is_cancelled_at_the_server() -> None:
    hold(
        [
            *begin("a"),
            client(notification("notifications/cancelled", requestId="a", reason="enough")),
            expect_to_server(notification("notifications/cancelled", requestId=1, reason="enough")),
            server(result(1, DONE)),
            client(asks(2, "tools/list", has=FORM)),
            expect_to_server(request(2, "tools/list")),
        ]
    )


def test_a_cancelled_call_with_a_question_is_over() -> None:
    hold(
        [
            *begin("a"),
            server(elicit(7)),
            client(notification("notifications/cancelled", requestId="a")),
            expect_to_server(notification("notifications/cancelled", requestId=1)),
            time_passes(0.1),
        ]
    )


def test_a_question_that_belongs_to_one_of_two_calls_of_two_people_is_refused() -> None:
    """Nor is the one asked that is left: the server may speak of the call that it has answered."""
    hold(
        [
            *begin(),
            client(call(2)),
            expect_to_server(lambda frame: frame["id"] == 2),
            server(elicit(7)),
            expect_to_server(an_error(7, -32601, "not clear")),
            server(result(1, DONE)),
            expect_to_client(result(1, DONE_NEW)),
            server(elicit(8)),
            expect_to_server(an_error(8, -32601, "not clear")),
        ],
        whose={2: "Ben"},
    )


def test_a_url_that_has_to_be_visited_first_keeps_nobody_waiting() -> None:
    peer = Client()
    one = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e1"}
    has = {"elicitation": {"url": {}}}

    hold(
        [
            *begin(has=has),
            server(error(1, -32042, "visit", elicitations=[one])),
            peer.is_asked(1, **{"url-1": "Log in"}),
            client(lambda: call(2, has=has, inputResponses={"url-1": {"action": "accept"}}, requestState=peer.state)),
            expect_to_server(request(2, "tools/call", name="greet", arguments={})),
            server(result(2, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            client(lambda: call(3, has=has, inputResponses={"url-1": {"action": "decline"}}, requestState=peer.state)),
            expect_to_client(lambda frame: frame["result"]["isError"]),
        ]
    )


def test_a_url_is_named_to_a_client_that_cannot_be_asked() -> None:
    one = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e1"}
    hold(
        [
            *begin(),
            server(error(1, -32042, "visit", elicitations=[one])),
            expect_to_client(an_error(1, -32603, "https://example.com/login")),
        ]
    )


def test_a_server_that_goes_takes_its_calls_with_it() -> None:
    hold([*begin(), server_closes(), expect_to_client(an_error(1, -32000)), expect_end(Outcome.SERVER_CLOSED)])


def test_what_an_answer_cannot_carry_is_left_out() -> None:
    peer = Client()
    several = {**ACCEPTED, "content": {"name": ["Ada"]}}
    hold(
        [
            client(call(1)),
            *opening("2025-06-18"),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, **{"question-1": several}),
            expect_to_server(result(7, ACCEPTED)),
        ]
    )


def test_a_prompt_whose_url_is_not_visited_is_an_error() -> None:
    one = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e1"}
    has = {"elicitation": {"url": {}}}
    peer = Client()

    def declines() -> dict[str, Any]:
        answers = {"url-1": {"action": "decline"}}
        return asks(2, "prompts/get", has=has, name="p", inputResponses=answers, requestState=peer.state)

    hold(
        [
            client(asks(1, "prompts/get", has=has, name="p")),
            *opening(),
            expect_to_server(lambda frame: frame["method"] == "prompts/get"),
            server(error(1, -32042, "visit", elicitations=[one])),
            peer.is_asked(1, **{"url-1": "Log in"}),
            client(declines),
            expect_to_client(an_error(2, -32603, "not visited")),
        ]
    )


def test_a_url_that_a_list_needs_visited_is_an_error() -> None:
    one = {"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e1"}
    hold(
        [
            client(asks(1, "tools/list")),
            *opening(),
            expect_to_server(lambda frame: frame["method"] == "tools/list"),
            server(error(1, -32042, "visit", elicitations=[one])),
            expect_to_client(an_error(1, -32603, "https://example.com/login")),
        ]
    )


def test_one_of_two_questions_is_taken_back() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7, "a")),
            server(elicit(8, "b")),
            server(notification("notifications/cancelled", requestId=7)),
            server(notification("notifications/cancelled", requestId=99)),
            peer.is_asked(1, **{"question-2": "b"}),
        ]
    )


def test_a_parked_call_goes_on_where_its_client_cannot_be_asked_something_else() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            server(request(8, "sampling/createMessage", messages=[], maxTokens=1)),
            expect_to_server(an_error(8, -32601, "did not declare")),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            server(result(1, DONE)),
            expect_to_client(result(2, DONE_NEW)),
        ]
    )


def test_what_a_question_cannot_carry_is_left_out() -> None:
    peer = Client()
    asked = elicit(7)
    hold(
        [
            *begin(),
            server({**asked, "params": {**asked["params"], "task": {"ttl": 5}}}),
            peer.is_asked(1, **{"question-1": "Who?"}),
        ]
    )


def test_a_call_that_waits_for_its_turn_is_cancelled_without_a_word_to_the_server() -> None:
    hold(
        [
            *begin(has={"elicitation": {"form": {}}, "extensions": TASKS}),
            server(elicit(7)),
            expect_to_client(lambda frame: frame["result"]["resultType"] == "task"),
            client(call("second")),
            client(notification("notifications/cancelled", requestId="second")),
            time_passes(0.05),
            server(result(1, DONE)),
            expect_to_server(an_error(7, -32603, "the call is over")),
        ],
        questions="task",
    )


def test_an_outcome_that_came_while_nobody_was_there_is_kept() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            server(result(1, DONE)),
            expect_to_server(an_error(7, -32603, "the call is over")),
            time_passes(0.05),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_client(result(2, DONE_NEW)),
        ]
    )


def test_an_outcome_that_nobody_fetches_is_dropped() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            server(result(1, DONE)),
            expect_to_server(an_error(7, -32603, "the call is over")),
            time_passes(0.3),
            peer.retries(2, **{"question-1": ACCEPTED}),
            expect_to_client(an_error(2, -32602, "state-expired")),
        ],
        parked_s=0.2,
    )


def test_a_question_that_cannot_be_read_and_one_that_no_client_can_be_asked_are_refused() -> None:
    hold(
        [
            *begin(),
            server(b'{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"a",}}\n'),
            expect_to_server(lambda frame: frame["id"] == 7 and frame["error"]["code"] == -32700),
            server(request(8, "tasks/get", taskId="t")),
            expect_to_server(an_error(8, -32601, "clients cannot be asked")),
        ]
    )


def test_roots_of_one_are_not_told_for_another_that_shares_the_server() -> None:
    has, home, states = {"roots": {}}, {"roots": [{"uri": "file:///home"}]}, []

    def is_asked(frame: Any) -> bool:
        states.append(frame["result"]["requestState"])
        return [asked["method"] for asked in frame["result"]["inputRequests"].values()] == ["roots/list"]

    hold(
        [
            *begin(has=has, name="alice"),
            server(request("r1", "roots/list")),
            expect_to_client(is_asked),
            client(lambda: call(2, has=has, name="alice", inputResponses={"question-1": home}, requestState=states[0])),
            expect_to_server(result("r1", home)),
            server(result(1, DONE)),
            expect_to_client(result(2, DONE_NEW)),
            client(call(3, has=has, name="bob")),
            expect_to_server(lambda frame: frame["method"] == "tools/call"),
            server(request("r2", "roots/list")),
            expect_to_server(an_error("r2", -32601, "not clear")),
        ],
        whose={1: "alice", 2: "alice", 3: "bob"},
        roots_ttl_s=60.0,
    )


def test_a_wall_clock_that_is_set_changes_nothing_for_a_call_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, wall_s = Client(), [1_800_000_000.0]

    def a_day_later(state: str) -> str:
        wall_s[0] += 86_400
        return state

    monkeypatch.setattr(
        "dragoman.proxy.make_bridging", lambda told: replace(make_bridging(told), now=lambda: wall_s[0])
    )
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            peer.retries(2, how=a_day_later, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
        ]
    )


def test_what_is_not_answered_is_asked_again() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            server(elicit(8, "Where?")),
            peer.is_asked(1, **{"question-1": "Who?", "question-2": "Where?"}),
            peer.retries(2, **{"question-2": ACCEPTED}),
            expect_to_server(result(8, ACCEPTED)),
            peer.is_asked(2, **{"question-1": "Who?"}),
            peer.retries(3, **{"question-1": ACCEPTED}),
            expect_to_server(result(7, ACCEPTED)),
            server(result(1, DONE)),
            expect_to_client(result(3, DONE_NEW)),
        ]
    )


def test_a_retry_says_anew_what_may_be_asked() -> None:
    peer = Client()
    hold(
        [
            *begin(),
            server(elicit(7)),
            peer.is_asked(1, **{"question-1": "Who?"}),
            client(lambda: call(2, has={}, inputResponses={"question-1": ACCEPTED}, requestState=peer.state)),
            expect_to_server(result(7, ACCEPTED)),
            server(elicit(8)),
            expect_to_server(an_error(8, -32601, "did not declare")),
        ]
    )


def test_all_questions_of_a_call_are_answered_that_ends_because_one_of_them_cannot_be_put() -> None:
    hold(
        [
            *begin(),
            server(elicit(7)),
            server({"jsonrpc": "2.0", "id": 8, "method": "elicitation/create"}),
            expect_to_server(an_error(8, -32602, "")),
            expect_to_server(an_error(7, -32603, "could not be asked")),
            expect_to_client(an_error(1, -32603, "cannot be asked")),
        ]
    )
