"""Who may what in a world: rules of a configuration file, which may be read again, and so many requests a minute.

Rules are of few kinds here, so that what they mean can be said again in a few lines (`may`), and not by the product.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.cli.routing import with_rules
from dragoman.config import Configuration, parse_config
from dragoman.middlewares.access import Rules
from dragoman.middlewares.limit import RateLimit
from dragoman.proxy import ProxyConfig, _keeper_of, _wiring_of, host_settings_of
from dragoman.router import Router
from tests.world.peers.words import PER_REQUEST, secrets_in
from tests.world.plan import Act, Plan
from tests.world.record import Event
from tests.world.rules import Asked, Talk, client_of, rule, short
from tests.world.situations import sometimes

_LISTS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}


def forget() -> None:
    """Let go what is remembered of the last few configurations of a process: that has what stands before a proxy.

    What seals states is made once for each key, too, and takes random numbers: in a world that comes again, as well.
    """
    _wiring_of.cache_clear()
    host_settings_of.cache_clear()
    _keeper_of.cache_clear()


def configure(names: Sequence[str], rules: Sequence[Act] | None, is_alone: bool = False) -> Configuration:
    """Give the configuration file with these servers and rules; of one that is alone nothing needs a prefix."""
    ours = {} if rules is None else {"dragoman": {"rules": rules}}
    read = parse_config(json.dumps({"mcpServers": {name: {"command": name} for name in names}, **ours}))
    options = dataclasses.replace(read.options, name=names[0], prefix="clash") if is_alone else read.options
    return dataclasses.replace(read, options=options)


class Gate:
    """What stands before everything else.

    Args:
        plan: Of the world.
        router: If there is one.
    """

    def __init__(self, plan: Plan, router: Router | None) -> None:
        self._router = router
        self._names = [server.name for server in plan.servers]
        self._burst, self._per_minute = plan.access.get("burst"), plan.access.get("per_minute")
        self._rules: Rules | None = None
        given = configure(self._names, plan.access.get("rules")).options.rules
        if given is not None:
            find = (lambda kind, name: (self._names[0], name)) if router is None else router.find
            self._rules = Rules(given, find, lambda: self._names if router is None else router.servers.keys())

    def guard(self, config: ProxyConfig) -> ProxyConfig:
        """Put it before a proxy."""
        if self._per_minute is not None:
            limit = RateLimit(self._per_minute, self._burst, ("tools/call",), now_s=lambda: time.monotonic())
            config = dataclasses.replace(config, middleware=(limit,))
        return config if self._rules is None else with_rules(config, self._rules)

    def reload(self, fault: Act) -> None:
        """Take in another configuration file."""
        read = configure(fault.get("servers") or self._names, fault.get("rules"))
        if self._rules is not None and read.options.rules is not None:
            self._rules.change(read.options.rules)
        if self._router is not None:
            self._router.apply(read)


def may(rules: Sequence[Act], principal: str, server: str, kind: str, name: str) -> bool:
    """Whether rules let somebody use something; who is told nothing may."""
    counting = [one for one in rules if principal in one.get("for", {}).get("principals", [principal])]
    if any(_covers(one["deny"], server, kind, name) for one in counting if "deny" in one):
        return False
    allows_all = all("allow" not in one for one in rules)
    return allows_all or any(_covers(one["allow"], server, kind, name) for one in counting if "allow" in one)


def _covers(things: Act, server: str, kind: str, name: str) -> bool:
    if kind in things:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in things[kind])
    return "servers" in things and server in things["servers"]


def _each(plan: Plan) -> list[Sequence[Act]]:
    """Give all rules that count at some time."""
    later = [fault.get("rules", []) for fault in plan.faults if fault["do"] == "reload"]
    return [plan.access.get("rules", []), *later] if plan.access.get("rules") else []


def _wanted(frame: Any) -> Iterator[tuple[str, str]]:
    """Give the kinds and names of what a request is about."""
    params = frame.get("params") or {}
    match frame["method"]:
        case "tools/call":
            yield "tools", params["name"]
        case "prompts/get":
            yield "prompts", params["name"]
        case "completion/complete":
            yield "prompts", params["ref"]["name"]
        case "resources/read" | "resources/subscribe" | "resources/unsubscribe":
            yield "resources", params["uri"]


def _server_of(kind: str, name: str) -> str:
    return name.removeprefix("world://").partition("/")[0] if kind == "resources" else name.partition("_")[0]


def is_denied(plan: Plan, peer: str, one: Asked) -> bool:
    """Whether a request of a client is, at some time, not allowed."""
    whom = client_of(plan, peer).principal
    return any(
        not may(rules, whom, _server_of(kind, name), kind, name)
        for rules in _each(plan)
        for kind, name in _wanted(one.frame)
    )


def _never(plan: Plan, principal: str, kind: str, name: str) -> bool:
    each = _each(plan)
    return bool(each) and not any(may(rules, principal, _server_of(kind, name), kind, name) for rules in each)


@rule("kept-out")
def nobody_uses_what_is_denied(plan: Plan, talk: Talk) -> Iterator[str]:
    """What rules never let somebody use reaches no server, is in no list, and nothing is said of it."""
    if not plan.access.get("rules"):
        return
    for peer in talk.servers():
        for one in talk.got[peer]:
            for owner, _ in secrets_in(one.params):
                whom = client_of(plan, owner).principal
                if any(_never(plan, whom, kind, name) for kind, name in _wanted(one.frame)):
                    yield f"{peer} got what {owner}, who is {whom}, may not use: {short(one.frame)}"
    for peer in talk.clients():
        whom = client_of(plan, peer).principal
        for event in talk.by_peer[peer]:
            for kind, name in _named(event) if event.is_heard else ():
                if _never(plan, whom, kind, name):
                    yield f"{peer}, who is {whom}, heard of {name}: {short(event.frame)}"


def _named(event: Event) -> Iterator[tuple[str, str]]:
    """Give what a frame names to a client: entries of lists, and what has changed."""
    said = event.frame.get("result")
    for member, by in _LISTS.items():
        entries = said.get(member) if isinstance(said, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            yield "resources" if member == "resourceTemplates" else member, entry[by]
    if event.frame.get("method") == "notifications/resources/updated":
        yield "resources", event.frame["params"]["uri"]


@rule("let-in")
def nobody_is_refused_what_is_allowed(plan: Plan, talk: Talk) -> Iterator[str]:
    """What rules let somebody use at all times is not refused because of them."""
    if not plan.access.get("rules") or any(fault["do"] == "reload" for fault in plan.faults):
        return
    for peer in talk.clients():
        for one in talk.asked[peer]:
            for answer in one.answers:
                said = str((answer.frame.get("error") or {}).get("message"))
                if said.startswith("unknown ") and _is_denying(plan, peer, one, said):
                    yield f"{peer} may use this, and heard {said}: {short(one.frame)}"


@rule("rate")
def nobody_calls_more_often_than_may_be(plan: Plan, talk: Talk) -> Iterator[str]:
    """No principal makes more calls than so many at once, and so many a minute."""
    if "per_minute" not in plan.access:
        return
    got: dict[str, list[Asked]] = {}
    for peer in talk.servers():
        for one in talk.got[peer]:
            if one.frame["method"] == "tools/call":
                for owner, _ in secrets_in(one.params.get("arguments") or {})[:1]:
                    if not _goes_on(talk, owner, one):
                        got.setdefault(client_of(plan, owner).principal, []).append(one)
    for whom, calls in got.items():
        own = [peer for peer in talk.clients() if client_of(plan, peer).principal == whom]
        began_s = min(one.asked.at_s for peer in own for one in talk.asked[peer])
        for number, one in enumerate(sorted(calls, key=lambda one: one.asked.turn), 1):
            most = plan.access["burst"] + (one.asked.at_s - began_s) * plan.access["per_minute"] / 60
            if number > most + 1e-6:
                yield f"{whom} has made {number} calls, and may have made {most:.1f}: {short(one.frame)}"


def _goes_on(talk: Talk, owner: str, one: Asked) -> bool:
    """Whether we ask again with the answers of a client that has asked once: its revision has no other requests."""
    return talk.record.revisions.get(owner) != PER_REQUEST and not {"inputResponses", "requestState"}.isdisjoint(
        one.params
    )


def _is_denying(plan: Plan, peer: str, one: Asked, said: str) -> bool:
    """Whether nothing else explains that something is unknown: it may be denied, or its server not there."""
    is_there = not plan.router or (
        not any(server.manner == "garbles" or server.is_slow or server.start_s for server in plan.servers)
        and plan.network.late_s <= 1
    )
    is_there = is_there and "not all servers are there" not in said
    return is_there and not plan.faults and not is_denied(plan, peer, one)


def _refused(talk: Talk, words: str) -> Iterator[tuple[str, Event]]:
    for peer in talk.clients():
        for one in talk.asked[peer]:
            yield from ((peer, answer) for answer in one.answers if words in str(answer.frame.get("error")))


@sometimes("somebody is refused what somebody else may use at the same server")
def _one_may(plan: Plan, talk: Talk) -> bool:
    if plan.scope == "client" or not plan.access.get("rules"):
        return False
    refused = {client_of(plan, peer).principal for peer, _ in _refused(talk, "unknown tool")}
    served = {
        client_of(plan, peer).principal
        for peer in talk.clients()
        for one in talk.asked[peer]
        if one.frame["method"] == "tools/call" and any("result" in answer.frame for answer in one.answers)
    }
    return bool(refused) and bool(served - refused)


@sometimes("a limit by principal was reached while another one called")
def _limit_reached(plan: Plan, talk: Talk) -> bool:
    for peer, refused in _refused(talk, "too many requests: the next one"):
        whom = client_of(plan, peer).principal
        for other in talk.clients():
            if client_of(plan, other).principal != whom:
                for one in talk.asked[other]:
                    if one.answers and one.asked.turn < refused.turn < one.answers[0].turn:
                        return True
    return False


@sometimes("a configuration is read again while calls are under way, and servers go and come")
def _reloaded(plan: Plan, talk: Talk) -> bool:
    for event in talk.record.events:
        if event.what == "is read again" and plan.router and set(event.frame or ()) != set(_names(plan)):
            for peer in talk.clients():
                for one in talk.asked[peer]:
                    if one.asked.turn < event.turn and any(answer.turn > event.turn for answer in one.answers):
                        return True
    return False


@sometimes("rules change while a session is open, and what was allowed is refused")
def _rules_change(plan: Plan, talk: Talk) -> bool:
    read = [event.turn for event in talk.record.events if event.what == "is read again"]
    return bool(read) and any(answer.turn > read[0] for _, answer in _refused(talk, "unknown tool"))


@sometimes("an answer waits in a table that has room for one")
def _narrow(plan: Plan, talk: Talk) -> bool:
    return any(plan.pool.get(name) == 1 for name in ("calls", "questions", "suspects")) and any(
        one.answers for peer in talk.servers() for one in talk.asked[peer]
    )


def _names(plan: Plan) -> list[str]:
    return [server.name for server in plan.servers]
