"""A few released servers before clients with the default settings of their SDK: not worse than directly.

`nox -s peers -- servers` visits all of them with all clients (`released/`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.peers.ahead import ahead, visits
from tests.peers.forked import FORKED
from tests.peers.modern_visits import NPM, needs_both
from tests.peers.released.__main__ import judge, visit_all
from tests.peers.released.joining import PLAIN, SEEN, Peers
from tests.peers.released.visiting import DELAYS_S, SERVERS, Report, visit, worked, worse
from tests.peers.visits import ENVIRONMENTS, SELECTION

CLIENTS: Final = ("mcp-2", "typescript-2-auto")
"""Those that find out the era by themselves; clients with a handshake have `test_npm.py` and `test_peers.py`."""

PAIRS: Final = [
    (server, client, delay_s)
    for delay_s in reversed(DELAYS_S)
    for server, about in SERVERS.items()
    for client in CLIENTS
    if about.small and (not delay_s or "filesystem" in server) and SELECTION != "quick"
]


@ahead
def released_report(server: str, client: str, link: str, delay_s: int) -> Report:
    """Visit a released server once."""
    return visit(server, client, link, delay_s, Peers(Path(str(ENVIRONMENTS)), Path(str(NPM)), FORKED))


@needs_both
@pytest.mark.parametrize(("server", "client", "delay_s"), PAIRS)
@pytest.mark.parametrize("link", list(PLAIN)[1:])
@visits(released_report)
@visits(released_report, link="direct")
def test_a_default_client_has_what_it_has_directly(server: str, client: str, link: str, delay_s: int) -> None:
    direct = released_report(server, client, "direct", delay_s)
    assert worked(direct) > 1, direct["open"]
    through = released_report(server, client, link, delay_s)
    assert list(worse(SERVERS[server], direct, through, delay_s)) == [], through["log"]


ASKING: Final = [
    (server, client, link)
    for server, about in SERVERS.items()
    for client in ("mcp-1", "mcp-2")
    for link in (*list(PLAIN)[1:], *(link for link in SEEN if link.startswith("direct")))
    if about.small and about.asks and SELECTION != "quick"
]
"""A server of both eras, before clients of each, also after clients of both have been there."""


@needs_both
@pytest.mark.parametrize(("server", "client", "link"), ASKING)
@visits(released_report, delay_s=0)
@visits(released_report, link="direct", delay_s=0)
def test_a_server_that_asks_is_spoken_to_in_the_era_of_its_client(server: str, client: str, link: str) -> None:
    direct = released_report(server, client, "direct", 0)
    answered = [name for name in ("confirm", "summarize", "choose") if "result" in direct[f"call {name}"]]
    assert answered == (["choose"] if client == "mcp-2" else ["confirm", "summarize"])
    through = released_report(server, client, link, 0)
    assert list(worse(SERVERS[server], direct, through)) == [], through["log"]


def test_a_visit_that_fails_is_an_error_of_its_own_and_the_others_are_made(tmp_path: Path) -> None:
    visits = [("asking, mcp 2.3", client, "direct", 0) for client in ("mcp-1", "mcp-2")]
    reports = visit_all(visits, Peers(tmp_path, tmp_path), together=2)  # there is no client to start
    found = judge(visits, reports)
    assert list(found) == visits
    assert all(lost[0] == "the visit failed: FileNotFoundError" for lost in found.values())
    assert all(str(tmp_path) in report["log"] for report in reports.values())
