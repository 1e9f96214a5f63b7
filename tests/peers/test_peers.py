"""Real clients against real servers: released SDKs, each strict about its own revision, with the proxy in between.

Needs the four environments of `requirements/`; `nox -s peers` makes them and names their folder in DRAGOMAN_PEERS.
Without it everything here but the checks of the table itself is skipped. A pair is visited once, and a
failure names revision, revision and each topic that is not as the table says.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.ahead import visits
from tests.peers.expectations_back import EXPECTATIONS
from tests.peers.matching import PAIRS, REVISIONS, Has, Row, look, matches
from tests.peers.validity import Side, complaints
from tests.peers.visits import (
    check,
    client_command,
    frames_in,
    needs_peers,
    pairs_of,
    proxy_command,
    report_of,
    server_command,
    visit,
)

RAW_LIMIT_S = 60


def rows_about(client: str, server: str, route: str) -> list[Row]:
    """Return what the table says of a pair, joined this way."""
    return [row for row in EXPECTATIONS if row.covers(client, server, route)]


def invalid_frames(client: str, server: str, route: str, side: Side) -> list[str]:
    """Return what is wrong with the frames that one side got, by its own revision's schema."""
    record = report_of(client, server, route)["frames"][side]
    assert record, f"the {side} has recorded no frames"
    return list(complaints(record, side, REVISIONS[client if side == "client" else server]))


@pytest.mark.parametrize("route", ["proxy", "direct"])
def test_each_topic_speaks_about_each_pair_once(route: str) -> None:
    pairs = PAIRS if route == "proxy" else [(letter, letter) for letter in REVISIONS]
    topics = {row.topic for row in EXPECTATIONS}
    seen = Counter((row.topic, pair) for row in EXPECTATIONS for pair in pairs if row.covers(*pair, route))
    assert {key: seen[key] for key in ((topic, pair) for topic in topics for pair in pairs) if seen[key] != 1} == {}


@needs_peers
@visits(report_of, link="direct")
@pytest.mark.parametrize(("client", "server"), pairs_of("direct"))
def test_equal_peers_agree_without_a_proxy(client: str, server: str) -> None:
    check(report_of(client, server, "direct"), rows_about(client, server, "direct"))


@needs_peers
@visits(report_of, link="proxy")
@pytest.mark.parametrize(("client", "server"), pairs_of("proxy"))
def test_peers_agree_through_the_proxy(client: str, server: str) -> None:
    check(report_of(client, server, "proxy"), rows_about(client, server, "proxy"))


@needs_peers
@visits(report_of, link="direct")
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("client", "server"), pairs_of("direct"))
def test_frames_are_valid_without_a_proxy(client: str, server: str, side: Side) -> None:
    """Else the releases themselves are at fault, and the same test through the proxy proves nothing."""
    assert invalid_frames(client, server, "direct", side) == []


@needs_peers
@visits(report_of, link="proxy")
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("client", "server"), pairs_of("proxy"))
def test_frames_are_valid_for_their_receiver(client: str, server: str, side: Side) -> None:
    assert invalid_frames(client, server, "proxy", side) == []


@needs_peers
@pytest.mark.parametrize(("client", "server"), [("A", "D"), ("D", "A"), ("B", "C")])
def test_different_peers_fail_without_a_proxy(client: str, server: str) -> None:
    report = visit(client_command(client), server_command(server))
    data = {"supported": [REVISIONS[server]], "requested": REVISIONS[client]}
    assert matches(look(report, "initialize/error"), Has({"code": -32602, "data": data})), report
    assert "calls" not in report


@needs_peers
def test_a_strict_client_refuses_a_server_that_answers_another_revision() -> None:
    report = visit(client_command("D"), server_command("A", "--reject", "never"))
    assert "Unsupported protocol version" in look(report, "initialize/raised")


@needs_peers
@pytest.mark.parametrize(("client", "server", "rejection"), [("D", "A", "never"), ("D", "C", "bare")])
def test_proxy_copes_with_other_ways_to_reject(client: str, server: str, rejection: str) -> None:
    command = [*proxy_command("--"), *server_command(server, "--reject", rejection)]
    report = visit(client_command(client), command)
    assert look(report, "initialize/result/protocolVersion") == REVISIONS[client]
    assert look(report, "calls/echo/result/content/0/text") == "hello"


@needs_peers
@pytest.mark.parametrize("server", ["A", "B", "C", "D"])
def test_proxy_brings_ids_back_as_they_went(server: str) -> None:
    """No SDK client sends such ids, other clients do; a 1.9.4 server answers the question "3" as 3."""
    ids: list[Any] = [3, "3", "4", "a b", -5]
    with proxy_before(server) as proxy:
        questions = [{"id": one, "method": "resources/templates/list"} for one in ids]
        answers = exchange(proxy, questions, answers=len(ids))
    assert sorted(repr(answer.get("id")) for answer in answers) == sorted(repr(one) for one in ids)


@needs_peers
@pytest.mark.parametrize("server", list(REVISIONS))
def test_proxy_leaves_no_server_behind(server: str, tmp_path: Path) -> None:
    """A 1.6.0 server does not end when its input does, and must be told by a signal."""
    log = tmp_path / "server"
    with proxy_before(server, "--record", str(log)) as proxy:
        pass
    (pid,) = {entry["pid"] for entry in frames_in(log) if "pid" in entry}
    assert proxy.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@contextlib.contextmanager
def proxy_before(server: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start the proxy before a peer server and open a session with it; close its input at the end and wait."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    command = [*proxy_command("--"), *server_command(server, *options, forked=False)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
        watchdog = threading.Timer(RAW_LIMIT_S, proxy.kill)
        watchdog.start()
        (answer,) = exchange(proxy, [{"id": "init", "method": "initialize", "params": hello}], answers=1)
        assert answer["id"] == "init"
        exchange(proxy, [{"method": "notifications/initialized"}], answers=0)
        yield proxy
        assert proxy.stdin is not None
        proxy.stdin.close()
        proxy.wait(RAW_LIMIT_S)
        watchdog.cancel()


def exchange(process: subprocess.Popen[str], frames: list[dict[str, Any]], answers: int) -> list[dict[str, Any]]:
    """Write frames to a process and read as many lines as it must answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    for frame in frames:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    process.stdin.flush()
    return [json.loads(process.stdout.readline() or "{}") for _ in range(answers)]
