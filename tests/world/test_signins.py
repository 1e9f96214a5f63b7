"""Rules about signing in: each is broken by the least that breaks it, or by a product that does it wrong."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import system
from dragoman.signin import grants
from dragoman.signin.authority import SignIn
from dragoman.signin.invitations import Invitations
from dragoman.signin.keeper import TokenKeeper
from tests.world.peers.words import error
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.rules import Talk
from tests.world.test_flows import REVISION, Said, asked, broken, call, opened, over, text, told
from tests.world.worlds import Outcome, run_world

GOOD: dict[str, Any] = {"lives_s": 60, "refresh": True, "rotates": True, "refreshes": True, "steps": False}
GOOD |= {"secret": "", "person": "yes", "hostile": "", "apart": False, "far": False}
CLIENTS = [ClientPlan("c0", "ada", REVISION), ClientPlan("c1", "bob", REVISION)]


def wants(**more: Any) -> dict[str, Any]:
    return {"cell": "signin", "signin": {**GOOD, **more}, "clients": CLIENTS}


def page(state: str) -> Said:
    return (1, "person", "is shown a page", {"server": "s0", "state": state})


LINK: Said = (1, "person", "sees a link", {"of": "c1", "good for": "ada"})
MADE: Said = (0, "a0", "makes", "token-a0-1")

BREAKS: dict[str, tuple[Sequence[Sequence[Said]], dict[str, Any]]] = {
    "unheard": (
        ([MADE], opened(), asked(1, call(1)), [(2, "c0", "hears", error(1, -1, "no: Bearer token-a0-1"))], over(3)),
        wants(),
    ),
    "link-of-one": ((opened("c1"), [LINK], over(3)), wants(far=True)),
    "few-pages": ((opened(), [page("a"), page("b")], over(3)), wants()),
    "signed-in": (
        (
            opened(),
            [(1, "a0", "trades", "for a code")],
            asked(20, call(1)),
            [(21, "c0", "hears", error(1, -32000, "s0: it wants a sign-in: open http://x"))],
            over(22),
        ),
        wants(far=True),
    ),
    "refreshed-once": ((opened(), [(1, "a0", "is shown again", "refresh-a0-1")], over(3)), wants()),
    "not-traded": ((opened(), [(1, "a0", "trades", "for a code")], over(3)), wants(hostile="wrong-iss")),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_notices_what_breaks_it(rule: str) -> None:
    parts, more = BREAKS[rule]
    assert rule in broken(*parts, **more)


def test_what_is_well_breaks_no_rule() -> None:
    own = (1, "person", "sees a link", {"of": "c0", "good for": "ada"})
    parts = [MADE], opened(), [page("a"), page("a")], asked(1, call(1)), [own], told(1, text(1)), over(2)
    assert broken(*parts, **wants()) == set()


def sign_in_at(servers: int = 1, front: str = "lines", visits: str = "goes", **more: Any) -> Outcome:
    """Run a world in which two people call each server twice."""
    plan = Plan("signin", 1, front=front, router=servers > 1, signin={**GOOD, **more})
    plan.servers = [ServerPlan(f"s{n}", [REVISION], link="http") for n in range(servers)]
    for n, principal in enumerate(("ada", "bob")):
        acts = [
            {"at": at_s, "do": "call", "n": m, "server": f"s{m % servers}", "steps": [["answer", "text"]]}
            for m, at_s in enumerate((8.0, 9.0, 90.0, 91.0))
        ]
        plan.clients.append(ClientPlan(f"c{n}", principal, REVISION, ["elicitation"], acts=acts, visits=visits))
    return run_world(plan)


def broken_by(outcome: Outcome) -> set[str]:
    return {finding.rule for finding in outcome.findings}


@pytest.mark.parametrize(
    "more", [{}, {"servers": 2}, {"apart": True}, {"front": "http"}, {"secret": "client_secret_basic"}, {"steps": True}]
)
def test_calls_are_served_once_somebody_has_signed_in(more: dict[str, Any]) -> None:
    outcome = sign_in_at(**more)
    talk = Talk(outcome.record)
    calls = [one for peer in talk.clients() for one in talk.asked[peer] if one.frame["method"] == "tools/call"]
    assert outcome.findings == []
    assert ["result" in one.answers[0].frame for one in calls] == [True] * 8
    trades = [event.frame for event in outcome.record.events if event.what == "trades"]
    assert {"for a code", "for a refresh token"} == set(trades)


def test_people_far_away_sign_in_by_links_that_their_clients_show() -> None:
    outcome = sign_in_at(front="http", far=True)
    assert outcome.findings == []
    assert "somebody far away signs in by a link, and the call goes on" in outcome.marks


def test_behind_a_router_a_session_that_began_before_is_served_once_somebody_has_signed_in() -> None:
    outcome = sign_in_at(2, front="http", far=True, lives_s=3600)
    assert outcome.findings == []
    talk = Talk(outcome.record)
    late = [one for peer in talk.clients() for one in talk.asked[peer] if one.asked.at_s > 1080]
    calls = [one for one in late if one.frame["method"] == "tools/call"]
    assert ["result" in one.answers[0].frame for one in calls] == [True] * 4


def test_who_opens_a_link_of_somebody_else_signs_in_nowhere() -> None:
    outcome = sign_in_at(front="http", far=True, visits="hands on")
    assert outcome.findings == []
    assert "somebody opens the link of somebody else, and is turned away" in outcome.marks


def test_a_link_that_is_good_for_anybody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Invitations._take

    async def take_from_anybody(invitations: Invitations, visit: Any, form: dict[str, str]) -> Any:
        found = invitations._find(form.get("token", ""))
        if found is not None:
            found.owner = ""
        return await take(invitations, visit, form)

    monkeypatch.setattr(Invitations, "_take", take_from_anybody)
    assert "own-link" in broken_by(sign_in_at(front="http", far=True, visits="hands on"))


def test_two_pages_for_one_server_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "try_lock", lambda lock: True)
    assert "one-sign-in" in broken_by(sign_in_at(apart=True, person="slow"))


def test_a_token_for_another_server_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[SignIn] = []
    authorization = SignIn.authorization

    def of_the_first(sign_in: SignIn) -> str:
        first.append(sign_in)
        return authorization(first[0])

    monkeypatch.setattr(SignIn, "authorization", of_the_first)
    assert "own-token" in broken_by(sign_in_at(2))


def test_a_code_without_its_proof_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = grants.finish_visit

    def finish_with_another(occasion: Any, visit: Any, *, is_open: bool) -> Any:
        return finish(occasion, dataclasses.replace(visit, verifier="v" * 43), is_open=is_open)

    monkeypatch.setattr(grants, "finish_visit", finish_with_another)
    assert "proof" in broken_by(sign_in_at())


def test_a_token_in_the_log_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    take = TokenKeeper._take

    def take_aloud(keeper: TokenKeeper, signed_in: Any) -> None:
        logging.getLogger("dragoman.signin").info("it gave %s", signed_in.tokens.access)
        take(keeper, signed_in)

    monkeypatch.setattr(TokenKeeper, "_take", take_aloud)
    assert "no-token" in broken_by(sign_in_at())
