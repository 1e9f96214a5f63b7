"""Rules and marks about signing in at servers: who is asked, how often, and what nobody may hear of it.

Some rules are noted where they are broken: `own-token` and `proof` by `peers.authority`, `one-sign-in` and `own-link`
by `people`, `no-token` by `signin_servers`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Talk, rule, short
from tests.world.situations import sometimes

_SETTLES_S: Final = 5.0
"""How long it takes at most until what somebody has signed in for counts."""


def _of(talk: Talk, what: str, peer: str = "") -> list[Event]:
    return [event for event in talk.record.events if event.what == what and peer in ("", event.peer)]


def _failures(plan: Plan) -> list[str]:
    return [fault["how"] for fault in plan.faults if fault["do"] == "sign-in"]


@rule("unheard")
def nobody_hears_what_a_sign_in_is_made_of(plan: Plan, talk: Talk) -> Iterator[str]:
    """Tokens, codes, proofs and secrets of a sign-in are in nothing that a client hears."""
    made = [event.frame for event in _of(talk, "makes")]
    for peer in talk.clients() if made else ():
        for event in talk.by_peer[peer]:
            text = json.dumps(event.frame) if event.is_heard else ""
            for one in made:
                if one in text:
                    yield f"{peer} heard {one}: {short(event.frame)}"


@rule("link-of-one")
def an_invitation_is_for_who_has_asked(plan: Plan, talk: Talk) -> Iterator[str]:
    """A link to sign in is seen by the principal alone in whose call it was needed, and by none who has not asked."""
    whose = {client.name: client.principal for client in plan.clients}
    for event in _of(talk, "sees a link"):
        peer, owner = event.frame["of"], event.frame["good for"]
        if owner not in ("", whose[peer]):
            yield f"{peer} heard a link of {owner}, who is somebody else"
        if not any(one.asked.turn < event.turn for one in talk.asked[peer]):
            yield f"{peer} has asked nothing, and heard a link"


@rule("few-pages")
def people_are_asked_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where nothing goes wrong, people sign in once at each server: what ends is refreshed without them."""
    told = plan.signin
    if not told or told["far"] or told["person"] not in ("yes", "slow") or told["hostile"] not in ("", "refuses"):
        return
    if _failures(plan) or any(fault["do"] == "clock" for fault in plan.faults) or plan.network.late_s > 1:
        return
    refreshes = (told["refresh"] and told["refreshes"]) or told["lives_s"] > 1000 or told["hostile"]
    for server in plan.servers if refreshes else ():
        pages = {event.frame["state"] for event in _of(talk, "is shown a page") if event.frame["server"] == server.name}
        if len(pages) > 1 + told["steps"]:
            yield f"{len(pages)} pages were shown to sign in at {server.name}"


@rule("signed-in")
def who_has_signed_in_by_a_link_needs_no_other(plan: Plan, talk: Talk) -> Iterator[str]:
    """Once somebody has signed in at a server, no request in any session is answered with a link to it any more."""
    told = plan.signin
    if not told or not told["far"] or told["hostile"] or plan.faults or plan.network.late_s > 1 or told["steps"]:
        return
    if not (told["refresh"] and told["refreshes"]) and told["lives_s"] < 1000:
        return
    since_s: dict[str, float] = {}
    for event in _of(talk, "trades"):
        since_s.setdefault(event.peer.replace("a", "s"), event.at_s + _SETTLES_S)
    for peer in talk.clients():
        for one in talk.asked[peer]:
            text = json.dumps(one.answers[0].frame) if one.answers else ""
            for server, at_s in since_s.items():
                if one.asked.at_s > at_s and f"{server}: it wants a sign-in" in text:
                    yield f"somebody had signed in at {server}, and {peer} heard {text[:400]}"


@rule("refreshed-once")
def a_refresh_token_is_shown_once(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where each counts once, no refresh token is shown a second time, by whichever process."""
    if plan.network.late_s <= 1 and not _failures(plan):
        for event in _of(talk, "is shown again"):
            yield f"{event.peer} got a refresh token that it had replaced"


@rule("not-traded")
def what_comes_from_somebody_else_is_not_traded(plan: Plan, talk: Talk) -> Iterator[str]:
    """A code that comes with another state, or from another authorization server, is not traded for a token."""
    if plan.signin.get("hostile") in ("wrong-state", "wrong-iss", "other-issuer", "other-resource", "leads-away"):
        for event in _of(talk, "trades"):
            yield f"{event.peer} is not to be trusted ({plan.signin['hostile']}), and was asked for a token"


def _goes_on_after(talk: Talk, turn: int) -> bool:
    return any(
        answer.turn > turn and "result" in answer.frame and one.asked.turn > turn
        for peer in talk.clients()
        for one in talk.asked[peer]
        for answer in one.answers
    )


@sometimes("somebody signs in, and the requests of several clients go on")
def _several(plan: Plan, talk: Talk) -> bool:
    if not _of(talk, "trades"):
        return False
    served = {
        peer for peer in talk.clients() for one in talk.asked[peer] if any("result" in a.frame for a in one.answers)
    }
    return len(served) > 1


@sometimes("a token has ended, and another one comes in its place without anybody")
def _refreshed(plan: Plan, talk: Talk) -> bool:
    turns = [event.turn for event in _of(talk, "trades") if event.frame == "for a refresh token"]
    return bool(turns) and _goes_on_after(talk, turns[0])


@sometimes("a token at a server is withdrawn, and somebody signs in again")
def _withdrawn(plan: Plan, talk: Talk) -> bool:
    gone = [event.turn for event in _of(talk, "takes back")]
    return bool(gone) and any(event.turn > gone[0] and event.frame == "for a code" for event in _of(talk, "trades"))


@sometimes("an authorization server has forgotten us, and we register again")
def _forgotten(plan: Plan, talk: Talk) -> bool:
    gone = [event.turn for event in _of(talk, "forgets its clients")]
    known = [event.turn for event in _of(talk, "registers")]
    return bool(gone) and any(turn < gone[0] for turn in known) and any(turn > gone[0] for turn in known)


@sometimes("whoever is asked to sign in does not want to, and calls are told")
def _declined(plan: Plan, talk: Talk) -> bool:
    return any("the sign-in was refused" in str(event.frame) for event in talk.record.events if event.is_heard)


@sometimes("of several processes one signs in, and another takes what it got")
def _taken(plan: Plan, talk: Talk) -> bool:
    return bool(plan.signin.get("apart")) and any("signed in meanwhile" in text for _, text in talk.record.log)


@sometimes("nobody waits for a sign-in any more")
def _left(plan: Plan, talk: Talk) -> bool:
    return any("nobody waits for the sign-in" in text for _, text in talk.record.log)


@sometimes("a hostile answer ends a sign-in")
def _hostile(plan: Plan, talk: Talk) -> bool:
    return bool(plan.signin.get("hostile")) and any(
        "is not used" in str(e.frame) for e in talk.record.events if e.is_heard
    )


@sometimes("somebody far away signs in by a link, and the call goes on")
def _far(plan: Plan, talk: Talk) -> bool:
    opened = [e.turn for e in _of(talk, "opens a link") if e.frame["status"] == 200 and not e.frame["foreign"]]
    return bool(opened and _of(talk, "trades")) and any(
        answer.turn > opened[0] and "result" in answer.frame
        for peer in talk.clients()
        for one in talk.asked[peer]
        if one.frame["method"] == "tools/call"
        for answer in one.answers
    )


@sometimes("somebody opens the link of somebody else, and is turned away")
def _foreign(plan: Plan, talk: Talk) -> bool:
    return any(event.frame["foreign"] and event.frame["status"] == 403 for event in _of(talk, "opens a link"))
