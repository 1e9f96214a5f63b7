"""What each peer is due, whatever the others do: a client that behaves, and a server that does what it is asked.

A rule here looks at one peer at a time, and at what others do only where it concerns that one. So most of them hold in
worlds where somebody else leaves, cancels, asks too much or keeps silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dragoman_spec import HANDSHAKE_REVISIONS, facts
from tests.world.access import is_denied
from tests.world.flows import Clock, stalls
from tests.world.peers.words import PER_REQUEST, secrets_in
from tests.world.plan import ENDS_ALL, Act, Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, is_asking, numbered, rule, short

_LEVELS: Final = facts(HANDSHAKE_REVISIONS[-1]).log_levels
_LONGEST_PAUSE_S: Final = 30.0
"""The longest pause before a server is started again; one that was open for so long has recovered."""

_FAREWELL_S: Final = 4.0
"""How long servers may take to go when their session is over."""

GOES_S: Final = 14.0
"""The same for those that are processes, and heed nothing but SIGKILL."""

_NEVER: Final = float("inf")
_ODD_ACTS: Final = frozenset({"leave", "cut", "stall", "junk"})
_TIMES: Final = frozenset({"request_timeout_s", "open_requests", "health_s"})
_SURE: Final = ("text", "structured", "failed", "twice")
_SECRET: Final = ("tools/call", "resources/read", "prompts/get", "completion/complete")


def acts_of(plan: Plan, client: str) -> list[Act]:
    return client_of(plan, client).acts


def behaves(plan: Plan, client: str) -> bool:
    """Whether a client does nothing odd, and stays until it has all answers."""
    is_good = client_of(plan, client).manner in ("good", "slow", "odd")
    return is_good and not any(act["do"] in _ODD_ACTS for act in acts_of(plan, client))


def is_sound(plan: Plan) -> bool:
    """Whether nothing fails but clients: no faults, servers that live, no limits that refuse."""
    return (
        not plan.faults
        and "per_minute" not in plan.access
        and not any(step[0] in ENDS_ALL for one in plan.clients for act in one.acts for step in act.get("steps", []))
        and not any(server.manner in ("rude", "garbles", "refuses") or server.start_s > 50 for server in plan.servers)
        and not plan.options.keys() & _TIMES
        and plan.options.get("questions") not in ("refuse", "replay", "task")
        and not plan.front_options.keys() & {"streams", "sessions"}
        and not plan.pool
        and plan.is_let_in
    )


@rule("served")
def who_behaves_is_served(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where no server fails, a client that behaves gets what the server says to each request, whatever others do."""
    is_far = plan.router or plan.hops > 1
    if not is_sound(plan) or (is_far and (plan.network.late_s > 1 or any(one.is_slow for one in plan.servers))):
        return
    for peer in talk.clients():
        if not behaves(plan, peer) or (plan.front == "http" and plan.network.late_s > 5):
            continue
        for one in talk.asked[peer]:
            marks, steps = secrets_in(one.params), _steps(one)
            asks = any(step[0] == "ask" for step in steps) or "inputResponses" in one.params
            if one.frame["method"] not in _SECRET or one.cancelled or asks or not marks or not one.answers:
                continue
            if is_denied(plan, peer, one):
                continue
            silent = "never" if one.frame["method"] == "tools/call" else "text"
            how = next((step[1] for step in steps if step[0] == "answer"), silent)
            heard = one.answers[0].frame
            if how in _SURE and not is_asking(heard) and ("result" not in heard or marks[0] not in secrets_in(heard)):
                yield f"{peer} said {short(one.frame)}, and heard {short(heard)}"


def _steps(one: Asked) -> list[list[Any]]:
    arguments = one.params.get("arguments")
    return list(arguments.get("steps", [])) if isinstance(arguments, dict) else []


@rule("level-told")
def a_server_speaks_as_much_as_anybody_wants(plan: Plan, talk: Talk) -> Iterator[str]:
    """The level that a shared server was told last is not above that of any session that is there."""
    if plan.uses_http or plan.hops > 1 or plan.router or plan.scope == "client" or plan.faults:
        return
    for server in talk.servers():
        if talk.record.revisions.get(server) not in HANDSHAKE_REVISIONS or talk.is_gone(server):
            continue
        told = [got for got in talk.got[server] if got.frame["method"] == "logging/setLevel" and got.answers]
        if not told or plan.scope != "shared":
            continue
        last = told[-1]
        for peer in talk.clients():
            gone = min((e.turn for e in talk.by_peer[peer] if e.what in ("leaves", "is cut", "ends")), default=1 << 60)
            wants = [
                one
                for one in talk.asked[peer]
                if one.frame["method"] == "logging/setLevel" and one.answers and "result" in one.answers[0].frame
            ]
            if gone < last.asked.turn:
                continue
            if (
                not wants
                and _LEVELS.index(last.params["level"]) > _LEVELS.index("info")
                and _was_there(talk, peer, last)
            ):
                yield f"{peer} asked for no level, and {server} was told {last.params['level']}"
            if not wants or _there(wants[-1].asked) > _there(last.asked):
                continue
            if len(wants) != sum(one.frame["method"] == "logging/setLevel" for one in talk.asked[peer]):
                continue
            own, its = wants[-1].params["level"], last.params["level"]
            if _LEVELS.index(its) > _LEVELS.index(own):
                yield f"{peer} asked for {own}, and {server} was told {its}"


def _was_there(talk: Talk, peer: str, last: Asked) -> bool:
    """Whether a session was open, and had asked for no level, when a server was told one."""
    opened = [one for one in talk.asked[peer] if one.frame["method"] == "initialize" and one.answers]
    asks = any(one.frame["method"] == "logging/setLevel" for one in talk.asked[peer])
    return bool(opened) and opened[0].answers[0].turn < last.asked.turn and not asks


def _there(event: Event) -> int:
    """Say when the proxy read what was said, or wrote what was heard."""
    return event.there or event.turn


@rule("logs-heard")
def who_asks_for_logs_hears_them(plan: Plan, talk: Talk) -> Iterator[str]:
    """With a server of its own, a client that behaves hears each log message about its calls."""
    if not is_sound(plan) or plan.scope != "client" or plan.uses_http or stalls(plan) or plan.router:
        return
    heard = {
        mark
        for peer in talk.clients()
        for event in talk.by_peer[peer]
        if event.is_heard and event.frame.get("method") == "notifications/message"
        for mark in numbered(event.frame)
    }
    for server in talk.servers():
        if talk.record.revisions.get(server) not in HANDSHAKE_REVISIONS:
            continue
        for event in talk.by_peer[server]:
            if not event.is_said or event.frame.get("method") != "notifications/message" or event.there is None:
                continue
            owners = secrets_in(event.frame)
            if not owners or not behaves(plan, owners[0][0]):
                continue
            peer = owners[0][0]
            asked = [one for one in talk.asked[peer] if owners[0] in secrets_in(one.params)]
            ended = asked and asked[-1].answers and asked[-1].answers[0].turn < event.turn
            if talk.record.revisions[peer] not in HANDSHAKE_REVISIONS or ended or not asked or asked[-1].cancelled:
                continue
            if not set(numbered(event.frame)) <= heard:
                yield f"{server} said {short(event.frame)}, and {peer} did not hear it"


@rule("started-again")
def a_server_that_was_well_is_started_again(plan: Plan, talk: Talk) -> Iterator[str]:
    """With restarts, a server that was open for long and dies is started again for a client that is there."""
    if not plan.options.get("restarts") or plan.uses_http or plan.hops > 1 or plan.router or plan.scope != "client":
        return
    for peer in talk.clients():
        runs = [run for run in talk.servers() if _owner_of(talk, run) == peer]
        if talk.record.revisions[peer] == PER_REQUEST or any(act["do"] in _ODD_ACTS for act in acts_of(plan, peer)):
            continue
        over_s = min((e.at_s for e in talk.by_peer[peer] if e.what in ("leaves", "is cut")), default=_NEVER)
        told = any(fault["do"] in ("stop", "drain") for fault in plan.faults)
        for run in runs:
            events = talk.by_peer[run]
            died_s = next((event.at_s for event in events if event.what == "dies"), None)
            ready_s = next((event.at_s for event in events if _is_ready(event)), None)
            if died_s is None or ready_s is None or told or died_s - ready_s < _LONGEST_PAUSE_S + 3:
                continue
            if talk.record.revisions.get(run) == PER_REQUEST or over_s < died_s + 40 + 3 * plan.network.late_s:
                continue
            if any(event.what == "ends" and event.at_s < died_s for event in talk.by_peer[peer]):
                continue
            if not any(event.what == "opens" and event.at_s >= died_s for event in talk.record.events):
                yield f"{run} died after {died_s - ready_s:.0f} s, and was not started again for {peer}"


def _owner_of(talk: Talk, run: str) -> str | None:
    return next((owner for got in talk.got[run] for owner, _ in secrets_in(got.params)), None)


def _is_ready(event: Event) -> bool:
    return event.is_heard and event.frame.get("method") == "notifications/initialized"


@rule("closed-in-time")
def a_server_that_nobody_uses_is_closed(plan: Plan, talk: Talk) -> Iterator[str]:
    """When the session of a client has ended, a server that only it had is let go within its time."""
    if plan.uses_http or plan.scope != "client" or plan.hops > 1 or stalls(plan):
        return
    for run in talk.servers():
        peer = _owner_of(talk, run)
        if peer is None or talk.is_gone(run):
            continue
        over_s = min((e.at_s for e in talk.by_peer[peer] if e.what in ("leaves", "ends", "is cut")), default=None)
        ends_s = next((event.at_s for event in talk.by_peer[run] if event.what == "ends"), None)
        if over_s is not None and ends_s is not None and ends_s > over_s + 45 + 3 * plan.network.late_s:
            yield f"{peer} has left, and {run} was let go {ends_s - over_s:.0f} s later"


@rule("ends-soon")
def a_session_ends_with_its_last_answer(plan: Plan, talk: Talk) -> Iterator[str]:
    """When a client has closed its side and has all its answers, its session is over."""
    if plan.uses_http or plan.hops > 1 or plan.router or stalls(plan):
        return
    for peer in talk.clients():
        left_s = next((event.at_s for event in talk.by_peer[peer] if event.what == "leaves"), None)
        ends_s = next((event.at_s for event in talk.by_peer[peer] if event.what == "ends"), None)
        asked = talk.asked[peer]
        if left_s is None or ends_s is None or not asked or any(not one.answers or one.cancelled for one in asked):
            continue
        last_s = max(left_s, *(answer.at_s for one in asked for answer in one.answers))
        most_s = GOES_S if plan.children else _FAREWELL_S
        if ends_s > last_s + most_s + 4 * plan.network.late_s and talk.record.revisions[peer] != PER_REQUEST:
            yield f"{peer} had closed its side and all answers, and its session ended {ends_s - last_s:.1f} s later"


@rule("noticed-silent")
def a_silent_server_is_noticed(plan: Plan, talk: Talk) -> Iterator[str]:
    """Where servers are looked after, nobody waits for one that has fallen silent."""
    health_s = plan.options.get("health_s")
    if health_s is None or plan.uses_http or plan.hops > 1 or plan.router or plan.scope != "client" or stalls(plan):
        return
    clock = Clock(talk)
    for run in talk.servers():
        events = talk.by_peer[run]
        silent_s = next((event.at_s for event in events if event.what == "falls silent"), None)
        if silent_s is None or not any(_is_ready(event) and event.at_s < silent_s for event in events):
            continue
        for peer in talk.clients():
            if _owner_of(talk, run) != peer or not behaves(plan, peer):
                continue
            for one in talk.asked[peer]:
                waits_s = clock.at_most(one.asked.there or one.asked.turn)
                answered_s = one.answers[0].at_s if one.answers else 1e9
                until_s = silent_s + 3 * health_s + 5 + 2 * plan.network.late_s
                if one.cancelled is not None or any(event.what == "dies" for event in events):
                    continue
                if waits_s <= silent_s and answered_s > until_s:
                    yield f"{run} fell silent, and {peer} waited for it: {short(one.frame)}"


def _way_of(plan: Plan, peer: str) -> str:
    """Give how a client comes, where that is not by Streamable HTTP, or whether its ids come again.

    By the other ways all it hears comes on one stream. What has another id at the server is not known by its stream.
    """
    found = next(client for client in plan.clients if client.name == peer)
    return found.way or ("again" if found.manner == "again" else "")


@rule("own-stream")
def what_is_about_a_call_comes_on_its_stream(plan: Plan, talk: Talk) -> Iterator[str]:
    """Over HTTP, progress of a call comes with its answer, unless that has begun as something else, or is there."""
    if plan.front != "http" or plan.front_options.get("answers") == "json" or plan.network.late_s > 0 or plan.faults:
        return
    for peer in talk.clients():
        if talk.record.revisions[peer] == PER_REQUEST or "poll_s" in plan.front_options or _way_of(plan, peer):
            continue
        tokens = {(one.params.get("_meta") or {}).get("progressToken"): one for one in talk.asked[peer] if one.params}
        for event in talk.by_peer[peer]:
            if not event.is_heard or event.frame.get("method") != "notifications/progress":
                continue
            one = tokens.get(event.frame["params"]["progressToken"])
            if one is None or one.cancelled or one.refused or any(a.turn < event.turn for a in one.answers):
                continue
            if event.via != one.stream and not event.via.startswith("array"):
                yield f"{peer} heard {short(event.frame)} on {event.via}, and not with the answer"
