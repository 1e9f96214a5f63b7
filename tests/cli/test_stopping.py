"""How long a proxy takes to stop whose servers do not want to: the same for every scope, and no server is left."""

from __future__ import annotations

import signal
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.test_listen import INITIALIZE, listening
from tests.support.waiting import wait_until
from tests.transports.test_warden import open_session

STUBBORN = """
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
info = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
for line in sys.stdin:
    if "id" in (frame := json.loads(line)):
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": info}), flush=True)
open(os.path.join(sys.argv[1], f"{os.getpid()}-is-told"), "w").close()
time.sleep(600)
"""
PATIENT = """
import sys
from dragoman.transports.stdio import ChildPatience
ChildPatience.__init__.__defaults__ = (300.0, 300.0, 300.0)
from dragoman.cli import main
sys.exit(main())
"""
"""A proxy that is as patient with its servers as nobody would wait for, unless it is in a hurry."""

PROXY = [sys.executable, "-c", PATIENT, "proxy"]

BOUND_S = 45
"""It is 1.4 s on a machine that has nothing else to do."""


def is_alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("scope", ["client", "shared"])
def test_stopping_takes_as_long_in_every_scope_and_leaves_no_server(scope: str, signals: int, tmp_path: Path) -> None:
    server = [sys.executable, "-S", "-c", STUBBORN, str(tmp_path)]
    with listening("--scope", scope, server=server, proxy=PROXY) as proxy:
        for _ in range(2):
            session = proxy.post(INITIALIZE)[1]["mcp-session-id"]
            proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
            assert proxy.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, mcp_session_id=session)[0] == 200
        started = [path.name for path in tmp_path.iterdir() if path.name.isdigit()]
        assert len(started) >= (1 if scope == "shared" else 2)
        began = time.monotonic()
        for _ in range(signals - 1):
            proxy.process.send_signal(signal.SIGTERM)
            wait_until(lambda: any(tmp_path.glob("*-is-told")))
        code, _ = proxy.end()
        assert time.monotonic() - began < BOUND_S
    assert code == 143
    assert not [path.name for path in tmp_path.iterdir() if is_alive(path.name)]


def test_a_signal_while_a_server_starts_leaves_none(tmp_path: Path) -> None:
    server = [sys.executable, "-c", f"import time; time.sleep(0.2)\n{STUBBORN}", str(tmp_path)]
    with listening("--scope", "shared", server=server, proxy=PROXY) as proxy, open_session(proxy.url):
        wait_until(lambda: started_by(proxy.process.pid))
        children = started_by(proxy.process.pid)
        began = time.monotonic()
        assert proxy.end()[0] == 143
        assert time.monotonic() - began < BOUND_S
    assert not any(map(is_alive, children))


def started_by(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


SLOW = """
import json, os, sys, time
info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
for line in sys.stdin:
    if "id" not in (frame := json.loads(line)):
        continue
    if frame["method"] == "tools/call":
        open(os.path.join(sys.argv[1], "asked"), "w").close()
        while not os.path.exists(os.path.join(sys.argv[1], "go-on")):
            time.sleep(0.01)
    print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": info}), flush=True)
"""


def test_a_call_is_answered_that_was_under_way_when_the_signal_came(tmp_path: Path) -> None:
    with listening(server=[sys.executable, "-S", "-c", SLOW, str(tmp_path)]) as proxy, ThreadPoolExecutor() as others:
        session = proxy.post(INITIALIZE)[1]["mcp-session-id"]
        proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow"}}
        calling = others.submit(proxy.post, call, mcp_session_id=session)
        wait_until((tmp_path / "asked").exists)
        proxy.process.send_signal(signal.SIGTERM)
        wait_until(lambda: proxy.post(INITIALIZE)[0] == 503)
        (tmp_path / "go-on").touch()
        status, _, answer = calling.result(BOUND_S)
        assert (status, answer["id"], "result" in answer) == (200, 2, True)
        assert proxy.process.wait(BOUND_S) == 143


def test_balancers_are_given_notice_before_anybody_is_refused() -> None:
    with listening("--shutdown-delay", "600") as proxy:
        ready = proxy.url.removesuffix("/mcp") + "/readyz"
        assert status_of(ready) == 200
        proxy.process.send_signal(signal.SIGTERM)
        wait_until(lambda: status_of(ready) == 503)
        assert proxy.post(INITIALIZE)[0] == 200
        proxy.process.send_signal(signal.SIGTERM)  # a second one does not wait
        assert proxy.process.wait(BOUND_S) == 143


def test_what_notice_was_given_of_begins_when_the_time_is_over() -> None:
    with listening("--shutdown-delay", "1.5") as proxy:
        began = time.monotonic()
        assert proxy.end()[0] == 143
        assert time.monotonic() - began >= 1.5


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=BOUND_S) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
