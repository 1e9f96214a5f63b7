"""Signals that come before anything is up: no traceback, no crash, nobody left behind, and the right exit code."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lines import Lines
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, str(ROOT / "bench" / "server.py"), "2025-06-18"]
PATIENCE_S = 60.0

DRIVER = """
import os, signal, sys
from dragoman.cli import main

class Interrupter:
    '''Sends the signal when the given number of modules has been looked for, from that of this name on.'''

    def __init__(self, number, name, count):
        self.number, self.name, self.left = signal.Signals[number], name, int(count)

    def find_spec(self, name, path=None, target=None):
        if self.left and self.name in ("any", name):
            self.name, self.left = "any", self.left - 1
            if not self.left:
                os.kill(os.getpid(), self.number)

sys.meta_path.insert(0, Interrupter(*sys.argv[1:4]))
del sys.argv[1:4]
sys.exit(main())
"""

COMMANDS = {
    "stdio": ["proxy", "--", *SERVER],
    "listen": ["proxy", "--listen", "http://127.0.0.1:0", "--", *SERVER],
    "url": ["proxy", "--url", "http://127.0.0.1:1/mcp"],
    "convert": ["convert", "--from", "2024-11-05", "--to", "2025-11-25"],
    "demo": ["demo"],
}


def interrupted(arguments: list[str], name: str, count: int, number: str = "SIGINT") -> tuple[int, str]:
    """Run a command, with a signal at an import; give its exit code and what it said."""
    command = [sys.executable, "-c", DRIVER, number, name, str(count), *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_while_modules_are_imported_ends_it_with_130_and_no_word(command: str) -> None:
    points = [("any", count) for count in range(1, 50, 12)] + [("orjson", count) for count in range(1, 9)]
    found = {point: interrupted(COMMANDS[command], *point) for point in points}
    announced = "listening on "
    wrong = {
        point: outcome
        for point, outcome in found.items()
        if outcome[0] != 130 or [line for line in outcome[1].splitlines() if not line.startswith(announced)]
    }
    assert wrong == {}


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_server_that_was_just_started_is_ended(number: str, code: int, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    server = ["sh", "-c", f"echo $$ > {note}; exec sleep 600"]
    assert interrupted(["proxy", "--", *server], "asyncio", 1, number) == (code, "")
    # It may have been ended before it could write.
    wait_until(lambda: not (note.exists() and note.read_text() and is_alive(note.read_text().strip())))


def is_alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    proxy = [sys.executable, "-m", "dragoman", *COMMANDS["stdio"]]
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *proxy], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        heard = Lines(process.stdout)
        for key, method in ((1, "initialize"), (2, "ping")):
            frame = {"jsonrpc": "2.0", "id": key, "method": method, "params": params if key == 1 else {}}
            process.stdin.write(json.dumps(frame).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(heard.read())["id"] == key
            process.send_signal(signal.SIGHUP)
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
