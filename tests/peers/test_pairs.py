"""What works between every two peers is what the page says, made to speak one revision or as they are released."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.peers.ahead import visits
from tests.peers.matching import REVISIONS
from tests.peers.modern_visits import PYTHONS, handshake_report, modern_report, needs_both
from tests.peers.pairs import HANDSHAKE, expected, read_handshake, read_modern
from tests.peers.test_eras import era_report_of
from tests.peers.traces import invalid_frames
from tests.peers.visits import SELECTION, needs_peers, report_of

FULL: Final = SELECTION == "full"
ON_PIPES: Final = "stdio-stdio"
LINKS: Final = (ON_PIPES, "http-stdio", "stdio-http", "http-http")

MODERN: Final = [
    *(("E", server, link) for server, link in PYTHONS),
    *(("T", server, link) for link in LINKS for server in "ABCDET" if FULL or link == ON_PIPES),
    *(("E", "T", link) for link in LINKS if FULL or link in (ON_PIPES, "http-http")),
    *(() if FULL else (("T", "D", "http-http"), ("T", "E", "stdio-http"), ("T", "T", "http-http"))),
]
HANDSHAKES: Final = [
    (client, "T", link)
    for link in LINKS
    for client in HANDSHAKE
    if FULL or link == ON_PIPES or (client, link) == ("D", "http-http")
]
RELEASED: Final = [
    (client, server, link)
    for client in ("E+", "T+")
    for server in ("E+", "T+", "D")
    for link in (ON_PIPES, "http-http")
    if FULL or server == "D" or (client, server, link) != ("T+", "E+", ON_PIPES)
]


def differences(found: dict[str, bool], client: str, server: str) -> dict[str, bool]:
    """Give what is not as the page says."""
    return {what: works for what, works in found.items() if works is not expected(client, server)[what]}


@needs_both
@visits(modern_report)
@pytest.mark.parametrize(("client", "letter", "link"), MODERN)
def test_a_client_without_a_handshake(client: str, letter: str, link: str) -> None:
    assert differences(read_modern(modern_report(client, letter, link)), client, letter) == {}


@needs_both
@visits(handshake_report)
@pytest.mark.parametrize(("client", "letter", "link"), HANDSHAKES)
def test_a_client_with_a_handshake_at_a_server_without(client: str, letter: str, link: str) -> None:
    assert differences(read_handshake(handshake_report(client, letter, link), letter), client, letter) == {}


@needs_peers
@visits(era_report_of, link=ON_PIPES)
@pytest.mark.parametrize("client", REVISIONS)
def test_a_client_with_a_handshake_at_python_without(client: str) -> None:
    found = read_handshake(era_report_of(client, ON_PIPES), "E")
    assert differences(found, client, "E") == {}


@needs_peers
@visits(report_of, link="proxy")
@pytest.mark.parametrize("server", REVISIONS)
@pytest.mark.parametrize("client", REVISIONS)
def test_two_with_a_handshake(client: str, server: str) -> None:
    if SELECTION == "quick":
        pytest.skip("only some pairs are visited")
    assert differences(read_handshake(report_of(client, server, "proxy"), server), client, server) == {}


@needs_both
@visits(modern_report)
@pytest.mark.parametrize(("client", "letter", "link"), RELEASED)
def test_as_released(client: str, letter: str, link: str) -> None:
    report: Any = modern_report(client, letter, link)
    assert report["revision"] == "2026-07-28"
    assert differences(read_modern(report), client, letter) == {}


@needs_both
@visits(modern_report)
@pytest.mark.parametrize(("client", "letter", "link"), [*MODERN, *RELEASED])
def test_what_a_client_without_a_handshake_and_its_server_get_is_valid(client: str, letter: str, link: str) -> None:
    assert list(invalid_frames(modern_report(client, letter, link)["trace"], client, letter)) == []


@needs_both
@visits(handshake_report)
@pytest.mark.parametrize(("client", "letter", "link"), HANDSHAKES)
def test_what_a_client_with_a_handshake_and_its_server_get_is_valid(client: str, letter: str, link: str) -> None:
    assert list(invalid_frames(handshake_report(client, letter, link)["trace"], client, letter)) == []
