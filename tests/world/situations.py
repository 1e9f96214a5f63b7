"""Which situations worlds have been in: states of the edges and what happened in them, and marks that must be reached.

Two kinds. A *step* is a state of an edge and an event in it, as the tables of `core.edges.lifecycle` have them; each
look into a table is counted. So are the steps of lent requests, as `loan_states` has them. A *mark* is a function over
what was said, like a rule; but it must be true in some world of a long run. A mark that never is, and a step that never
is and has no reason here, fail the run: then worlds do not come to where they should look. To add a mark: write a
function with `@sometimes`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final

from dragoman.core.edges.lifecycle import FRONT, UPSTREAM, Table
from tests.world.loan_states import DRAWN
from tests.world.peers.words import PER_REQUEST, secrets_in
from tests.world.plan import Plan
from tests.world.rules import Asked, Talk, is_asking

Step = tuple[str, str, str]
"""Which edge, its state, and the event."""

Mark = Callable[[Plan, Talk], bool]

MARKS: Final[dict[str, Mark]] = {}
"""All marks, by what they say."""

ENOUGH: Final = 10_500
"""How many worlds of all cells are expected to reach every mark."""


UNREACHED: Final[dict[Step, str]] = {
    (
        "server",
        "recovering",
        "session lost",
    ): "the stream of the new session has to end while it is asked for the old one's",
    ("server", "absent", "closed"): "its connection was closed when it vanished, so nothing more comes of it",
}
"""Steps that no world comes to, and why."""


def sometimes(says: str) -> Callable[[Mark], Mark]:
    """Make a function a mark."""

    def note(function: Mark) -> Mark:
        MARKS[says] = function
        return function

    return note


@contextlib.contextmanager
def steps_counted() -> Iterator[Counter[Step]]:
    """Count every look into the tables of the edges."""
    seen: Counter[Step] = Counter()
    names = {id(FRONT): "client", id(UPSTREAM): "server"}
    look_up = Table.advance

    def advance(table: Table[Any, Any, Any], state: Enum, event: Enum) -> Any:
        found = look_up(table, state, event)
        if found is not None:
            seen[names[id(table)], str(state.value), str(event.value)] += 1
        return found

    Table.advance = advance  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        Table.advance = look_up  # type: ignore[method-assign]


def all_steps() -> list[Step]:
    """Give every step that the tables have, and the pictures of loans."""
    tables = (("client", FRONT), ("server", UPSTREAM))
    of_edges = [(edge, state.value, event.value) for edge, table in tables for state, event in table.transitions]
    return of_edges + [(kind, *step) for kind, steps in DRAWN.items() for step in sorted(steps)]


def marks_of(plan: Plan, talk: Talk) -> list[str]:
    """Give the marks that a world has reached."""
    return [says for says, is_so in MARKS.items() if is_so(plan, talk)]


def show_steps(seen: Counter[Step]) -> str:
    """Give the table of steps: a line for each state, with the events that came in it and those that never did."""
    lines = []
    for edge, state in dict.fromkeys((edge, state) for edge, state, _ in all_steps()):
        events = [event for other, at, event in all_steps() if (other, at) == (edge, state)]
        told = [f"{event} {seen[edge, state, event] or 'NEVER'}" for event in events]
        lines.append(f"  {edge:<11} {state:<20} {', '.join(told)}")
    return "\n".join(lines)


def _requests(talk: Talk) -> Iterator[Asked]:
    return (one for peer in talk.clients() for one in talk.asked[peer])


def _questions(talk: Talk) -> Iterator[Asked]:
    return (one for peer in talk.servers() for one in talk.asked[peer])


def _whats(talk: Talk) -> set[str]:
    return {event.what for event in talk.record.events}


def _says(talk: Talk, words: str) -> bool:
    return any(words in text for _, text in talk.record.log)


@sometimes("a question is answered")
def _question_answered(plan: Plan, talk: Talk) -> bool:
    return any("result" in answer.frame for one in _questions(talk) for answer in one.answers)


@sometimes("a question is refused")
def _question_refused(plan: Plan, talk: Talk) -> bool:
    return any("error" in answer.frame for one in _questions(talk) for answer in one.answers)


@sometimes("a call without a session is asked something, and comes back")
def _comes_back(plan: Plan, talk: Talk) -> bool:
    return any("inputResponses" in one.params for one in _requests(talk))


@sometimes("a client of one era is asked by a server of the other")
def _asked_across(plan: Plan, talk: Talk) -> bool:
    eras = {talk.record.revisions.get(peer) == PER_REQUEST for peer in talk.servers()}
    return eras == {False} and any(is_asking(answer.frame) for one in _requests(talk) for answer in one.answers)


@sometimes("an answer crosses its cancellation")
def _answer_crosses(plan: Plan, talk: Talk) -> bool:
    return any(
        one.cancelled is not None and answer.turn > one.cancelled.turn
        for one in _requests(talk)
        for answer in one.answers
    )


@sometimes("a client leaves while a server works for it")
def _leaves_at_work(plan: Plan, talk: Talk) -> bool:
    return "is cut" in _whats(talk) and any(not one.answers for one in _requests(talk))


@sometimes("a server dies with a call, and another run goes on")
def _dies_and_goes_on(plan: Plan, talk: Talk) -> bool:
    return _says(talk, "is being started again") or any(
        "started again" in str(answer.frame) for one in _requests(talk) for answer in one.answers
    )


@sometimes("a question of a server that died is answered late")
def _late_answer(plan: Plan, talk: Talk) -> bool:
    died = {event.peer: event.turn for event in talk.record.events if event.what == "dies"}
    marks = {
        mark for one in _questions(talk) if not one.answers and one.asked.peer in died for mark in secrets_in(one.frame)
    }
    return any(
        event.is_said and "result" in event.frame and marks & set(secrets_in(event.frame["result"]))
        for peer in talk.clients()
        for event in talk.by_peer[peer]
        if isinstance(event.frame, dict)
    )


@sometimes("a server forgets its session, and the client goes on")
def _forgets(plan: Plan, talk: Talk) -> bool:
    return "forgets its sessions" in _whats(talk) and len(talk.servers()) > 1


@sometimes("a request is not answered in time")
def _times_out(plan: Plan, talk: Talk) -> bool:
    return any("did not answer within" in str(answer.frame) for one in _requests(talk) for answer in one.answers)


@sometimes("there are too many requests of one client")
def _too_many(plan: Plan, talk: Talk) -> bool:
    return any("are unanswered" in str(answer.frame) for one in _requests(talk) for answer in one.answers)


@sometimes("a client is answered from memory while its server starts")
def _from_memory(plan: Plan, talk: Talk) -> bool:
    return _says(talk, "is answered for until it has")


@sometimes("a router misses a server")
def _missing(plan: Plan, talk: Talk) -> bool:
    return plan.router and any("dragoman/missing" in str(event.frame) for event in talk.record.events)


@sometimes("somebody is let in no more while a call is open")
def _revoked(plan: Plan, talk: Talk) -> bool:
    return "lets in no more" in _whats(talk) and any(one.refused for one in _requests(talk))


@sometimes("a drained proxy lets calls end")
def _drained(plan: Plan, talk: Talk) -> bool:
    return "ends in order" in _whats(talk) and any(one.answers for one in _requests(talk))


@sometimes("a reader stalls while another one hears")
def _stalls(plan: Plan, talk: Talk) -> bool:
    return plan.scope != "client" and "reads nothing" in _whats(talk) and len(talk.clients()) > 1


@sometimes("a question of one client waits while another client is asked at the same server")
def _two_asked(plan: Plan, talk: Talk) -> bool:
    for peer in talk.servers():
        open_ = [
            (one.asked.turn, one.answers[0].turn if one.answers else 1 << 60, secrets_in(one.frame))
            for one in talk.asked[peer]
        ]
        for begins, ends, marks in open_:
            for other, _, others in open_:
                if begins < other < ends and marks and others and marks[0][0] != others[0][0]:
                    return True
    return False


@sometimes("something is lost in translation, and said")
def _lossy(plan: Plan, talk: Talk) -> bool:
    return _says(talk, "dropped /")
