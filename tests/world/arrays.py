"""Arrays of requests: plans in which clients send them, and what is held of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from dragoman_spec import HANDSHAKE_REVISIONS, facts
from tests.world.peers.words import key_of
from tests.world.plan import Act, Plan
from tests.world.record import Event
from tests.world.rules import Talk, client_of, rule
from tests.world.situations import sometimes

KNOW: Final = tuple(revision for revision in HANDSHAKE_REVISIONS if facts(revision).batches)
"""The revisions with arrays."""

_SURE: Final = ("text", "structured", "failed", "error", "twice", "both")
_FIT: Final = ("call", "list", "read", "prompt", "complete", "ping", "level", "cancel")


def add_arrays(plan: Plan, chance: random.Random) -> None:
    """Let clients that speak by lines say several things at once, at servers that know arrays, or do not."""
    if plan.front != "lines" or chance.random() >= 0.3:
        return
    for server in plan.servers:
        if server.link == "lines" and chance.random() < 0.6:
            server.revisions = [chance.choice(KNOW)]
    for client in plan.clients:
        if chance.random() < 0.4 or client.manner == "again":
            continue
        client.revision = chance.choice(KNOW)
        fit = [act for act in client.acts if act["do"] in _FIT and _ends(act)]
        for first in range(0, len(fit) - 1, 4):
            together = fit[first : first + chance.choice((1, 2, 3, 4))]
            for act in together:
                act["array"], act["at"] = first + 1, together[0]["at"]
        client.acts.sort(key=lambda act: float(act["at"]))


def _ends(act: Act) -> bool:
    """Whether something ends by itself: all that is in an array waits for it."""
    steps = act.get("steps", [])
    sure = any(step[0] == "answer" and step[1] in _SURE for step in steps)
    return act["do"] != "call" or (sure and not any(step[0] in ("ask", "die") for step in steps))


def _said(talk: Talk, peer: str) -> Iterator[Event]:
    return (event for event in talk.by_peer[peer] if event.what == "says an array")


def _heard(talk: Talk, peer: str) -> list[Event]:
    return [event for event in talk.by_peer[peer] if event.what == "hears an array"]


@rule("array")
def an_array_is_answered_with_one(plan: Plan, talk: Talk) -> Iterator[str]:
    """The answers to the requests of an array come in one array, each id once; nothing else comes in that."""
    for peer in talk.clients():
        if client_of(plan, peer).revision not in KNOW:
            continue
        heard = _heard(talk, peer)
        opened = [
            answer.turn for one in talk.asked[peer] if one.frame["method"] == "initialize" for answer in one.answers
        ]
        for event in _said(talk, peer):
            if not opened or event.turn < opened[0]:
                continue  # nobody knows yet which revision is spoken
            asked = [one for one in talk.asked[peer] if one.asked.via == event.via and one.asked.turn > event.turn]
            keys = [key_of(one.frame["id"]) for one in asked]
            ours = [one for one in heard if any(key_of(key) in keys for key in one.frame if key is not None)]
            if len(ours) > 1:
                yield f"{peer} said {event.frame} in one array, and heard {[one.frame for one in ours]}"
            for answer in ours:
                if sorted(map(str, answer.frame)) != sorted({str(key) for key in answer.frame if key_of(key) in keys}):
                    yield f"{peer} said {event.frame} in an array, and heard {answer.frame}"
            for one in asked:
                if one.cancelled is None and any(not each.via.startswith("array") for each in one.answers):
                    yield f"{peer} said {event.frame} in an array, and heard the answer to {one.frame['id']} alone"


@rule("no-array")
def who_knows_no_arrays_hears_none(plan: Plan, talk: Talk) -> Iterator[str]:
    """Arrays come only to peers whose revision has them."""
    for peer in (*talk.clients(), *talk.servers()):
        for event in _heard(talk, peer):
            if talk.record.revisions.get(peer) not in KNOW:
                yield f"{peer} speaks {talk.record.revisions.get(peer)}, and heard an array: {event.frame}"


@sometimes("an array of requests is answered with one, by a server that heard one")
def _whole(plan: Plan, talk: Talk) -> bool:
    is_whole = any(_heard(talk, peer) for peer in talk.servers())
    return is_whole and any(_heard(talk, peer) for peer in talk.clients())


@sometimes("an array of requests is taken apart, and answered with one")
def _apart(plan: Plan, talk: Talk) -> bool:
    is_whole = any(_heard(talk, peer) for peer in talk.servers())
    return not is_whole and any(_heard(talk, peer) for peer in talk.clients())


@sometimes("a request of an array is cancelled, and the others are answered")
def _cancelled(plan: Plan, talk: Talk) -> bool:
    for peer in talk.clients():
        for event in _said(talk, peer):
            asked = [one for one in talk.asked[peer] if one.asked.via == event.via]
            if any(one.cancelled for one in asked) and any(one.answers for one in asked):
                return True
    return False
