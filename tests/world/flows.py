"""How what is said flows: to whom, how often, how soon, and that it stops when nobody waits for it any more.

Most rules of `rules` look at one frame; these follow it from whoever said it to whoever heard it. What a proxy holds
back is as bad as what it loses, and so is what it lets go on at a server for somebody who has left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

from tests.world.peers.words import PER_REQUEST, key_of, nonces_in, secrets_in
from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, is_asking, numbered, rule, short

AT_ONCE_S: Final = 0.1
"""How long anything may take that waits for nothing."""

ONE_STEP_S: Final = 0.01
"""What comes in at one moment is taken in one step, and goes out after that."""

_LET_GO_S: Final = 8.0
"""How long a server may be left at work for nobody: an answer may be on its way, and clocks tick."""

_CLOSING_S: Final = 31.0
"""How long what a client has asked goes on when it has closed its side: it may still hear."""

_NEVER: Final = float("inf")


class Clock:
    """Says what time it was at each turn of a world."""

    def __init__(self, talk: Talk) -> None:
        self._turns = [event.turn for event in talk.record.events]
        self._times = [event.at_s for event in talk.record.events]

    def at_least(self, turn: int) -> float:
        """Give a time that was not later."""
        place = bisect_right(self._turns, turn)
        return self._times[max(0, place - 1)] if self._times else 0.0

    def at_most(self, turn: int) -> float:
        """Give a time that was not earlier."""
        place = bisect_left(self._turns, turn)
        return self._times[min(place, len(self._times) - 1)] if self._times else 0.0


def stalls(plan: Plan) -> bool:
    """Whether anybody reads nothing for a while."""
    return any(act["do"] == "stall" for client in plan.clients for act in client.acts)


@rule("told-once")
def nothing_is_told_twice(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a server says once is heard once, whatever was lost, opened again or resumed in between."""
    for peer in talk.clients():
        seen: set[Any] = set()
        asked_again = [one.frame["id"] for one in talk.asked[peer] if one.frame["method"].startswith("tasks/")]
        for event in talk.by_peer[peer]:
            if not event.is_heard or event.frame.get("id") in asked_again:
                continue
            marks: list[Any] = [*numbered(event.frame)]
            if "method" in event.frame and "id" in event.frame:
                marks += nonces_in(event.frame)
            for mark in marks:
                if mark in seen:
                    yield f"{peer} heard twice: {short(event.frame)}"
                seen.add(mark)


@rule("prompt")
def nothing_is_held_back(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a server says goes out as soon as it has come in, and so does what a client answers."""
    if plan.uses_http or stalls(plan):
        return
    clock, allowed_s = Clock(talk), _allowed_s(plan)
    said: dict[Any, Event] = {}
    for peer in talk.servers():
        for event in talk.by_peer[peer]:
            if event.is_said and isinstance(event.frame, dict) and event.there is not None:
                asks = "id" in event.frame and not _has_several(event)
                for mark in (*numbered(event.frame), *(nonces_in(event.frame) if asks else ())):
                    said[mark] = event
    for peer in talk.clients():
        for event in talk.by_peer[peer]:
            if not event.is_heard or not event.there or event.via.startswith("array"):
                continue  # answers of an array wait for each other
            for mark in (*numbered(event.frame), *(nonces_in(event.frame) if "method" in event.frame else ())):
                first = said.get(mark)
                if first is None or first.there is None:
                    continue
                held_s = clock.at_least(event.there) - clock.at_most(first.there)
                if held_s > allowed_s and not _is_parked(talk, peer, event):
                    yield f"{short(first.frame)} of {first.peer} was held back for {held_s:.1f} s: {peer} heard it late"
    yield from _replies(talk, clock, plan)


def _has_several(event: Event) -> bool:
    """Whether a server wants several things known at once, which some clients are asked one after the other."""
    return is_asking(event.frame) and len(event.frame["result"].get("inputRequests") or ()) > 1


def _allowed_s(plan: Plan) -> float:
    """Say for how long something may be on its way in the proxy, or in several of them."""
    return AT_ONCE_S + (2 * plan.network.late_s + 1 if plan.hops > 1 else 0)


def _is_parked(talk: Talk, peer: str, event: Event) -> bool:
    """Whether an answer waited for a client that opens no session, and was to come back with answers of its own."""
    return talk.record.revisions.get(peer) == PER_REQUEST and "method" not in event.frame


def _replies(talk: Talk, clock: Clock, plan: Plan) -> Iterator[str]:
    replies = {
        mark: event
        for peer in talk.clients()
        for event in talk.by_peer[peer]
        if event.is_said and isinstance(event.frame, dict) and "result" in event.frame and event.there is not None
        for mark in nonces_in(event.frame)
    }
    for peer in talk.servers():
        for one in talk.asked[peer]:
            if one.asked.via.startswith("array"):
                continue  # what it asked with others is answered with others
            for mark in nonces_in(one.frame):
                reply = replies.get(mark)
                if reply is None or reply.there is None or not one.answers or not one.answers[0].there:
                    continue
                held_s = clock.at_least(one.answers[0].there) - clock.at_most(reply.there)
                if held_s > _allowed_s(plan):
                    yield f"{short(reply.frame)} was held back for {held_s:.1f} s"


@rule("let-go")
def nobody_works_for_nobody(plan: Plan, talk: Talk) -> Iterator[str]:
    """When nobody waits for a call any more, its server hears so, whoever gave it up: the client, or we."""
    if plan.uses_http or plan.hops > 1:
        return
    clock = Clock(talk)
    own = {secrets_in(one.params.get("arguments") or {})[0]: one for one in _calls(talk)}
    for peer in talk.servers():
        ends_s = min(
            (event.at_s for event in talk.by_peer[peer] if event.what in ("ends", "dies", "is cut")), default=_NEVER
        )
        for got in talk.got[peer]:
            marks = secrets_in(got.params.get("arguments") or {})
            if got.frame["method"] != "tools/call" or not marks or marks[0] not in own or got.cancelled is not None:
                continue
            one = own[marks[0]]
            since_s = _given_up_at(talk, clock, one)
            if since_s is None or since_s < got.asked.at_s:
                continue
            until_s = since_s + _LET_GO_S + 3 * plan.network.late_s
            if ends_s > until_s and (not got.answers or got.answers[0].at_s > until_s):
                yield f"{peer} was not told that nobody waits for {short(got.frame)}"


@rule("in-vain")
def nothing_is_sent_that_nobody_waits_for(plan: Plan, talk: Talk) -> Iterator[str]:
    """A request that was answered, or given up, before it was sent is not sent."""
    if plan.uses_http or plan.hops > 1:
        return
    clock = Clock(talk)
    own = {mark: one for peer in talk.clients() for one in talk.asked[peer] for mark in secrets_in(one.params)[:1]}
    for peer in talk.servers():
        for got in talk.got[peer]:
            marks = secrets_in(got.params)[:1]
            one = own.get(marks[0]) if marks else None
            if one is None or one.frame["method"] != got.frame["method"] or got.asked.there is None:
                continue
            if one.asked.via.startswith("array"):
                continue  # an array that takes back what is in it passes as it is
            if one.frame["method"].startswith("resources/"):
                continue  # which a new session of the server is asked again
            ends = [answer.there for answer in one.answers[:1]] + ([one.cancelled.there] if one.cancelled else [])
            sent_s = clock.at_least(got.asked.there)
            if any(end is not None and clock.at_most(end) < sent_s - ONE_STEP_S for end in ends):
                yield f"{peer} heard {short(got.frame)} when nobody waited for it any more"


def _calls(talk: Talk) -> Iterator[Asked]:
    for peer in talk.clients():
        for one in talk.asked[peer]:
            if one.frame["method"] == "tools/call":
                yield one


def _given_up_at(talk: Talk, clock: Clock, one: Asked) -> float | None:
    """Say when nobody waited for a call any more though its server had not answered; None if it was waited for."""
    moments = [clock.at_most(answer.there or answer.turn) for answer in one.answers if not is_asking(answer.frame)]
    if one.cancelled is not None and one.cancelled.there is not None:
        moments.append(clock.at_most(one.cancelled.there))
    over = ("is cut", "ends", "leaves")
    moments += [event.at_s + _CLOSING_S for event in talk.by_peer[one.asked.peer] if event.what in over]
    return min(moments) if moments else None


@rule("idle-wait")
def no_call_waits_for_nothing(plan: Plan, talk: Talk) -> Iterator[str]:
    """A call that has come in is sent to its server, unless that starts, or is at work for somebody else."""
    if plan.uses_http or plan.hops > 1 or plan.router or plan.faults or stalls(plan):
        return
    clock = Clock(talk)
    at_server = {
        mark: got.asked.there or got.asked.turn
        for peer in talk.servers()
        for got in talk.got[peer]
        for mark in secrets_in(got.params.get("arguments") or {})[:1]
        if "inputResponses" not in got.params
    }
    for one in _calls(talk):
        mark = secrets_in(one.params.get("arguments") or {})[0]
        if one.asked.there is None or mark not in at_server or "inputResponses" in one.params:
            continue
        if client_of(plan, one.asked.peer).manner == "hasty":
            continue  # it has asked before its session was open
        if any(answer.turn < at_server[mark] for answer in one.answers):
            continue  # its client was asked first, and the server gets it when that comes back
        come_s, sent_s = clock.at_most(one.asked.there), clock.at_least(at_server[mark])
        if sent_s - come_s > AT_ONCE_S and sent_s - _free_since(talk, clock, come_s, sent_s, mark) > 1.5:
            yield f"{one.asked.peer} said {short(one.frame)}, and it waited for nothing"


def _free_since(talk: Talk, clock: Clock, come_s: float, sent_s: float, mark: tuple[str, str]) -> float:
    """Say since when the server had been ready and at work on nothing when it was sent a call."""
    since_s = come_s
    for peer in talk.servers():
        for got in talk.got[peer]:
            begins_s = clock.at_least(got.asked.there or got.asked.turn)
            if begins_s >= sent_s - 0.001 and mark in secrets_in(got.params.get("arguments") or {}):
                continue
            ends = [clock.at_most(answer.there) for answer in got.answers[:1] if answer.there is not None]
            ends += [clock.at_most(got.cancelled.there or got.cancelled.turn) + 7.0] if got.cancelled else []
            ends += [event.at_s for event in talk.by_peer[peer] if event.what in ("ends", "dies", "is cut")]
            ended_s = min(ends, default=_NEVER)
            if ended_s < sent_s:
                since_s = max(since_s, ended_s)
            elif begins_s < sent_s:
                return _NEVER
        ready = [event.at_s for event in talk.by_peer[peer] if event.is_heard and _is_ready(event)]
        if ready and ready[0] < sent_s:
            since_s = max(since_s, ready[0])
    return since_s


def _is_ready(event: Event) -> bool:
    return bool(event.frame.get("method") == "notifications/initialized")


@rule("passes")
def one_revision_passes_whole(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where a client has a server for itself and both speak one revision, each hears all that the other one says."""
    if plan.uses_http or plan.hops > 1 or plan.router or plan.scope != "client" or plan.faults or stalls(plan):
        return
    if plan.options.keys() - {"restarts", "questions"}:
        return
    for server in talk.servers():
        owners = [mark[0] for got in talk.got[server] for mark in secrets_in(got.params)[:1]]
        if not owners or talk.record.revisions.get(server) in (None, PER_REQUEST):
            continue
        client = owners[0]
        is_plain = client_of(plan, client).manner not in ("odd", "twice", "again") and not talk.is_gone(server)
        is_plain &= not any(one.is_muddled for one in talk.asked[server])
        if any(event.what == "hears an array" for event in talk.by_peer[client]):
            continue  # answers of an array wait for each other
        if not is_plain or talk.record.revisions[client] != talk.record.revisions[server] or _is_junky(plan, client):
            continue
        yield from _missing(talk, client, server)
        yield from _missing(talk, server, client)


def _is_junky(plan: Plan, client: str) -> bool:
    return any(act["do"] in ("junk", "leave", "cut") for act in client_of(plan, client).acts)


_OPENING: Final = ("initialize", "server/discover", "ping")


def _missing(talk: Talk, speaker: str, hearer: str) -> Iterator[str]:
    over = {"leaves", "ends", "is cut", "dies"}
    until = min((event.turn for event in talk.by_peer[hearer] if event.what in over), default=1 << 60)
    said = [
        event.frame
        for event in talk.by_peer[speaker]
        if event.is_said and isinstance(event.frame, dict) and event.there is not None and event.there < until
    ]
    heard = [event.frame for event in talk.by_peer[hearer] if event.is_heard]
    own = [frame for frame in heard if frame in said]
    foreign = [frame for frame in heard if frame not in said]
    lost = [frame for frame in said if frame not in heard and frame.get("method", "initialize") not in _OPENING]
    for frame in lost[:1]:
        yield f"{speaker} said {short(frame)}, and {hearer} did not hear it"
    once = [frame for frame in own if own.count(frame) == said.count(frame) == 1]
    if not lost and once != [frame for frame in said if frame in once]:
        yield f"{hearer} heard what {speaker} said in another order"
    for frame in foreign[:1]:
        if "method" in frame and frame["method"] not in _OPENING:
            yield f"{hearer} heard {short(frame)}, and {speaker} did not say it"


_KNOWN_WARNINGS: Final = (
    "one server for all client sessions",
    "has not answered for",
    "dropped /",
    "frames lost what is named above",
    "added /",
)


@rule("calm-log")
def without_trouble_nothing_is_warned_of(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where everybody behaves and nothing goes wrong, the log warns of nothing."""
    if not plan.is_calm or plan.options.keys() - {"restarts"} or plan.uses_http or plan.router or plan.hops > 1:
        return
    if any(step[0] in ("ask", "ask-on", "withdraw") for one in _calls(talk) for step in _steps(one)):
        return
    if any(
        step[:2] in (["answer", how] for how in ("both", "twice", "wrong-id", "never"))
        for one in _calls(talk)
        for step in _steps(one)
    ):
        return
    for level, text in talk.record.log:
        if level in ("WARNING", "ERROR") and not any(words in text for words in _KNOWN_WARNINGS):
            yield f"the log says {level}: {text}"


def _steps(one: Asked) -> list[list[Any]]:
    arguments = one.params.get("arguments")
    return list(arguments.get("steps", [])) if isinstance(arguments, dict) else []


@rule("known-ids")
def a_cancellation_names_what_is_known(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who hears that a request is cancelled has heard the request, and has not been told so before."""
    for peer in [*talk.clients(), *talk.servers()]:
        is_refused = peer.startswith("s") and "open_requests" in plan.options
        is_refused |= any(client.manner == "again" for client in plan.clients) or plan.scope == "client"
        odd = (
            plan.uses_http
            or is_refused
            or (plan.hops > 1 and peer.startswith("s"))
            or talk.record.revisions.get(peer) == PER_REQUEST
        )
        asked: dict[Any, int] = {}
        told: dict[Any, int] = {}
        for event in talk.by_peer[peer]:
            if not event.is_heard:
                continue
            frame = event.frame
            if "method" in frame and "id" in frame:
                asked[key_of(frame["id"])] = event.turn
                told.pop(key_of(frame["id"]), None)
            elif frame.get("method") == "notifications/cancelled":
                key = key_of((frame.get("params") or {}).get("requestId"))
                if key not in asked and key[1] != "no such" and not odd:
                    yield f"{peer} heard of the end of what it was not asked: {short(frame)}"
                if key in told and plan.hops == 1 and not odd:
                    yield f"{peer} heard twice that {key[1]!r} is cancelled"
                told[key] = event.turn
