"""What is owed when something begins or ends: sessions, questions, and what is said about a call while it is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.askings import KINDS, SINCE, is_told, stays
from tests.world.dues import behaves, is_sound
from tests.world.flows import AT_ONCE_S, Clock, stalls
from tests.world.peers.words import PER_REQUEST, nonces_in, secrets_in
from tests.world.plan import ENDS_ALL, Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, numbered, rule, short

_OVER: Final = ("leaves", "ends", "is cut", "dies")
_FAREWELL_S: Final = 4.0
"""How long servers may take to go when their session is over."""

_NEVER: Final = float("inf")
_AGAIN_S: Final = 60.0
"""How long it takes at most until a server is started again."""

_ALWAYS: Final = frozenset({"initialize", "ping", "tools/list", "prompts/list", "resources/list"})
"""What every server answers with a result."""


@rule("opens")
def what_every_server_answers_has_a_result(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where no server fails, a client that behaves opens its session, and gets lists and pings answered."""
    is_far = plan.router or plan.hops > 1
    is_slow = plan.network.late_s > 1 or any(one.is_slow for one in plan.servers)
    if not is_sound(plan) or (is_far and is_slow) or (plan.front == "http" and plan.network.late_s > 5):
        return
    if any(one.link not in ("lines", "http") for one in plan.servers):
        return  # by those ways sessions alone come through
    for peer in talk.clients():
        for one in talk.asked[peer] if behaves(plan, peer) else ():
            if one.frame["method"] in _ALWAYS and one.answers and "result" not in one.answers[0].frame:
                yield f"{peer} said {short(one.frame)}, and heard {short(one.answers[0].frame)}"


@rule("refused-at-once")
def who_has_no_session_is_refused_at_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """When `initialize` was refused, what the client asks all the same waits for nothing."""
    if plan.front != "lines" or stalls(plan):
        return
    clock = Clock(talk)
    for peer in talk.clients():
        opened = [one for one in talk.asked[peer] if one.frame["method"] == "initialize"]
        if len(opened) != 1 or not opened[0].answers or "error" not in opened[0].answers[0].frame:
            continue
        since = opened[0].answers[0].there or opened[0].answers[0].turn
        for one in talk.asked[peer]:
            if one is opened[0] or one.asked.there is None or one.asked.there < since or one.cancelled:
                continue
            answers = [clock.at_least(answer.there or answer.turn) for answer in one.answers]
            waits_s = min(answers, default=_gone_s(talk, peer)) - clock.at_most(one.asked.there)
            if waits_s > AT_ONCE_S:
                yield f"{peer} has no session, and waited for {waits_s:.1f} s for the answer to {short(one.frame)}"


def _gone_s(talk: Talk, peer: str) -> float:
    return min((event.at_s for event in talk.by_peer[peer] if event.what in _OVER), default=_NEVER)


@rule("last-words")
def a_session_that_ends_has_answered(plan: Plan, talk: Talk) -> Iterator[str]:
    """Before we close a session, all that its client has asked is answered, if only by an error."""
    if plan.front != "lines" or stalls(plan) or plan.network.late_s > 1:
        return
    for peer in talk.clients():
        ends = next((event for event in talk.by_peer[peer] if event.what in ("ends", "is cut")), None)
        if ends is None or ends.what == "is cut" or "reset" in str(ends.frame):
            continue
        for one in talk.asked[peer]:
            has_come = one.asked.there is not None and one.asked.there < ends.turn
            is_listen = one.frame["method"] == "subscriptions/listen"  # which ends with the session
            if has_come and not (one.answers or one.cancelled or one.refused or is_listen):
                yield f"{peer} was let go, and has no answer to {short(one.frame)}"


@rule("drained")
def a_session_that_is_drained_ends_with_its_last_answer(plan: Plan, talk: Talk) -> Iterator[str]:
    """When we have been told to end a session in order, it is over as soon as all is answered."""
    if plan.uses_http or plan.hops > 1 or plan.router or stalls(plan):
        return
    for peer in talk.clients():
        told_s = next((event.at_s for event in talk.by_peer[peer] if event.what == "is told to drain"), None)
        ends_s = next((event.at_s for event in talk.by_peer[peer] if event.what in _OVER), None)
        asked = talk.asked[peer]
        if told_s is None or not asked or any(not one.answers or one.cancelled for one in asked):
            continue
        last_s = max(told_s, *(answer.at_s for one in asked for answer in one.answers))
        if ends_s is None or ends_s > last_s + _FAREWELL_S + 4 * plan.network.late_s:
            yield f"{peer} was to end in order, has all answers, and has not ended {_FAREWELL_S:.0f} s later"


@rule("over-told")
def a_client_hears_that_the_call_is_over(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who is asked about a call that it does not wait for any more hears that nobody waits for the answer."""
    if plan.uses_http or plan.hops > 1 or plan.router:
        return
    for peer in talk.clients():
        heard = [event for event in talk.by_peer[peer] if event.is_heard]
        calls = {mark: one for one in talk.asked[peer] for mark in secrets_in(one.params.get("arguments") or {})[:1]}
        for one in talk.got[peer]:
            call = next((calls[mark] for mark in secrets_in(one.frame) if mark in calls), None)
            servers = [server for server, _ in nonces_in(one.frame)]
            if call is None or not servers or talk.record.revisions.get(servers[0]) != PER_REQUEST:
                continue
            since = call.cancelled.there if call.cancelled is not None else None
            if since is None or one.asked.turn > since or not stays(plan, talk, peer, since):
                continue
            if not any((answer.there or 1 << 60) <= since for answer in one.answers) and not is_told(heard, one):
                yield f"{peer} has cancelled a call, and was not told that nobody waits for {short(one.frame)}"


@rule("asked-alone")
def the_only_one_who_calls_is_asked(plan: Plan, talk: Talk) -> Iterator[str]:
    """At a shared server that only one session has called, that session is asked, whoever called an earlier run."""
    if plan.uses_http or plan.hops > 1 or plan.router or plan.scope == "client":
        return
    if "questions" in plan.pool or "open_requests" in plan.options:
        return
    for server in talk.servers():
        if talk.record.revisions.get(server) not in HANDSHAKE_REVISIONS:
            continue
        for one in talk.asked[server]:
            marks, kind = secrets_in(one.frame), KINDS.get(one.frame["method"])
            if marks and kind and one.asked.there and not one.is_muddled and one.refused is None:
                yield from _not_asked(plan, talk, server, one, marks[0], kind)


def _not_asked(plan: Plan, talk: Talk, server: str, one: Asked, mark: tuple[str, str], kind: str) -> Iterator[str]:
    there, client = one.asked.there or 0, client_of(plan, mark[0])
    until_s = one.asked.at_s + 2 * plan.network.late_s + AT_ONCE_S  # a call may have been on its way just then
    others = {owner for got in talk.got[server] for owner, _ in secrets_in(got.params) if got.asked.at_s <= until_s} - {
        mark[0]
    }
    calls = [got for got in talk.asked[mark[0]] if mark in secrets_in(got.params)]
    is_open = calls and not any(answer.turn < there for answer in calls[-1].answers)
    is_leaving = _gone_s(talk, mark[0]) <= until_s + 4 * plan.network.late_s  # the question may be on its way then
    if others or not is_open or calls[-1].cancelled is not None or is_leaving:
        return
    can = kind in client.has and client.revision >= SINCE.get(one.frame["method"], "2025-06-18")
    heard = any(
        event.is_heard and mark in secrets_in(event.frame) and set(nonces_in(one.frame)) & set(nonces_in(event.frame))
        for event in talk.by_peer[mark[0]]
    )
    if can and not heard and one.answers and "error" in one.answers[0].frame:
        yield f"{server} asked its only caller {short(one.frame)}, and heard {short(one.answers[0].frame)}"


@rule("deleted")
def a_session_over_http_is_deleted(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server over HTTP is told when the session that it has opened is over."""
    if plan.faults or plan.network.late_s > 1 or plan.instances > 1 or plan.hops > 1 or plan.scope != "client":
        return
    if plan.guard or plan.signin:
        return  # whose token has ended cannot say goodbye any more
    if any(event.what == "is cut" for event in talk.record.events):
        return  # whoever breaks off may come back
    if plan.front == "http" and any(client.revision == PER_REQUEST for client in plan.clients):
        return  # nobody says goodbye who has opened no session
    links = {server.name for server in plan.servers if server.link == "http"}
    for run in talk.servers():
        if "." not in run or run.partition(".")[0] not in links or talk.record.revisions.get(run) == PER_REQUEST:
            continue
        events = talk.by_peer[run]
        is_open = any(event.is_heard and event.frame.get("method") == "notifications/initialized" for event in events)
        if is_open and not any(event.what in _OVER for event in events) and not _dies(plan):
            yield f"{run} was not told that its session is over"


def _dies(plan: Plan) -> bool:
    return any(step[0] in ENDS_ALL for client in plan.clients for act in client.acts for step in act.get("steps", []))


@rule("call-stream")
def what_comes_on_the_stream_of_a_call_goes_on_it(plan: Plan, talk: Talk) -> Iterator[str]:
    """Over HTTP on both sides, what a server says on the stream of a call is heard on that of the client's call."""
    if plan.front != "http" or plan.front_options.get("answers") == "json" or plan.network.late_s > 0 or plan.faults:
        return
    if plan.instances > 1 or "poll_s" in plan.front_options or plan.router:
        return
    said = {mark: found for run in talk.servers() for mark, found in _on_streams(plan, talk, run)}
    for peer in talk.clients():
        found = client_of(plan, peer)
        if found.way or found.manner == "again" or talk.record.revisions[peer] == PER_REQUEST:
            continue
        calls = {mark: one for one in talk.asked[peer] for mark in secrets_in(one.params.get("arguments") or {})[:1]}
        for event in talk.by_peer[peer]:
            if not event.is_heard or "method" not in event.frame:
                continue
            for mark in _marks_of(event):
                call = calls.get(said[mark]) if mark in said else None
                if call is None or call.cancelled or call.refused or any(a.turn < event.turn for a in call.answers):
                    continue
                if event.via != call.stream and not event.via.startswith("array"):
                    yield f"{peer} heard {short(event.frame)} on {event.via}, and not with the answer"


def _on_streams(plan: Plan, talk: Talk, run: str) -> Iterator[tuple[object, tuple[str, str]]]:
    """Give what a server said on the stream of a call that it had not answered, and of which call."""
    if not any(server.link == "http" and server.name == run.partition(".")[0] for server in plan.servers):
        return
    open_ = {one.asked.via: one for one in talk.got[run] if one.frame["method"] == "tools/call"}
    for event in talk.by_peer[run]:
        one = open_.get(event.via)
        if not event.is_said or one is None or "method" not in event.frame:
            continue
        own = secrets_in(one.params.get("arguments") or {})[:1]
        if own and own[0] in secrets_in(event.frame) and not any(a.turn < event.turn for a in one.answers):
            yield from ((mark, own[0]) for mark in _marks_of(event))


def _marks_of(event: Event) -> list[object]:
    return [*numbered(event.frame), *(nonces_in(event.frame) if "id" in event.frame else ())]


@rule("tried-again")
def a_router_tries_a_server_again(plan: Plan, talk: Talk) -> Iterator[str]:
    """Behind a router, a server that is lost is started as often as was decided, while a client is there."""
    most = plan.options.get("restarts")
    if not most or not plan.router or plan.uses_http or plan.hops > 1:
        return
    there_s = max((_left_s(talk, peer) for peer in talk.clients()), default=0.0)
    for server in plan.servers:
        runs = [run for run in talk.servers() if run.partition(".")[0] == server.name and "." in run]
        if not runs or len(runs) > most or talk.record.revisions.get(runs[-1]) == PER_REQUEST:
            continue
        died_s = next((event.at_s for event in talk.by_peer[runs[-1]] if event.what == "dies"), None)
        if died_s is not None and plan.scope == "shared" and there_s > died_s + _AGAIN_S + 3 * plan.network.late_s:
            yield f"{runs[-1]} is gone for {there_s - died_s:.0f} s, and was not started again"


def _left_s(talk: Talk, peer: str) -> float:
    return min((event.at_s for event in talk.by_peer[peer] if event.what in _OVER), default=0.0)
