"""What works on a system that has nothing that Windows has not, in processes of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
ADDER = str(ROOT / "tests/cli/adder.py")
THERE = [sys.executable, "-m", "tests.support.made_up_windows"]
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}

IMPORT_ALL = """
import importlib, pkgutil
from tests.support.made_up_windows import enter
enter()
import dragoman
for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    if not module.name.endswith(("__main__", ".workers")):  # the latter is imported by nobody there
        importlib.import_module(module.name)
        print(module.name)
"""


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [*THERE, "proxy", "--status", str(tmp_path / "status"), "--", sys.executable, ADDER]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def ask(process: subprocess.Popen[bytes], id_: int, method: str, params: dict[str, Any]) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    frames = [{"jsonrpc": "2.0", "id": id_, "method": method, "params": params}]
    if method != "initialize":
        frames.insert(0, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    process.stdin.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
    process.stdin.flush()
    while True:
        heard = json.loads(process.stdout.readline())
        if heard.get("id") == id_:
            return heard["result"]


def test_everything_can_be_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert {"dragoman.cli.proxy", "dragoman.signin.store", "dragoman.inspect.viewer"} <= {*done.stdout.split()}


@pytest.mark.parametrize(
    "arguments", [["revisions"], ["--version", "--verbose"], ["diff", "2025-06-18", "2025-11-25"], ["tokens"], ["demo"]]
)
def test_commands_run(arguments: list[str], tmp_path: Path) -> None:
    surroundings = {**os.environ, "LOCALAPPDATA": str(tmp_path)}
    done = subprocess.run(
        [*THERE, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, env=surroundings, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_a_server_is_listed() -> None:
    done = subprocess.run(
        [*THERE, "list", "--json", "--", sys.executable, ADDER],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["tools"]


def test_a_session_is_served_and_ends_with_its_client(proxy: subprocess.Popen[bytes]) -> None:
    assert ask(proxy, 1, "initialize", OPENING)["protocolVersion"] == "2025-06-18"
    assert ask(proxy, 2, "tools/list", {})["tools"]
    proxy.communicate(timeout=60)
    assert proxy.returncode == 0


def test_status_is_told_at_a_port(proxy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    ask(proxy, 1, "initialize", OPENING)
    path = tmp_path / "status"
    said = json.loads(path.read_text())
    assert set(said) == {"port", "secret"}
    asked = [*THERE, "status", "--json", str(path)]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["servers"][0]["state"] == "ready"
    proxy.communicate(timeout=60)
    assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
def test_interrupts_end_it(proxy: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Ctrl-C, and Ctrl-Break by the signal that stands for it there."""
    ask(proxy, 1, "initialize", OPENING)
    proxy.send_signal(number)
    wait_until(lambda: proxy.poll() is not None)
    assert proxy.returncode == 128 + number


def test_a_server_is_served_over_http_and_called_there() -> None:
    command = [*THERE, "proxy", "--listen", "http://127.0.0.1:0", "--", sys.executable, ADDER]
    proxy = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert proxy.stderr is not None
        url = next(found[0] for line in proxy.stderr if (found := re.search(r"http://[^\s]+/mcp", line)))
        done = subprocess.run(
            [*THERE, "call", "add", "a=1", "b=2", "--url", url],
            cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert "['a', 'b']" in done.stdout
        proxy.send_signal(signal.SIGALRM)
        proxy.communicate(timeout=60)
        assert proxy.returncode in (0, 128 + signal.SIGALRM)
    finally:
        proxy.kill()
        proxy.communicate()
