"""What must arrive, and when: rules about what a world must not lose. `rules` has those about what must not happen.

Most hold where nothing goes wrong (`Plan.is_calm`), for then everything that is said is heard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.askings import KINDS, SINCE
from tests.world.peers.words import PER_REQUEST, secrets_in
from tests.world.plan import ENDS_ALL, Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, is_asking, rule, short

_CHECKS_S = 4.0
"""How long after its time a request may be given up: the clock is looked at now and then."""


def _speaks_handshake(talk: Talk, peer: str) -> bool:
    return talk.record.revisions.get(peer) in HANDSHAKE_REVISIONS


def _session_of(talk: Talk, server: str) -> str | None:
    """Say whose session a run of a server is, where each client has one for itself and has made a call."""
    for one in talk.got[server]:
        for owner, _ in secrets_in(one.params):
            return owner
    return None


@rule("revision")
def a_client_gets_the_revision_that_it_asks_for(plan: Plan, talk: Talk) -> Iterator[str]:
    """Every handshake revision is spoken with a client, whatever its server speaks."""
    for peer in talk.clients():
        for one in talk.asked[peer]:
            for answer in one.answers:
                told = (answer.frame.get("result") or {}).get("protocolVersion")
                if one.frame["method"] == "initialize" and told not in (None, client_of(plan, peer).revision):
                    yield f"{peer} asked for {client_of(plan, peer).revision} and heard {told}"


@rule("progress-heard")
def progress_that_is_said_is_heard(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where nothing goes wrong, a client hears all progress of its calls that is said before the answer."""
    if not plan.is_calm or plan.options.keys() & {"request_timeout_s", "open_requests", "questions"} or plan.uses_http:
        return
    heard = {peer: [event for event in talk.by_peer[peer] if _is_progress(event)] for peer in talk.clients()}
    for peer in talk.servers():
        for one in talk.got[peer]:
            marks = secrets_in(one.params.get("arguments") or {})
            token = (one.params.get("_meta") or {}).get("progressToken")
            if not marks or token is None or not one.answers or "requestState" in one.params:
                continue
            said = [event for event in talk.by_peer[peer] if _is_said_progress(event, token, one)]
            asked = next((own for own in talk.asked[marks[0][0]] if secrets_in(own.params)[:1] == marks[:1]), None)
            if asked is None or is_asking(one.answers[0].frame):
                continue
            own = (asked.params.get("_meta") or {}).get("progressToken")
            got = [event for event in heard[marks[0][0]] if event.frame["params"]["progressToken"] == own]
            if len(got) < len(said):
                yield f"{peer} said {len(said)} x progress of {marks[0]}, and its client heard {len(got)}"


def _is_progress(event: Event) -> bool:
    return event.is_heard and isinstance(event.frame, dict) and event.frame.get("method") == "notifications/progress"


def _is_said_progress(event: Event, token: Any, one: Asked) -> bool:
    if not event.is_said or event.frame.get("method") != "notifications/progress":
        return False
    return bool(event.frame["params"]["progressToken"] == token and event.turn < one.answers[0].turn)


@rule("asked-who-can")
def a_question_is_answered_by_who_can(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where nothing goes wrong, a client with a server of its own is asked what it says that it can be asked."""
    if not plan.is_calm or plan.scope != "client" or plan.hops > 1 or "open_requests" in plan.options:
        return
    for peer in talk.servers():
        if not _speaks_handshake(talk, peer):
            continue
        for one in talk.asked[peer]:
            marks, kind = secrets_in(one.frame), KINDS.get(one.frame["method"])
            if not marks or kind is None or not _speaks_handshake(talk, marks[0][0]):
                continue
            client = client_of(plan, marks[0][0])
            can = kind in client.has and client.revision >= SINCE.get(one.frame["method"], "2025-06-18")
            is_late = _is_late(talk, one, marks[0])
            if can and not is_late and one.answers and "error" in one.answers[0].frame:
                yield f"{peer} asked {short(one.frame)}, and heard {short(one.answers[0].frame)}"


def _is_late(talk: Talk, put: Asked, mark: tuple[str, str]) -> bool:
    about = [one for one in talk.got[put.asked.peer] if mark in secrets_in(one.params)]
    return not about or any(answer.turn < put.asked.turn for one in about for answer in one.answers)


@rule("cancel-heard")
def a_server_hears_of_a_cancellation(plan: Plan, talk: Talk) -> Iterator[str]:
    """A call that its client gives up while the server has it is cancelled there."""
    if plan.faults or plan.uses_http or plan.hops > 1 or plan.network.late_s > 1:
        return
    at_servers = {
        mark: (peer, one)
        for peer in talk.servers()
        if not talk.is_gone(peer)
        for one in talk.got[peer]
        for mark in secrets_in(one.params.get("arguments") or {})[:1]
    }
    for peer in talk.clients():
        if any(act["do"] in ("leave", "cut", "stall") for act in client_of(plan, peer).acts):
            continue
        for one in talk.asked[peer]:
            marks = secrets_in(one.params.get("arguments") or {})
            server, got = at_servers.get(marks[0], ("", None)) if marks else ("", None)
            if one.cancelled is None or one.cancelled.there is None or got is None or one.answers or got.answers:
                continue
            if got.cancelled is None:
                yield f"{peer} cancelled {short(one.frame)}, and {server} did not hear of it"


@rule("in-time")
def a_request_is_given_up_in_time(plan: Plan, talk: Talk) -> Iterator[str]:
    """With a time for requests, none waits for longer, unless there is progress or its client is asked."""
    limit_s = plan.options.get("request_timeout_s")
    if limit_s is None or plan.hops > 1 or plan.network.late_s > 1 or any(one.start_s for one in plan.servers):
        return
    if any(fault["do"] in ("hang", "store", "slow", "silence") for fault in plan.faults):
        return  # then the limit stands still, too, or the request is not let in
    for peer in talk.clients():
        if any(act["do"] == "stall" for act in client_of(plan, peer).acts) or talk.got[peer]:
            continue  # while a client is asked, its time does not run
        for one in talk.asked[peer]:
            moves = any(step[0] in ("ask", "ask-on", "progress", *ENDS_ALL) for step in _steps(one))
            if one.frame["method"] != "tools/call" or moves or one.cancelled or not one.answers:
                continue
            waited_s = one.answers[0].at_s - max(one.asked.at_s, _signed_in_s(talk, one.answers[0]))
            if waited_s > limit_s + _CHECKS_S + 2 * plan.network.late_s + 10 * plan.router:
                yield f"{peer} waited for {waited_s:.1f} s, and not {limit_s} s, for {short(one.frame)}"


def _signed_in_s(talk: Talk, answer: Event) -> float:
    """Say when somebody last came back from a page before an answer: what waits for them is not at a server yet."""
    back = (event.at_s for event in talk.by_peer["person"] if event.what == "has come back")
    return max((at_s for at_s in back if at_s <= answer.at_s), default=0.0)


def _steps(one: Asked) -> list[list[Any]]:
    arguments = one.params.get("arguments")
    return list(arguments.get("steps", [])) if isinstance(arguments, dict) else []


@rule("limit")
def no_more_requests_are_open_than_may_be(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server with one client never has more unanswered requests of it than the limit."""
    limit = plan.options.get("open_requests")
    if limit is None or plan.scope != "client" or plan.router or plan.uses_http or plan.hops > 1:
        return
    for peer in talk.servers():
        if not _speaks_handshake(talk, peer):
            continue
        calls = [
            one
            for one in talk.got[peer]
            if one.frame["method"] == "tools/call" and _is_of_session(talk, one)  # others are parked, and come back
        ]
        for one in calls:
            count = sum(other.asked.turn <= one.asked.turn and _is_open(other, one.asked.turn) for other in calls)
            if count > limit:
                yield f"{peer} has {count} calls of one client, which may have {limit}"


def _is_of_session(talk: Talk, one: Asked) -> bool:
    return all(_speaks_handshake(talk, owner) for owner, _ in secrets_in(one.params))


def _is_open(one: Asked, turn: int) -> bool:
    ended = [*(answer.there or 1 << 60 for answer in one.answers), *([one.cancelled.turn] if one.cancelled else [])]
    return not ended or min(ended) > turn


@rule("goes")
def every_server_is_let_go(plan: Plan, talk: Talk) -> Iterator[str]:
    """When all clients have left, every run of a server that has a connection of its own is told that it is over."""
    if plan.uses_http:
        return  # there it is told if that can be done in time
    for peer in talk.servers():
        ended = any(event.what in ("ends", "dies", "is cut") for event in talk.by_peer[peer])
        if "." in peer and not ended:
            yield f"{peer} is still there, and nobody is left who would use it"


@rule("updates-heard")
def who_subscribes_hears_of_changes(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where nothing goes wrong, who has subscribed to a resource hears each time that it has changed."""
    if not plan.is_calm or plan.uses_http or plan.hops > 1 or plan.scope != "client" or plan.router or plan.options:
        return
    for server in talk.servers():
        peer = _session_of(talk, server)
        if peer is None or not _speaks_handshake(talk, peer) or talk.record.revisions.get(server) == PER_REQUEST:
            continue
        said = [event.frame["params"] for event in talk.by_peer[server] if _is_update(event) and event.is_said]
        heard = [event.frame["params"] for event in talk.by_peer[peer] if _is_update(event) and event.is_heard]
        if said != heard:
            yield f"{server} told of changes {said}, and {peer} heard {heard}"


def _is_update(event: Event) -> bool:
    return isinstance(event.frame, dict) and event.frame.get("method") == "notifications/resources/updated"
