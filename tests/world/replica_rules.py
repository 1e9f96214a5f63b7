"""Rules and marks about several instances: what decision 72 promises, and what is refused only for a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dragoman.instances.relay import SILENCE_S
from tests.world.peers import words
from tests.world.peers.words import secrets_in
from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, rule, short
from tests.world.situations import sometimes

_OF_INSTANCES = frozenset({"kill", "hang", "retire", "store", "slow", "silence"})
"""Faults after which a request may be refused though nobody did anything wrong."""


def _faults(plan: Plan) -> set[str]:
    return {fault["do"] for fault in plan.faults}


def _refusals(talk: Talk, peer: str) -> Iterator[tuple[Event, Any]]:
    return ((event, event.frame["status"]) for event in talk.by_peer[peer] if event.what == "is refused")


@rule("called-once")
def no_call_is_made_twice(plan: Plan, talk: Talk) -> Iterator[str]:
    """A call is sent to a server once, whatever becomes of the instance that had it."""
    if plan.instances == 1 or plan.options.get("questions") == "replay":
        return
    heard: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for peer in talk.servers():
        for one in talk.got[peer]:
            if one.frame["method"] == "tools/call" and not {"requestState", "inputResponses"} & one.params.keys():
                for mark in secrets_in(one.params.get("arguments") or {})[:1]:
                    heard[mark].append(one)
    said = {
        mark
        for peer in talk.clients()
        for one in talk.asked[peer]
        if "requestState" in one.params
        for mark in secrets_in(one.params.get("arguments") or {})[:1]
    }
    for mark, calls in heard.items():
        if len(calls) > 1 and mark not in said:  # who comes back with an answer may be made to ask again
            yield f"{len(calls)} times: {short(calls[0].frame)}"


@rule("refused-why")
def a_request_is_refused_for_a_reason(plan: Plan, talk: Talk) -> Iterator[str]:
    """Between instances that live, with a store that answers, no session is lost and no request refused."""
    if plan.instances == 1:
        return
    went = _faults(plan)
    is_limited = bool({"sessions", "streams"} & plan.front_options.keys()) or "open_requests" in plan.options
    for peer in talk.clients():
        given_up = {words.key_of(one.frame["id"]) for one in talk.asked[peer] if one.cancelled is not None}
        for event, status in _refusals(talk, peer):
            if status == 0 and (words.key_of(event.frame["id"]) in given_up or _breaks(talk, peer)):
                continue  # its stream ends without an answer
            why = {
                # On a slow network a request may meet the end of its connection, which was kept and has been idle.
                0: "kill" in went or "retire" in went or "hang" in went or plan.network.late_s > 1,
                # One that takes long for whatever it is asked counts as one that hangs.
                502: "kill" in went or "retire" in went or "hang" in went or 3 * plan.network.late_s > SILENCE_S,
                503: bool(went & _OF_INSTANCES) or is_limited or plan.network.late_s >= 1,
                408: "hang" in went or plan.network.late_s > 1,
                429: is_limited,
                404: bool(went & (_OF_INSTANCES | {"stop", "drain", "revoke", "die", "forget"}))
                or _ends_by_itself(talk, peer),
            }.get(status, True)
            if not why:
                yield f"{peer} was refused with {status}, and nothing has happened: {short(event.frame)}"


def _breaks(talk: Talk, peer: str) -> bool:
    """Whether a client loses its streams: one that has brought no event yet cannot be taken up again."""
    return any(event.what == "loses its streams" for event in talk.by_peer[peer])


def _ends_by_itself(talk: Talk, peer: str) -> bool:
    """Whether a session may have ended for what its client or its server did."""
    return any(event.what in ("leaves", "writes", "reads nothing") for event in talk.by_peer[peer]) or any(
        event.what in ("dies", "is told to stop", "is told to drain") for event in talk.record.events
    )


@rule("goes-on")
def sessions_go_on_elsewhere(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where all servers are reached over HTTP and live, and the store is well, a session outlives its instance."""
    if plan.instances == 1 or plan.router or any(server.link != "http" for server in plan.servers):
        return
    kept = {fault["keeps"] for fault in plan.faults if fault["do"] == "store"}
    if _faults(plan) - {"kill", "retire", "hang", "clock", "save", "slow", "silence", "store"} or kept - {"all"}:
        return
    if any(fault["do"] == "silence" and "whom" in fault for fault in plan.faults):  # of a server
        return
    if plan.network.late_s > 1:
        return
    if any(server.manner == "garbles" or server.start_s > 1 or len(server.revisions) > 1 for server in plan.servers):
        return
    if plan.front_options.keys() & {"sessions", "streams"} or plan.options.keys() & {"open_requests", "greets"}:
        return
    for peer in talk.clients():
        opened = next((event.turn for event in talk.by_peer[peer] if _is_opened(event)), None)
        for event, status in _refusals(talk, peer):
            if status == 404 and opened is not None and event.turn > opened and not _ends_by_itself(talk, peer):
                yield f"{peer} has lost its session: {short(event.frame)}"


@rule("resumable")
def a_stream_that_broke_goes_on(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where instances live, or end in order and keep what they have told, who takes up a stream again gets the rest."""
    if not plan.events or _faults(plan) - {"retire", "clock", "save"} or plan.network.late_s > 1:
        return
    if any(server.link != "http" for server in plan.servers) or plan.router or "sessions" in plan.front_options:
        return  # then sessions end with their instance
    for peer in talk.clients():
        for event, status in _refusals(talk, peer):
            if event.frame.get("resumes") and not _ends_by_itself(talk, peer):
                yield f"{peer} took up a stream again, and was refused with {status}: {short(event.frame)}"


def _is_opened(event: Event) -> bool:
    return event.is_said and isinstance(event.frame, dict) and event.frame.get("method") == "notifications/initialized"


def _logs(talk: Talk, words: str) -> bool:
    return any(words in text for _, text in talk.record.log)


@sometimes("an instance is handed a request of another one's session")
def _handed(plan: Plan, talk: Talk) -> bool:
    return any(event.what == "is handed a request" for event in talk.record.events)


@sometimes("a session goes on at another instance than the one that was killed")
def _goes_on(plan: Plan, talk: Talk) -> bool:
    return "kill" in _faults(plan) and _logs(talk, "a session of an instance that is gone goes on here")


@sometimes("a session goes on at another instance than the one that has ended")
def _rolls_on(plan: Plan, talk: Talk) -> bool:
    return "retire" in _faults(plan) and _logs(talk, "a session of an instance that is gone goes on here")


@sometimes("an instance that was taken for dead comes back, and gives up what goes on elsewhere")
def _gives_up(plan: Plan, talk: Talk) -> bool:
    return _logs(talk, "a session ends here: another instance has taken it over")


@sometimes("a stream that broke is taken up again at another instance, which has what the store kept")
def _taken_up(plan: Plan, talk: Talk) -> bool:
    if not plan.events:
        return False
    return any(
        "the instance of the proxy that had this is gone" in str(answer.frame.get("error"))
        for peer in talk.clients()
        for one in talk.asked[peer]
        for answer in one.answers
    )


@sometimes("a client loses its streams, and hears an answer on one that it has taken up again")
def _broken(plan: Plan, talk: Talk) -> bool:
    for peer in talk.clients():
        lost = [event.turn for event in talk.by_peer[peer] if event.what == "loses its streams"]
        for one in talk.asked[peer] if lost else ():
            if one.asked.turn < lost[0] and any(answer.turn > lost[0] for answer in one.answers):
                return True
    return False


@sometimes("nobody knows what became of a call at an instance that was killed")
def _unknown(plan: Plan, talk: Talk) -> bool:
    return _logs(talk, "nobody knows what became of the request")


@sometimes("the store does not answer, and a request is refused because of it")
def _store_away(plan: Plan, talk: Talk) -> bool:
    return _logs(talk, "where this is cannot be found out just now")


@sometimes("a client without a session comes back to another instance, and its call goes on")
def _comes_back_elsewhere(plan: Plan, talk: Talk) -> bool:
    if plan.instances == 1:
        return False
    handed = any(event.what == "is handed a request" for event in talk.record.events)
    return handed and any(
        "inputResponses" in one.params and any("result" in answer.frame for answer in one.answers)
        for peer in talk.clients()
        for one in talk.asked[peer]
    )
