"""Who may what: each rule about it is broken by the least that breaks it, and each watchman sees what is his."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.sessions import Sessions
from tests.world.peers.words import PER_REQUEST, error
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.rules import RULES
from tests.world.test_flows import REVISION, SHARED, WELL, Said, asked, broken, call, opened, over, text, told
from tests.world.worlds import run_world

DENIED = {"rules": [{"for": {"principals": ["ada"]}, "deny": {"tools": ["*_a"]}}]}
OF_BOB = {"rules": [{"for": {"principals": ["bob"]}, "deny": {"tools": ["*_a"]}}]}

BREAKS: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "kept-out": (WELL, {"access": DENIED, **SHARED}),
    "let-in": (
        (opened(), [(1, "c0", "says", call(1)), (1, "c0", "hears", error(1, -32602, "unknown tool: s0_a"))], over(2)),
        {"access": OF_BOB, **SHARED},
    ),
    "rate": (
        (opened(), asked(1, call(1)), asked(2, call(2, 1)), told(3, text(1)), told(3, text(2, 1)), over(4)),
        {"access": {"per_minute": 6, "burst": 1}, **SHARED},
    ),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str) -> None:
    parts, more = BREAKS[rule]
    assert rule in broken(*parts, **more)
    assert rule in RULES


@pytest.mark.parametrize("access", [DENIED, OF_BOB, {"per_minute": 60, "burst": 1}])
def test_what_is_right_breaks_no_rule(access: dict[str, Any]) -> None:
    """A call that may be made is answered; one that may not be is refused, and reaches no server."""
    refused = ([(1, "c0", "says", call(1)), (1, "c0", "hears", error(1, -32602, "unknown tool: s0_a"))], over(2))
    assert broken(*((opened(), *refused) if access is DENIED else WELL), access=access, **SHARED) == set()


def test_a_call_that_goes_on_with_answers_is_counted_once() -> None:
    """A client that knows no such results has asked once; one that does asks again, and is counted again."""
    goes_on = call(2)
    goes_on["params"] |= {"inputResponses": {}, "requestState": "1"}
    parts = (opened(), asked(1, call(1)), [(1, "s0.1", "hears", goes_on)], told(2, text(1)), over(3))
    access = {"per_minute": 6, "burst": 1}
    assert "rate" not in broken(*parts, access=access, **SHARED)
    assert "rate" in broken(*parts, access=access, revisions={"c0": PER_REQUEST}, **SHARED)


def open_to(fault: str) -> set[str]:
    """Give the rules that a session over HTTP breaks, of whose client this becomes so."""
    act = {"at": 0.0, "do": "call", "n": 0, "server": "s0", "steps": [["wait", 60.0], ["answer", "text"]]}
    plan = Plan("http", 1, front="http", faults=[{"at": 5.0, "do": fault, "principal": "ada"}])
    plan.clients, plan.servers = [ClientPlan("c0", "ada", REVISION, acts=[act])], [ServerPlan("s0", [REVISION])]
    return {finding.rule for finding in run_world(plan).findings}


def test_who_asks_in_a_session_of_somebody_else_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_to("steal") == set()
    find = Sessions.find

    def find_for_anybody(sessions: Sessions, key: str, principal: str, *more: Any) -> Any:
        return find(sessions, key, sessions._sessions[key].caller.principal, *more)

    monkeypatch.setattr(Sessions, "find", find_for_anybody)
    assert "own-session" in open_to("steal")


def test_a_session_that_outlives_its_secret_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_to("revoke") == set()
    monkeypatch.setattr(HttpFront, "admit", lambda front, admission: None)
    assert "revoked" in open_to("revoke")
