"""Rules and marks about who is let in: by tokens of an authorization server, by secrets, and at which path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.world.peers.words import secrets_in
from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, rule, short
from tests.world.situations import sometimes

_SURE_S: Final = 60.0
"""How long what was found out of a token counts."""

_LEEWAY_S: Final = 30.0
"""How much clocks may differ: so long a token counts after its end."""

_PAUSE_S: Final = 45.0
"""How long a token may be refused that is signed with a new key: keys are fetched now and then."""

_BAD: Final = ("nothing", "forged", "foreign", "elsewhere")


def _has_clock(plan: Plan) -> bool:
    return any(fault["do"] == "clock" for fault in plan.faults)


def ends_s(plan: Plan, talk: Talk, peer: str) -> float:
    """Say from when on a client must not be served: what it shows has ended, or was withdrawn, long enough ago."""
    client = client_of(plan, peer)
    given = [event for event in talk.record.events if event.what == "gives" and event.frame["whom"] == peer]
    withdrawn = [event.at_s for event in talk.record.events if event.what == "withdraws" and event.frame == peer]
    if client.shows not in ("token", "old token") or not given:
        return 1e12
    last_s = given[-1].at_s + given[-1].frame["for_s"] + _LEEWAY_S
    ended_s = 1e12 if client.shows == "token" and not withdrawn else last_s
    if withdrawn and plan.guard["asks"]:
        ended_s = min(ended_s, withdrawn[0] + _SURE_S)
    return ended_s


def _server_of(talk: Talk, one: Asked) -> str:
    """Give which server heard a request when it had been said: one that is like it, of the same secret."""
    marks = secrets_in(one.params)[:1]
    heard = (
        peer
        for peer in talk.servers()
        for got in talk.got[peer]
        if got.asked.turn > one.asked.turn and got.frame["method"] == one.frame["method"]
        if marks and secrets_in(got.params)[:1] == marks
    )
    return next(heard, "")


def _reached(talk: Talk) -> dict[tuple[str, str], str]:
    """Give which server heard which call."""
    return {mark: peer for peer in talk.servers() for one in talk.got[peer] for mark in secrets_in(one.params)[:1]}


@rule("guarded")
def nobody_is_let_in_with_a_bad_token(plan: Plan, talk: Talk) -> Iterator[str]:
    """Who shows no token that counts hears nothing but refusals, and reaches no server."""
    if not plan.guard:
        return
    for peer in talk.clients():
        if client_of(plan, peer).shows not in _BAD:
            continue
        for event in talk.by_peer[peer]:
            if event.is_heard and ("method" in event.frame or "result" in event.frame):
                yield f"{peer} shows {client_of(plan, peer).shows}, and heard {short(event.frame)}"
    for (owner, number), server in _reached(talk).items():
        if client_of(plan, owner).shows in _BAD:
            yield f"{server} heard the call {number} of {owner}, who shows {client_of(plan, owner).shows}"


@rule("shut-out")
def who_is_let_in_no_more_is_refused(plan: Plan, talk: Talk) -> Iterator[str]:
    """What is said with a token that has ended, or a secret that is revoked, is refused, and reaches no server."""
    if plan.front != "http" or _has_clock(plan):
        return
    revoked = {event.frame: event.turn for event in reversed(talk.record.events) if event.what == "lets in no more"}
    for peer in talk.clients():
        client = client_of(plan, peer)
        until_s = ends_s(plan, talk, peer) if plan.guard else 1e12
        by_secret = not plan.guard or client.shows == "secret"
        until = revoked.get(client.principal, 1 << 60) if by_secret else 1 << 60
        for one in talk.asked[peer]:
            if client.way or not (one.asked.turn > until or one.asked.at_s > until_s):
                continue
            heard = [answer for answer in one.answers if "result" in answer.frame]
            server = _server_of(talk, one)
            if heard or server:
                yield f"{peer} is let in no more, and {server or 'the proxy'} served {short(one.frame)}"


@rule("socket-ends")
def a_websocket_ends_with_its_token(plan: Plan, talk: Talk) -> Iterator[str]:
    """A WebSocket is closed within a minute after its token has ended."""
    if not plan.guard or _has_clock(plan) or plan.network.late_s > 1:
        return
    for peer in talk.clients():
        client = client_of(plan, peer)
        given = [event for event in talk.record.events if event.what == "gives" and event.frame["whom"] == peer]
        if client.way != "websocket" or not given or any(act["do"] == "stall" for act in client.acts):
            continue
        # It shows the token once, when it opens: another one that it gets later is of no use.
        until_s = given[0].at_s + given[0].frame["for_s"] + _LEEWAY_S
        withdrawn = [event.at_s for event in talk.record.events if event.what == "withdraws" and event.frame == peer]
        if withdrawn and plan.guard["asks"]:
            until_s = min(until_s, withdrawn[0])
        until_s += _SURE_S + 5
        late = [event for event in talk.by_peer[peer] if event.is_heard and event.at_s > until_s]
        if late:
            yield f"the token of {peer} ended long ago, and it heard {short(late[0].frame)} over its WebSocket"


def _refusals(talk: Talk, peer: str) -> Iterator[Event]:
    return (event for event in talk.by_peer[peer] if event.what == "is refused")


@rule("token-counts")
def who_has_a_good_token_is_let_in(plan: Plan, talk: Talk) -> Iterator[str]:
    """A token that counts is refused only where its key is new, or the issuer away."""
    if not plan.guard or _has_clock(plan):
        return
    new = [event.at_s for event in talk.record.events if event.what == "has another key"]
    away = any(fault["do"] == "issuer" for fault in plan.faults)
    for peer in talk.clients():
        client = client_of(plan, peer)
        is_withdrawn = any(event.what == "withdraws" and event.frame == peer for event in talk.record.events)
        if client.shows != "token" or is_withdrawn:
            continue
        for event in _refusals(talk, peer):
            is_new = any(at_s <= event.at_s <= at_s + _PAUSE_S for at_s in new)
            if event.frame["status"] == 401 and not is_new and not away:
                yield f"{peer} has a good token, and was refused with 401: {short(event.frame)}"
            if event.frame["status"] == 503 and not client.way and "Retry-After" not in event.frame:
                yield f"{peer} was refused with 503, and not told when to come again: {short(event.frame)}"


@rule("challenged")
def who_is_refused_is_told_where_tokens_are(plan: Plan, talk: Talk) -> Iterator[str]:
    """Each 401 of a guarded proxy says where its metadata are."""
    for peer, event in _count(talk, 401) if plan.guard else ():
        if client_of(plan, peer).way != "websocket" and "asks" not in event.frame:
            yield f"{peer} was refused with 401, and not told which token is wanted"


@rule("asked-seldom")
def the_issuer_is_asked_seldom(plan: Plan, talk: Talk) -> Iterator[str]:
    """Keys are fetched a few times at first, and then every 30 seconds at most; of a token, once a minute."""
    if not plan.guard or _has_clock(plan) or any(fault["do"] == "issuer" for fault in plan.faults):
        return
    fetched = [e.at_s for e in talk.record.events if e.what == "is asked" and e.frame["path"] == "/keys"]
    for first_s, third_s in zip(fetched, fetched[3:], strict=False):
        if third_s - first_s < 29:
            yield f"the keys were fetched four times within {third_s - first_s:.1f} s"
    about: dict[str, list[float]] = {}
    for event in talk.record.events:
        if event.what == "is asked about" and event.frame["whom"] is not None:
            about.setdefault(event.frame["whom"], []).append(event.at_s)
    for whom, times in about.items():
        own = sum(event.what == "gives" and event.frame["whom"] == whom for event in talk.record.events)
        most = own * (1 + (times[-1] - times[0]) / 59)
        if len(times) > most + 1:
            yield f"the issuer was asked {len(times)} times about tokens of {whom} in {times[-1] - times[0]:.0f} s"


@rule("own-path")
def a_path_leads_to_its_server(plan: Plan, talk: Talk) -> Iterator[str]:
    """What is asked at the path of a server reaches no other."""
    for (owner, number), server in _reached(talk).items():
        path = client_of(plan, owner).path
        if path and server.partition(".")[0] != path:
            yield f"{owner} asked at the path of {path}, and {server} heard its call {number}"


def _count(talk: Talk, status: int) -> Iterator[tuple[str, Event]]:
    for peer in talk.clients():
        yield from ((peer, event) for event in _refusals(talk, peer) if event.frame["status"] == status)


def _serves_after(talk: Talk, peer: str, turn: int) -> bool:
    return any(answer.turn > turn and "result" in answer.frame for one in talk.asked[peer] for answer in one.answers)


@sometimes("a token is withdrawn in the middle of a session, and its client is refused")
def _withdrawn(plan: Plan, talk: Talk) -> bool:
    gone = {event.frame: event.turn for event in talk.record.events if event.what == "withdraws"}
    return any(
        peer in gone and event.turn > gone[peer] and _was_served(talk, peer) for peer, event in _count(talk, 401)
    )


def _was_served(talk: Talk, peer: str) -> bool:
    return any("result" in answer.frame for one in talk.asked[peer] for answer in one.answers)


@sometimes("a token ends in the middle of a session, and the next one goes on with it")
def _renewed(plan: Plan, talk: Talk) -> bool:
    given: dict[str, list[int]] = {}
    for event in talk.record.events:
        if event.what == "gives":
            given.setdefault(event.frame["whom"], []).append(event.turn)
    return any(
        len(turns) > 1 and client_of(plan, peer).way == "" and _serves_after(talk, peer, turns[1])
        for peer, turns in given.items()
    )


@sometimes("the issuer has another key, and a token that it signed is taken")
def _rotated(plan: Plan, talk: Talk) -> bool:
    turns = [event.turn for event in talk.record.events if event.what == "has another key"]
    return bool(turns) and any(
        event.what == "gives" and event.turn > turns[0] and _serves_after(talk, event.frame["whom"], event.turn)
        for event in talk.record.events
    )


@sometimes("the issuer is away, and whoever has a token that is not known is told to come again")
def _away(plan: Plan, talk: Talk) -> bool:
    return bool(plan.guard) and any(True for _ in _count(talk, 503))


@sometimes("the issuer is away, and a session goes on with what is known")
def _goes_on(plan: Plan, talk: Talk) -> bool:
    away = [event.turn for event in talk.record.events if event.what == "is away"]
    return bool(away and plan.guard) and any(
        one.asked.turn > away[0] and any("result" in answer.frame for answer in one.answers)
        for peer in talk.clients()
        for one in talk.asked[peer]
    )


@sometimes("a WebSocket is closed because its token has ended")
def _socket(plan: Plan, talk: Talk) -> bool:
    return bool(plan.guard) and any(
        client_of(plan, peer).way == "websocket"
        and ends_s(plan, talk, peer) < 1e12
        and next((e.what for e in talk.by_peer[peer] if e.what in ("leaves", "ends", "is cut")), "") == "ends"
        and _was_served(talk, peer)
        for peer in talk.clients()
    )


@sometimes("clients at the paths of different servers are served at once")
def _paths(plan: Plan, talk: Talk) -> bool:
    peers = talk.clients() if plan.guard else []
    return len({client_of(plan, peer).path for peer in peers if _was_served(talk, peer)} - {""}) > 1
