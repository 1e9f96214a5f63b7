"""The same peers and the same table over every other link: HTTP, HTTP+SSE and WebSocket, on either side of the proxy.

Each link is visited by four pairs, and without the proxy by one; `nox -s peers -- full` visits with all 16.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.peers.ahead import visits
from tests.peers.expectations_back import EXPECTATIONS
from tests.peers.expectations_links import on_link, until_death
from tests.peers.matching import REVISIONS
from tests.peers.validity import Side, complaints
from tests.peers.visits import DIRECT_LINKS, LINKS, check, needs_peers, pairs_of, report_of


def visited(links: tuple[str, ...]) -> list[Any]:
    """Return one parameter set for each selected visit."""
    return [
        pytest.param(client, server, link, id=f"{link}-{client}-{server}")
        for link in links
        for client, server in pairs_of(link)
    ]


@needs_peers
@visits(report_of)
@pytest.mark.parametrize(("client", "server", "link"), visited(DIRECT_LINKS))
def test_equal_peers_agree_without_a_proxy(client: str, server: str, link: str) -> None:
    check(report_of(client, server, link), on_link(EXPECTATIONS, link, client, server))


@needs_peers
@visits(report_of)
@pytest.mark.parametrize(("client", "server", "link"), visited(LINKS))
def test_peers_agree_through_the_proxy(client: str, server: str, link: str) -> None:
    check(report_of(client, server, link), on_link(EXPECTATIONS, link, client, server))


@needs_peers
@visits(report_of)
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("client", "server", "link"), visited((*DIRECT_LINKS, *LINKS)))
def test_frames_are_valid_for_their_receiver(client: str, server: str, link: str, side: Side) -> None:
    record = until_death(report_of(client, server, link)["frames"][side], link, server)
    assert record, f"the {side} has recorded no frames"
    assert list(complaints(record, side, REVISIONS[client if side == "client" else server])) == []
