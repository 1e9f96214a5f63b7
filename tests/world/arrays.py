"""Arrays of requests: plans in which clients send them, and what is held of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from tests.world.peers.words import KNOW as KNOW
from tests.world.peers.words import key_of
from tests.world.plan import ENDS_ALL, Act, Plan
from tests.world.record import Event
from tests.world.rules import Talk, client_of, rule
from tests.world.situations import sometimes

_SURE: Final = ("text", "structured", "failed", "error", "twice", "both")
_FIT: Final = ("call", "list", "read", "prompt", "complete", "ping", "level", "cancel")


def add_arrays(plan: Plan, chance: random.Random) -> None:
    """Let clients say several things at once, at servers that know arrays, or do not; and servers, too."""
    if chance.random() >= (0.3 if plan.front == "lines" else 0.2):
        return
    for server in plan.servers:
        if (server.link == "lines" or plan.front != "lines") and chance.random() < 0.6:
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
    for server in plan.servers:
        server.arrays = server.revisions[0] in KNOW and chance.random() < 0.4
    for client in plan.clients if plan.front == "lines" else ():
        gathered = [n for n, act in enumerate(client.acts) if "array" in act]
        if gathered and chance.random() < 0.3:  # a member that is no frame, under the id of a request
            beside = client.acts[gathered[0]]
            odd = {"at": beside["at"], "do": "odd", "n": 200, "array": beside["array"]}
            client.acts.insert(gathered[0] + 1, odd)


def _ends(act: Act) -> bool:
    """Whether something ends by itself: all that is in an array waits for it."""
    steps = act.get("steps", [])
    sure = any(step[0] == "answer" and step[1] in _SURE for step in steps)
    return act["do"] != "call" or (sure and not any(step[0] in ("ask", *ENDS_ALL) for step in steps))


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
                told = [str(key) for key in answer.frame if key is not None]
                if sorted(told) != sorted({str(key) for key in answer.frame if key_of(key) in keys}):
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


@sometimes("an array that was posted is answered with one")
def _posted(plan: Plan, talk: Talk) -> bool:
    names = {client.name for client in plan.clients if plan.front == "http" and not client.way}
    return any(_heard(talk, peer) and any(_said(talk, peer)) for peer in talk.clients() if peer in names)


@sometimes("an array comes over WebSocket, and is answered with one")
def _by_websocket(plan: Plan, talk: Talk) -> bool:
    names = {client.name for client in plan.clients if client.way == "websocket"}
    return any(_heard(talk, peer) and any(_said(talk, peer)) for peer in talk.clients() if peer in names)


@sometimes("a server says several things in one array")
def _server_gathers(plan: Plan, talk: Talk) -> bool:
    return any(True for peer in talk.servers() for _ in _said(talk, peer))
