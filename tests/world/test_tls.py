"""TLS in worlds: what is said by it arrives, in the same moment each time, and who is not trusted is not spoken to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.world import tls, worlds
from tests.world.plan import ClientPlan, Plan, ServerPlan
from tests.world.rules import Talk
from tests.world.streams import Manner
from tests.world.test_flows import REVISION
from tests.world.worlds import Outcome, run_world


def call_by_tls(link: str, **more: Any) -> Outcome:
    steps = [["progress"], ["wait", 1.0], ["ask", "roots"], ["answer", "text"]]
    acts = [{"at": float(n), "do": "call", "n": n, "server": "s0", "progress": True, "steps": steps} for n in range(4)]
    plan = Plan("ways", 1, front="http", network=Manner(0.5, 0.3, 0.5, 0.1), **more)
    plan.servers = [ServerPlan("s0", [REVISION], link=link, tls=True)]
    plan.clients = [ClientPlan("c0", "ada", REVISION, ["roots"], acts=acts)]
    return run_world(plan)


def answers(outcome: Outcome) -> list[str]:
    asked = Talk(outcome.record).asked["c0"]
    return ["result" if "result" in answer.frame else "error" for one in asked for answer in one.answers]


@pytest.mark.parametrize("link", ["http", "websocket", "sse"])
def test_what_is_said_by_tls_arrives_and_one_seed_is_one_world(link: str) -> None:
    outcome = call_by_tls(link)
    assert (outcome.findings, answers(outcome)) == ([], ["result"] * 5)
    assert "a server is called by TLS, and answers" in outcome.marks
    assert call_by_tls(link).record.digest() == outcome.record.digest()


def test_a_server_by_tls_dies_and_is_started_again() -> None:
    fault = {"at": 2.5, "do": "die", "whom": "s0", "for_s": 1}
    outcome = call_by_tls("http", faults=[fault], options={"restarts": 3})
    assert outcome.findings == []
    assert {"result", "error"} == set(answers(outcome))


def test_who_is_not_trusted_is_not_spoken_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes((tls.certificates() / "server.pem").read_bytes())
    monkeypatch.setattr(worlds, "certificates", lambda: tmp_path)
    outcome = call_by_tls("http")
    assert answers(outcome) == ["error"]
    assert not Talk(outcome.record).servers()
