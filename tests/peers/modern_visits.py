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
from tests.peers.visits import (
    ENVIRONMENTS,
    HERE,
    LIMIT_S,
    SETTLE_S,
    client_command,
    joined_by_proxy,
    native,
    server_command,
    visit,
)

NPM: Final = os.environ.get("DRAGOMAN_PEERS_NPM")
REVISION: Final = "2026-07-28"

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
        return [_python(), str(HERE / "stateless.py"), *options]
    return server_command(peer)


def _python() -> str:
    return str(Path(str(ENVIRONMENTS)) / "current" / "bin" / "python")


@ahead
def modern_report(client: str, letter: str, link: str) -> dict[str, Any]:
    """Send a client that can do without a handshake to a server, and give its report."""
    front, upstream = link.split("-")
    mode = "auto" if client.endswith("+") else REVISION
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log = Path(folder) / "log"
        _, where = joined_by_proxy(stack, front, native(upstream, letter), server_of(letter), log)
        where = _tracing(where, Path(folder) / "trace") if front == "stdio" else where
        target = ["--", *where] if front == "stdio" else ["--url", *where]
        command = [_python(), "-W", "ignore", str(HERE / "modern.py"), "--mode", mode, *target]
        if client[0] == "T":
            command = [node(), str(HERE / "npm" / "modern.mjs"), str(NPM), mode, *target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        said = log.read_text("utf-8", "replace")[-1500:] if log.exists() else ""
        assert done.returncode == 0, done.stderr[-3000:] + said
        report: dict[str, Any] = json.loads(done.stdout)
        report["frames"] = _traced(Path(folder) / "trace")
    return report


@ahead
def handshake_report(client: str, letter: str, link: str) -> dict[str, Any]:
    """Send a client with a handshake to a server that can do without, and give its report."""
    front, upstream = link.split("-")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log = Path(folder) / "log"
        over, target = joined_by_proxy(stack, native(front, client), upstream, server_of(letter), log)
        target = _tracing(target, Path(folder) / "trace") if front == "stdio" else target
        report = visit(client_command(client), target, "--over", over, "--settle", SETTLE_S)
        report["frames"] = _traced(Path(folder) / "trace")
    return report


def _tracing(command: list[str], trace: Path) -> list[str]:
    """Have the proxy write down what passes."""
    place = command.index("proxy") + 1
    return [*command[:place], "--trace", str(trace), *command[place:]]


def _traced(trace: Path) -> dict[str, list[dict[str, Any]]]:
    """Give what each side got of the proxy and sent to it, as peers record it."""
    record: dict[str, list[dict[str, Any]]] = {"client": [], "server": []}
    for line in trace.read_text("utf-8").splitlines() if trace.exists() else ():
        entry = json.loads(line)
        label = {"sent": "got", "received": "sent"}.get(entry["direction"])
        if label is not None and "frame" in entry:
            record[entry["side"]].append({label: entry["frame"]})
    return record
