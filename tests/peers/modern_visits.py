"""Visits of clients, and to servers, that can do without a handshake: Python's SDK and TypeScript's of release 2.x.

Lives here: their commands, joined by the proxy. Not here: what a report must hold. A peer is named as in `pairs`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.ahead import ahead
from tests.peers.traces import read_trace
from tests.peers.visits import (
    ENVIRONMENTS,
    HERE,
    LIMIT_S,
    SELECTION,
    SETTLE_S,
    client_command,
    joined_by_proxy,
    native,
    python_in,
    server_command,
    visit,
)

NPM: Final = os.environ.get("DRAGOMAN_PEERS_NPM")
REVISION: Final = "2026-07-28"

NETWORK: Final = ("http-stdio", "stdio-http", "http-http")
PYTHONS: Final = [
    (letter, link)
    for place, letter in enumerate("ABCDE")
    for link in ("stdio-stdio", *(NETWORK if SELECTION == "full" else NETWORK[place % 3 :][:1]))
]
"""Where Python's client without a handshake goes: to every server over stdio, and by default over one other link."""

needs_both = pytest.mark.skipif(not (ENVIRONMENTS and NPM), reason="no peers from npm: run `nox -s peers`")


@functools.cache
def node() -> str:
    """Return the node that came with the packages, or else the one on the path."""
    found = sorted(Path(NPM).glob("node_modules/node-*/bin/node")) if NPM else []
    return str(found[0]) if found else "node"


def server_of(peer: str) -> list[str]:
    """Return the command of a server; it listens if it is told to."""
    if peer[0] == "T":
        return [node(), str(HERE / "npm" / "server.mjs"), str(NPM), "serve" if peer.endswith("+") else "reject"]
    if peer[0] == "E":
        options = ["--both"] if peer.endswith("+") else []
        return [python_in("current"), str(HERE / "stateless.py"), *options]
    return server_command(peer)


@ahead
def modern_report(client: str, letter: str, link: str) -> dict[str, Any]:
    """Send a client that can do without a handshake to a server, and give its report."""
    front, upstream = link.split("-")
    mode = "auto" if client.endswith("+") else REVISION
    with tempfile.TemporaryDirectory() as folder:
        log, trace = Path(folder) / "log", Path(folder) / "trace"
        with contextlib.ExitStack() as stack:
            _, where = joined_by_proxy(stack, front, native(upstream, letter), server_of(letter), log, trace)
            if (front, upstream, letter) == ("stdio", "http", "B"):
                # A client that asks what the server is may start the proxy twice, and this server ends with a session.
                where.insert(where.index("--url"), "--no-delete")
            target = ["--", *where] if front == "stdio" else ["--url", *where]
            command = [python_in("current"), "-W", "ignore", str(HERE / "modern.py"), "--mode", mode, *target]
            if client[0] == "T":
                command = [node(), str(HERE / "npm" / "modern.mjs"), str(NPM), mode, *target]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        said = log.read_text("utf-8", "replace")[-1500:] if log.exists() else ""
        assert done.returncode == 0, done.stderr[-3000:] + said
        report: dict[str, Any] = json.loads(done.stdout)
        report["trace"] = read_trace(trace)
    return report


@ahead
def handshake_report(client: str, letter: str, link: str) -> dict[str, Any]:
    """Send a client with a handshake to a server that can do without, and give its report."""
    front, upstream = link.split("-")
    with tempfile.TemporaryDirectory() as folder:
        log, trace = Path(folder) / "log", Path(folder) / "trace"
        with contextlib.ExitStack() as stack:
            over, target = joined_by_proxy(stack, native(front, client), upstream, server_of(letter), log, trace)
            report = visit(client_command(client), target, "--over", over, "--settle", SETTLE_S)
        report["trace"] = read_trace(trace)
    return report
