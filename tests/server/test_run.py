"""`Server.run()`: a program that clients start, and what it says beside its answers."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.proxy import ProxyConfig
from dragoman.transports.memory import connect_pair
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.server.rooms import make
from tests.support.waiting import PATIENCE_S, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "notes_server.py"
RICH: dict[str, Any] = {
    "capabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}},
    "clientInfo": {"name": "rich", "version": "1", "title": "Rich", "icons": [{"src": "https://example.com/i.png"}]},
}


def started() -> subprocess.Popen[bytes]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, str(EXAMPLE)], **pipes)


def opening(revision: str) -> bytes:
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": revision, **RICH}}
    return json.dumps(frame).encode() + b"\n"


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_server_that_is_run_says_nothing_beside_its_answers(revision: str) -> None:
    with started() as process:
        out, err = process.communicate(opening(revision), PATIENCE_S)
    assert (json.loads(out)["result"]["protocolVersion"], err, process.returncode) == (revision, b"", 0)


def test_a_server_that_is_interrupted_says_nothing() -> None:
    with started() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(opening("2025-06-18"))
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize(("config", "lines"), [(None, 0), (ProxyConfig(), 1)])
def test_losses_are_logged_where_a_program_wants_that(
    config: ProxyConfig | None, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        near, far = connect_pair()
        serving = asyncio.ensure_future(make("2025-06-18").serve(far, config))
        declared = {"elicitation": {"form": {}, "url": {}}}
        async with dragoman.connect(lambda: near, revision="2025-11-25", capabilities=declared):
            pass
        await serving

    with caplog.at_level(logging.WARNING, "dragoman.translate"):
        run(work())
    assert len([record for record in caplog.records if "initialize" in record.getMessage()]) == lines
