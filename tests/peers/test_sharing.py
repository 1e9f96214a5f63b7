"""Two real clients of different revisions at one real server at the same time, behind a proxy that shares it.

Whatever the server says must reach the one whom it is about: each client does everything in its own name and notes
what came to it. Each server is shared over stdio, where nothing tells whose a question is but the turns that calls are
taken in, and over Streamable HTTP, where the streams do.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.ahead import ahead, visits
from tests.peers.matching import REVISIONS, look
from tests.peers.validity import Side, complaints
from tests.peers.visits import (
    HERE,
    SELECTION,
    environment,
    frames_in,
    listening_proxy,
    listening_server,
    native,
    needs_peers,
    python_of,
    server_command,
    settle_s,
)

LIMIT_S: Final = 90
NAMES: Final = ("first", "second")
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
QUICK: Final = (("A", "D", "C", "stdio"), ("D", "B", "D", "http"))
MEETINGS: Final = (
    *QUICK,
    ("B", "D", "A", "stdio"),
    ("C", "A", "B", "stdio"),
    ("D", "C", "D", "stdio"),
    ("C", "D", "B", "http"),
    ("A", "C", "C", "http"),
)
"""First client, second client, server, and the transport to it; equal revisions are shared as well."""

SURVIVES_CANCELLATION: Final = ("C", "D")
"""Servers on mcp 1.6.0 and 1.9.4 die of a cancelled request."""


@ahead
def reports_of(first: str, second: str, server: str, upstream: str) -> dict[str, Any]:
    """Let two clients meet at a server once, and keep their reports, with the frames that each got and the log."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        log = folder / "log"
        command = server_command(server, "--record", str(folder / "frames-server"))
        behind = ["--", *command]
        if upstream == "http":
            behind = ["--url", stack.enter_context(listening_server(command, upstream, log))]
        mcp = stack.enter_context(listening_proxy("http", behind, log, "--scope", "shared"))
        (folder / "meet").mkdir()
        clients = [
            stack.enter_context(_client(letter, name, mcp, folder, server in SURVIVES_CANCELLATION, upstream == "http"))
            for letter, name in zip((first, second), NAMES, strict=True)
        ]
        found = {name: _report(client) for name, client in zip(NAMES, clients, strict=True)}
        for name in (*NAMES, "server"):
            found.setdefault(name, {})["frames"] = frames_in(folder / f"frames-{name}")
        found["log"] = log.read_text("utf-8", "replace")[-4000:]
    return found


@contextlib.contextmanager
def _client(letter: str, name: str, mcp: str, folder: Path, cancels: bool, hears_log: bool) -> Any:
    over = native("http", letter)
    variables = environment(PEER_NAME=name, PEER_FOLDER=str(folder / "meet"))
    if cancels and name == NAMES[0]:
        variables["PEER_CANCELS"] = "1"
    if not hears_log:
        variables["PEER_HEARS_NO_LOG"] = "1"
    options = ("--record", str(folder / f"frames-{name}"), "--over", over, "--settle", settle_s("http"))
    url = f"{mcp.removesuffix('/mcp')}/{'sse' if over == 'sse' else 'mcp'}"
    command = [python_of(letter), str(HERE / "guest.py"), *options, "--", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables, text=True) as client:
        try:
            yield client
        finally:
            client.kill()


def _report(client: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, err = client.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"crashed": f"no report within {LIMIT_S} s"}
    found: dict[str, Any] = json.loads(out) if client.returncode == 0 else {"crashed": err[-2000:]}
    return found


pytestmark = [
    needs_peers,
    visits(reports_of),
    pytest.mark.parametrize(
        ("first", "second", "server", "upstream"),
        [pytest.param(*one, id="-".join(one)) for one in (QUICK if SELECTION == "quick" else MEETINGS)],
    ),
]


def said(call: Any) -> Any:
    """Give the text that a tool answered with."""
    return look(call, "result/content/0/text")


def test_both_come_to_the_end_and_hear_nothing_astray(first: str, second: str, server: str, upstream: str) -> None:
    reports = reports_of(first, second, server, upstream)
    for name in NAMES:
        assert "crashed" not in reports[name], f"{reports[name]}\n{reports['log']}"
        assert reports[name]["stray"] == []
        assert said(reports[name]["after"]) == name


def test_the_server_has_one_client_which_is_the_proxy(first: str, second: str, server: str, upstream: str) -> None:
    reports = reports_of(first, second, server, upstream)
    asked = [entry["got"] for entry in reports["server"]["frames"] if "got" in entry]
    offers = [frame for frame in asked if frame.get("method") == "initialize"]
    assert offers[-1]["params"]["clientInfo"]["name"] == "dragoman"
    assert sum(frame["params"]["protocolVersion"] == REVISIONS[server] for frame in offers) == 1
    for name, letter in zip(NAMES, (first, second), strict=True):
        assert look(reports[name], "initialize/result/protocolVersion") == REVISIONS[letter]


def test_each_gets_its_own_answers(first: str, second: str, server: str, upstream: str) -> None:
    reports = reports_of(first, second, server, upstream)
    for name in NAMES:
        rounds = reports[name]["rounds"]
        assert [said(one["echo"]) for one in rounds] == [f"{name} {number}" for number in range(len(rounds))]


def test_each_is_asked_for_itself(first: str, second: str, server: str, upstream: str) -> None:
    reports = reports_of(first, second, server, upstream)
    for name, letter in zip(NAMES, (first, second), strict=True):
        for one in reports[name]["rounds"]:
            assert one["sampling"]["asked"] == ["sampling"]
            assert one["sampling"]["answer"]["content"]["text"] == name
            if "elicitation" not in one:
                assert server < "C" or letter < "C"
            elif letter < "C":
                assert one["elicitation"]["answer"]["refused"]["code"] == -32601
            else:
                assert one["elicitation"]["asked"] == ["elicitation"]
                assert one["elicitation"]["answer"]["content"] == {"city": name}


def test_each_is_told_its_own_progress_under_its_own_token(first: str, second: str, server: str, upstream: str) -> None:
    reports = reports_of(first, second, server, upstream)
    for name in NAMES:
        assert [one["progress"] for one in reports[name]["rounds"]] == [[1, 2, 3]] * len(reports[name]["rounds"])


def test_each_sees_the_log_of_its_own_calls_from_its_own_level(
    first: str, second: str, server: str, upstream: str
) -> None:
    """Without secrets each session is a principal of its own: what no stream places is nobody's."""
    reports = reports_of(first, second, server, upstream)
    for name, level in zip(NAMES, ("warning", "debug"), strict=True):
        expected = list(LEVELS[LEVELS.index(level) :]) if upstream == "http" else []
        assert [one["logged"] for one in reports[name]["rounds"]] == [expected] * len(reports[name]["rounds"])


def test_only_who_subscribed_hears_of_a_change(first: str, second: str, server: str, upstream: str) -> None:
    reports = reports_of(first, second, server, upstream)
    rounds = sum(len(reports[name]["rounds"]) for name in NAMES)
    assert [reports[name]["touched"] for name in NAMES] == [rounds, 0]


def test_a_cancellation_ends_the_call_of_who_cancels(first: str, second: str, server: str, upstream: str) -> None:
    if server not in SURVIVES_CANCELLATION:
        pytest.skip("this release dies of a cancelled request")
    report = reports_of(first, second, server, upstream)["first"]
    assert report["cancel"]["afterwards"]["cancelled"] == ["slow"]


@pytest.mark.parametrize("side", [*NAMES, "server"])
def test_frames_are_valid_for_their_receiver(first: str, second: str, server: str, upstream: str, side: str) -> None:
    record = reports_of(first, second, server, upstream)[side]["frames"]
    assert record, f"the {side} has recorded no frames"
    letter = {"first": first, "second": second, "server": server}[side]
    role: Side = "server" if side == "server" else "client"
    assert list(complaints(record, role, REVISIONS[letter])) == []
