"""Rules about what outlives the request that asked for it: subscriptions, when a server is started again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.world.peers.words import secrets_in
from tests.world.plan import Plan
from tests.world.rules import Asked, Talk, rule


@rule("not-again")
def what_has_failed_is_not_asked_again(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server that was started again is not subscribed to what its client was told it is not subscribed to."""
    if plan.hops > 1 or plan.router or plan.instances > 1:
        return
    for peer in talk.servers():
        for again in (one for one in talk.got[peer] if str(one.frame["id"]).startswith("dragoman-again-")):
            uri = again.params.get("uri")
            asked = [one for client in talk.clients() for one in talk.asked[client] if _is_about(one, uri)]
            told = [one for one in asked if one.answers and (one.answers[0].there or 0) < (again.asked.there or 0)]
            if asked and len(told) == len(asked) and all("error" in one.answers[0].frame for one in told):
                yield f"{peer} is asked again for {uri}, and whoever asked for it was told that this has failed"


@rule("wanted-once")
def one_session_is_asked_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """However often sessions are lost, no session of a server hears a subscription more often than somebody wants."""
    if plan.hops > 1 or plan.router or plan.instances > 1:
        return
    said = Counter(
        one.params["uri"]
        for peer in talk.clients()
        for one in talk.asked[peer]
        if one.frame["method"] == "resources/subscribe"
    )
    for peer in talk.servers():
        for uri, count in Counter(_subscribed(talk, peer)).items():
            if count > said[uri] and said[uri]:
                yield f"{peer} heard {count} x a subscription to {uri}, and {said[uri]} were wanted"


def _subscribed(talk: Talk, server: str) -> Iterator[str]:
    return (one.params["uri"] for one in talk.got[server] if one.frame["method"] == "resources/subscribe")


@rule("sent-on")
def what_is_turned_away_twice_is_not_sent_again(plan: Plan, talk: Talk) -> Iterator[str]:
    """A frame that a server knows no session for is sent again in a new one, once: it may be what ends sessions."""
    if plan.instances > 1:
        return
    away = Counter(
        (event.peer, event.frame["method"], *mark)
        for event in talk.record.events
        if event.what == "turns away" and "id" in event.frame
        for mark in secrets_in(event.frame.get("params") or {})[:1]
    )
    for (peer, method, owner, number), count in away.items():
        if count > 2:
            yield f"{peer} turned away {method} {number} of {owner} {count} times"


def _is_about(one: Asked, uri: object) -> bool:
    return bool(one.frame["method"] == "resources/subscribe" and one.params.get("uri") == uri)
