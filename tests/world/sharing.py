"""What is so at a server that several clients share: what one of them does is not another one's, and each has its due.

Here a server is one that opens sessions, is reached by lines, and has one proxy before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman.core.calls import UNANSWERED
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.dues import behaves
from tests.world.flows import AT_ONCE_S, Clock, stalls
from tests.world.peers.words import nonces_in, secrets_in
from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, rule, short

_SUBSCRIBING: Final = ("resources/subscribe", "resources/unsubscribe")
_UPDATED: Final = "notifications/resources/updated"


def _is_shared(plan: Plan) -> bool:
    return plan.scope != "client" and not plan.uses_http and plan.hops == 1 and not plan.router


def _servers(talk: Talk) -> list[str]:
    return [peer for peer in talk.servers() if talk.record.revisions.get(peer) in HANDSHAKE_REVISIONS]


@rule("reply-heard")
def a_server_hears_what_a_client_answers(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who was asked and answers is heard, if the server still waits; nobody answers in the place of who is there."""
    if not _is_shared(plan):
        return
    replies = {
        mark: event
        for peer in talk.clients()
        for event in talk.by_peer[peer]
        if event.is_said and isinstance(event.frame, dict) and "result" in event.frame and event.there is not None
        for mark in nonces_in(event.frame)
    }
    clock, slack_s = Clock(talk), AT_ONCE_S + 3 * plan.network.late_s  # it may be on its way when the server goes
    for peer in _servers(talk):
        gone_s = min(
            (event.at_s for event in talk.by_peer[peer] if event.what in ("dies", "ends", "is cut")), default=1e9
        )
        for one in talk.asked[peer]:
            for mark in nonces_in(one.frame):
                reply = replies.get(mark)
                if reply is None or reply.there is None or one.cancelled or one.is_muddled or one.refused:
                    continue
                if clock.at_most(reply.there) + slack_s >= gone_s:
                    continue
                heard = [answer for answer in one.answers if nonces_in(answer.frame)]
                if not heard and one.answers and (one.answers[0].there or 0) > reply.turn:
                    continue  # it was given up while the answer was on its way
                over = [event.turn for event in talk.by_peer[reply.peer] if event.what in ("ends", "leaves", "is cut")]
                if not heard and (not over or min(over) > reply.there) and not stalls(plan):
                    yield f"{reply.peer} said {short(reply.frame)}, and {peer} did not hear it"


@rule("given-up")
def nothing_is_told_of_what_was_given_up(plan: Plan, talk: Talk) -> Iterator[str]:
    """When a client has cancelled a call, it hears no progress of it any more."""
    if not _is_shared(plan):
        return
    clock = Clock(talk)
    for peer in talk.clients():
        ended = {secrets_in(one.params)[0]: one.cancelled for one in talk.asked[peer] if secrets_in(one.params)}
        for event in talk.by_peer[peer]:
            if not event.is_heard or event.frame.get("method") != "notifications/progress" or not event.there:
                continue
            for mark in secrets_in(event.frame):
                cancelled = ended.get(mark)
                if cancelled is None or cancelled.there is None:
                    continue
                if clock.at_most(cancelled.there) + AT_ONCE_S < clock.at_least(event.there):
                    yield f"{peer} has cancelled a call, and heard {short(event.frame)}"


@rule("ping-answered")
def a_ping_of_a_shared_server_is_answered_at_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """Whether we are there is nothing that a client has to say."""
    if not _is_shared(plan):
        return
    clock = Clock(talk)
    for peer in _servers(talk):
        for one in talk.asked[peer]:
            if one.frame["method"] != "ping" or one.asked.there is None or not one.answers or one.is_muddled:
                continue
            took_s = clock.at_least(one.answers[0].there or 0) - clock.at_most(one.asked.there)
            if took_s > AT_ONCE_S or "result" not in one.answers[0].frame:
                yield f"{peer} sent a ping, and heard {short(one.answers[0].frame)} after {took_s:.1f} s"


@rule("subscribed-once")
def a_server_is_asked_once_for_what_several_want(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a shared server has agreed to, and was not taken back, it is not asked for again."""
    if not _is_shared(plan) or plan.faults:
        return
    for peer in _servers(talk):
        agreed: dict[str, int] = {}
        for one in talk.got[peer]:
            uri, sent = one.params.get("uri"), one.asked.there or one.asked.turn
            if one.frame["method"] == "resources/unsubscribe":
                agreed.pop(str(uri), None)
            elif one.frame["method"] == "resources/subscribe":
                if agreed.get(str(uri), 1 << 60) < sent:
                    yield f"{peer} was asked again for {uri}, to which it has agreed"
                if one.answers and "result" in one.answers[0].frame and one.answers[0].there is not None:
                    agreed.setdefault(str(uri), one.answers[0].there)


@rule("update-wanted")
def nobody_hears_of_what_it_does_not_want(plan: Plan, talk: Talk) -> Iterator[str]:
    """Of changes of a resource hears who has asked for them, has not taken that back, and was not refused."""
    if not _is_shared(plan):
        return
    for peer in talk.clients():
        for event in talk.by_peer[peer]:
            if not event.is_heard or event.frame.get("method") != _UPDATED or not event.there:
                continue
            uri = event.frame["params"]["uri"]
            asked = [
                one for one in talk.asked[peer] if one.frame["method"] in _SUBSCRIBING and one.params["uri"] == uri
            ]
            before = [one for one in asked if one.asked.there is not None and one.asked.there < event.there]
            if not before or _is_refused(before[-1], event):
                yield f"{peer} heard {short(event.frame)}, and has not asked for it"


def _is_refused(one: Asked, event: Event) -> bool:
    """Whether what was asked last says that nothing is wanted: it was refused, or was the end of it."""
    answers = [answer for answer in one.answers if answer.there and event.there and answer.there < event.there]
    if one.frame["method"] == "resources/unsubscribe":
        return bool(answers)
    return any("error" in answer.frame and UNANSWERED not in str(answer.frame) for answer in answers)


@rule("update-heard")
def who_stays_hears_of_changes_whoever_leaves(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who has subscribed and stays hears of each change, however many others subscribe, or leave."""
    if not _is_shared(plan) or stalls(plan) or plan.faults:
        return
    for peer in talk.clients():
        if not behaves(plan, peer):
            continue
        gone = min((event.turn for event in talk.by_peer[peer] if event.what in ("leaves", "ends")), default=1 << 60)
        asked = [one for one in talk.asked[peer] if one.frame["method"] in _SUBSCRIBING]
        for one in asked:
            uri = one.params["uri"]
            last = [other for other in asked if other.params["uri"] == uri]
            if len(last) != 1 or not one.answers or "result" not in one.answers[0].frame:
                continue
            said = [e for server in _servers(talk) for e in talk.by_peer[server] if _is_told(e, uri, one, gone)]
            heard = [e for e in talk.by_peer[peer] if e.is_heard and e.frame.get("method") == _UPDATED]
            count = sum(event.frame["params"]["uri"] == uri for event in heard)
            if count < len(said) and not _is_apart(plan, talk):
                yield f"{peer} heard {count} of {len(said)} changes of {uri}"


def _is_told(event: Event, uri: str, one: Asked, gone: int) -> bool:
    """Whether a server says that a resource has changed while somebody listens."""
    if not event.is_said or not isinstance(event.frame, dict) or event.frame.get("method") != _UPDATED:
        return False
    since = one.answers[0].turn
    return bool(event.frame["params"]["uri"] == uri and since < event.turn and (event.there or gone) < gone)


def _is_apart(plan: Plan, talk: Talk) -> bool:
    """Whether there may be several servers at once."""
    return plan.scope != "shared" or len(talk.servers()) > 1
