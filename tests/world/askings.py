"""Rules about what servers ask, and about what clients that share a server are told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from dragoman_spec import HANDSHAKE_REVISIONS, facts
from tests.world.flows import ONE_STEP_S, Clock
from tests.world.peers.words import PER_REQUEST, key_of, nonces_in, secrets_in
from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, is_asking, rule, short

KINDS: Final = {"sampling/createMessage": "sampling", "roots/list": "roots", "elicitation/create": "elicitation"}
SINCE: Final = {"sampling/createMessage": HANDSHAKE_REVISIONS[0], "roots/list": HANDSHAKE_REVISIONS[0]}
_LEVELS: Final = facts(HANDSHAKE_REVISIONS[-1]).log_levels
_SOON_S: Final = 45.0
"""What a server asks so long before it is let go is answered: a session that has ended owes nothing."""


def _is_plain(plan: Plan) -> bool:
    """Whether all of it goes one way, over lines, through one proxy."""
    return not plan.uses_http and plan.hops == 1


def _has_sessions(talk: Talk) -> bool:
    """Whether all servers open sessions: the others are asked by each client for itself."""
    return all(talk.record.revisions.get(peer) != PER_REQUEST for peer in talk.servers())


def _put(talk: Talk, peer: str) -> list[Asked]:
    """Give the questions that a client heard."""
    return [one for one in talk.got[peer] if one.frame["method"] in KINDS]


@rule("declared")
def a_client_is_asked_what_it_can_be_asked(plan: Plan, talk: Talk) -> Iterator[str]:
    """Nobody is asked for what they did not declare; where one revision is spoken between two, all passes as it is."""
    is_rude = plan.scope == "client" and any(server.manner == "rude" for server in plan.servers)
    spoken = {talk.record.revisions.get(peer) for peer in talk.servers()}
    for peer in talk.clients():
        if is_rude and (plan.router or plan.hops > 1 or talk.record.revisions[peer] in spoken):
            continue
        for one in _put(talk, peer):
            if KINDS[one.frame["method"]] not in client_of(plan, peer).has:
                yield f"{peer} did not declare that, and heard {short(one.frame)}"


@rule("question-answered")
def every_question_is_answered(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server that is shared hears an answer to each question, if by nobody else by us when its client has left."""
    if not _is_plain(plan) or plan.scope == "client" or plan.router:
        return
    for peer in talk.servers():
        events = talk.by_peer[peer]
        if any(event.what in ("dies", "is cut") for event in events) or not events:
            continue
        until_s = next((event.at_s for event in events if event.what == "ends"), events[-1].at_s) - _SOON_S
        for one in talk.asked[peer]:
            if one.refused is not None:
                continue
            if not one.answers and one.cancelled is None and one.asked.there is not None and one.asked.at_s < until_s:
                yield f"{peer} has no answer to {short(one.frame)}"


@rule("one-id")
def nobody_is_asked_under_an_id_that_is_not_answered(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a server asks under the id of a question that it has no answer to reaches no client."""
    if plan.uses_http:
        return  # an answer may be on its way on another connection
    for server in talk.servers():
        for one in talk.asked[server]:
            if one.refused is not one.asked or one.asked.there is None:
                continue
            before = [other for other in talk.asked[server] if other.is_muddled and other.asked.turn < one.asked.turn]
            named = [other for other in before if key_of(other.frame["id"]) == key_of(one.frame["id"])]
            if not named or any((answer.there or 0) < one.asked.there for answer in named[-1].answers):
                continue
            for peer in talk.clients():
                for event in talk.by_peer[peer]:
                    if event.is_heard and set(nonces_in(one.frame)) & set(nonces_in(event.frame)):
                        yield f"{server} asked {short(one.frame)} under an id that it had used: {peer} heard it"


@rule("question-ended")
def what_is_asked_about_a_call_that_is_over_is_answered(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who opens no session cannot answer about a call that is answered: its server hears so, and does not wait."""
    if plan.hops > 1 or plan.router:
        return
    clock = Clock(talk)
    for server in talk.servers():
        if talk.record.revisions.get(server) == PER_REQUEST:
            continue
        calls = [one for one in talk.got[server] if one.frame["method"] == "tools/call"]
        ends_s = min((event.at_s for event in talk.by_peer[server] if event.what in _ENDS), default=_NEVER)
        for one in talk.asked[server]:
            if one.answers or one.cancelled or one.refused or one.is_muddled or one.asked.there is None:
                continue
            about = [call for call in calls if set(secrets_in(call.params)) & set(secrets_in(one.frame))]
            if not about or not _is_alone(plan, calls, about[-1]) or not about[-1].answers[0].there:
                continue
            if is_asking(about[-1].answers[0].frame):
                continue  # as a task it goes on
            over_s = clock.at_most(max(about[-1].answers[0].there, one.asked.there))
            if ends_s > over_s + _SOON_S:
                yield f"{server} has answered the call, and has no answer to {short(one.frame)}"


def _is_alone(plan: Plan, calls: list[Asked], call: Asked) -> bool:
    """Whether a call of a client without a session was answered, and no other one came that it may have been about."""
    owners = {owner for one in calls for owner, _ in secrets_in(one.params)}
    is_plain = all(client_of(plan, owner).revision == PER_REQUEST for owner in owners)
    return is_plain and bool(call.answers) and all(other is call or bool(other.answers) for other in calls)


_ENDS: Final = ("ends", "dies", "is cut")
_NEVER: Final = float("inf")


@rule("withdrawn")
def what_is_taken_back_is_not_answered(plan: Plan, talk: Talk) -> Iterator[str]:
    """When a shared server has taken a question back, it hears no answer that was not on its way already.

    A ping is answered by us, at once: what takes it back may have come along with it.
    """
    if not _is_plain(plan) or plan.scope == "client" or plan.router:
        return
    clock = Clock(talk)
    for peer in talk.servers():
        for one in talk.asked[peer]:
            since = None if one.cancelled is None or one.frame["method"] == "ping" else one.cancelled.there
            for answer in one.answers:
                if since is None or answer.there is None or one.is_muddled:
                    continue
                if clock.at_least(answer.there) > clock.at_most(since) + ONE_STEP_S:
                    yield f"{peer} took back {short(one.frame)}, and heard {short(answer.frame)}"


@rule("gone-told")
def a_client_hears_that_nobody_waits_for_its_answer(plan: Plan, talk: Talk) -> Iterator[str]:
    """A client that was asked hears when the server has taken that back, or is gone, if its session goes on."""
    if not _is_plain(plan):
        return
    ended = {peer: _gone_at(talk, peer) for peer in talk.servers()}
    for peer in talk.clients():
        if talk.record.revisions.get(peer) == PER_REQUEST:
            continue
        heard = [event for event in talk.by_peer[peer] if event.is_heard]
        for one in _put(talk, peer):
            since = _taken_back(talk, one, ended)
            if since is None or any(answer.turn < since for answer in one.answers) or one.asked.turn > since:
                continue
            if is_told(heard, one) or not stays(plan, talk, peer, since):
                continue
            if not any(answer.turn < _arrived(answer, since) for answer in one.answers):
                yield f"{peer} was not told that nobody waits for its answer to {short(one.frame)}"


def _arrived(answer: Event, since: int) -> int:
    """Give the turn before which an answer has to be said to count: it may be on its way when all is over."""
    return since if answer.there is None or answer.there > since else answer.turn + 1


def _gone_at(talk: Talk, server: str) -> int | None:
    """Give the turn at which the proxy knows that a server is gone: of a process, when nothing can come of it."""
    turns = {event.what: event.turn for event in talk.by_peer[server] if event.what in ("dies", "input ends")}
    return turns.get("input ends", turns["dies"]) if "dies" in turns else None


def _taken_back(talk: Talk, one: Asked, ended: dict[str, int | None]) -> int | None:
    """Say when nobody waited for the answer to a question any more; None if it was waited for, or is not known."""
    for server, number in nonces_in(one.frame):
        put = next((own for own in talk.asked.get(server, ()) if (server, number) in nonces_in(own.frame)), None)
        if put is not None and not put.answers:
            return ended[server] if put.cancelled is None else put.cancelled.there
    return None


def is_told(heard: list[Event], one: Asked) -> bool:
    named = key_of(one.frame["id"])
    return any(
        event.frame.get("method") == "notifications/cancelled"
        and key_of(event.frame.get("params", {}).get("requestId")) == named
        for event in heard
        if isinstance(event.frame, dict)
    )


def stays(plan: Plan, talk: Talk, peer: str, since: int) -> bool:
    """Whether a client is still there a while after a moment, and its session with it."""
    at_s = next((event.at_s for event in talk.record.events if event.turn >= since), 0.0)
    over = [event.at_s for event in talk.by_peer[peer] if event.what in ("ends", "is cut", "leaves")]
    stalls = any(act["do"] == "stall" for act in client_of(plan, peer).acts)
    return not stalls and (not over or min(over) > at_s + 1 + 3 * plan.network.late_s)


@rule("changes-told")
def clients_hear_what_may_have_changed(plan: Plan, talk: Talk) -> Iterator[str]:
    """When a shared server has been started again, each client whose session goes on hears that lists may differ."""
    if not _is_plain(plan) or plan.scope != "shared" or plan.router or not _has_sessions(talk):
        return
    runs = [peer for peer in talk.servers() if talk.record.revisions.get(peer) is not None]
    for before, run in itertools.pairwise(runs):
        died = _gone_at(talk, before)
        ready = next((event.turn for event in talk.by_peer[run] if _is_ready(event)), None)
        if died is None or ready is None:
            continue
        for peer in talk.clients():
            opened = [
                one.answers[0].turn for one in talk.asked[peer] if one.frame["method"] == "initialize" and one.answers
            ]
            is_ready = any(
                event.is_said and _says_ready(event) and (event.there or died) < died for event in talk.by_peer[peer]
            )
            if not opened or opened[0] > died or not is_ready or not stays(plan, talk, peer, ready):
                continue
            if not any(event.is_heard and event.turn > died and _is_change(event) for event in talk.by_peer[peer]):
                yield f"{peer} was not told that the tools of {run} may be others than those of {before}"


def _is_ready(event: Event) -> bool:
    return event.is_heard and event.frame.get("method") == "notifications/initialized"


def _says_ready(event: Event) -> bool:
    return isinstance(event.frame, dict) and event.frame.get("method") == "notifications/initialized"


def _is_change(event: Event) -> bool:
    return bool(event.frame.get("method") == "notifications/tools/list_changed")


@rule("level")
def nobody_hears_more_than_they_want(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who has asked for a level at a shared server hears no message below it."""
    if not _is_plain(plan) or plan.scope == "client" or plan.router or not _has_sessions(talk):
        return
    for peer in talk.clients():
        set_at = [
            (one.answers[0].turn, one.params.get("level"))
            for one in talk.asked[peer]
            if one.frame["method"] == "logging/setLevel" and one.answers and "result" in one.answers[0].frame
        ]
        asks = [one.asked.turn for one in talk.asked[peer] if one.frame["method"] == "logging/setLevel"]
        for event in talk.by_peer[peer]:
            if not event.is_heard or event.frame.get("method") != "notifications/message":
                continue
            levels = [level for turn, level in set_at if turn < event.turn]
            if len(asks) != len(levels) or not levels or event.frame["params"]["level"] not in _LEVELS:
                continue
            if _LEVELS.index(event.frame["params"]["level"]) < _LEVELS.index(levels[-1]):
                yield f"{peer} asked for {levels[-1]} and heard {short(event.frame)}"


@rule("updates-shared")
def all_who_subscribe_hear_of_changes(plan: Plan, talk: Talk) -> Iterator[str]:
    """At a shared server, who has been told that it is subscribed hears of each change."""
    if not _is_plain(plan) or not plan.is_calm or plan.scope != "shared" or plan.router or plan.options:
        return
    if not _has_sessions(talk):
        return
    for peer in talk.clients():
        subscribed = [
            (one.params["uri"], one.answers[0].turn)
            for one in talk.asked[peer]
            if one.frame["method"] == "resources/subscribe" and one.answers and "result" in one.answers[0].frame
        ]
        dropped = {one.params["uri"] for one in talk.asked[peer] if one.frame["method"] == "resources/unsubscribe"}
        gone = min((event.turn for event in talk.by_peer[peer] if event.what in ("leaves", "ends")), default=1 << 60)
        for uri, since in subscribed:
            if uri in dropped:
                continue
            said = [
                event
                for server in talk.servers()
                for event in talk.by_peer[server]
                if event.is_said and _is_update_of(event, uri) and since < event.turn and (event.there or gone) < gone
            ]
            heard = [event for event in talk.by_peer[peer] if event.is_heard and _is_update_of(event, uri)]
            if len(heard) < len(said):
                yield f"{peer} heard {len(heard)} of {len(said)} changes of {uri}"


def _is_update_of(event: Event, uri: str) -> bool:
    frame = event.frame
    is_update = isinstance(frame, dict) and frame.get("method") == "notifications/resources/updated"
    return is_update and frame["params"]["uri"] == uri


@rule("unsubscribed")
def a_server_hears_that_nobody_wants_a_resource(plan: Plan, talk: Talk) -> Iterator[str]:
    """When all clients of a shared server have left, it is subscribed to nothing."""
    if not _is_plain(plan) or plan.scope == "client" or plan.router or plan.faults or plan.network.late_s > 1:
        return
    for peer in talk.servers():
        if talk.is_gone(peer) or talk.record.revisions.get(peer) == PER_REQUEST:
            continue
        wanted: dict[str, bool] = {}
        for one in talk.got[peer]:
            is_refused = any("error" in answer.frame for answer in one.answers)
            if one.frame["method"] in ("resources/subscribe", "resources/unsubscribe") and not is_refused:
                wanted[one.params["uri"]] = one.frame["method"] == "resources/subscribe"
        left = [uri for uri, is_wanted in wanted.items() if is_wanted]
        if left:
            yield f"{peer} is still subscribed to {left}"


@rule("loss-told")
def what_is_lost_is_said(plan: Plan, talk: Talk) -> Iterator[str]:
    """An answer that lost a part on its way is named in the log."""
    if plan.hops > 1 or plan.router:
        return
    logged = any("/result/structuredContent" in text for _, text in talk.record.log)
    answers = {
        mark: answer.frame
        for peer in talk.servers()
        for one in talk.got[peer]
        for mark in secrets_in(one.params.get("arguments") or {})[:1]
        for answer in one.answers[:1]
    }
    for peer in talk.clients():
        for one in talk.asked[peer]:
            marks = secrets_in(one.params.get("arguments") or {})[:1]
            if not marks or not one.answers or "result" not in one.answers[0].frame or is_asking(one.answers[0].frame):
                continue
            said = answers.get(marks[0], {}).get("result") or {}
            heard = one.answers[0].frame["result"]
            if "structuredContent" in said and "structuredContent" not in heard and not logged:
                yield f"{peer} heard {short(heard)}, and nobody was told what it lost"


@rule("limit-named")
def a_limit_that_refuses_was_reached(plan: Plan, talk: Talk) -> Iterator[str]:
    """A request is refused for too many others only where there are so many."""
    limit = plan.options.get("open_requests")
    if limit is None or not _is_plain(plan) or plan.router:
        return
    for peer in talk.clients():
        asked = talk.asked[peer]
        for one in asked:
            answer = one.answers[0] if one.answers else None
            if answer is None or "error" not in answer.frame or "are unanswered" not in str(answer.frame["error"]):
                continue
            others = [
                other
                for other in asked
                if other is not one and other.asked.turn < (one.asked.there or 0)
                if not other.answers or (other.answers[0].there or other.answers[0].turn) > one.asked.turn
            ]
            if len(others) < limit:
                yield f"{peer} has {len(others)} requests, may have {limit}, and heard {short(answer.frame)}"
