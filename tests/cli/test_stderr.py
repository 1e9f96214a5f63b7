"""A stderr that nobody reads, whatever it is: nothing in the process waits for it, whoever writes."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.stderr import ServerWords

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, str(ROOT / "bench" / "server.py"), "2025-06-18"]
PATIENCE_S = 60.0

TALKATIVE = """
import contextlib, faulthandler, os, sys, warnings
from dragoman import proxy
from dragoman.cli import main

def talk(self, run=proxy.Proxy.run):
    with contextlib.suppress(BlockingIOError):
        os.write(2, b"C " * 200_000)
    print("Python " * 50_000, file=sys.stderr)
    warnings.warn("a warning")
    faulthandler.dump_traceback()
    return run(self)

proxy.Proxy.run = talk
sys.exit(main())
"""

SPEAKER = """
import os, sys
from dragoman.cli.stderr import free_stderr

real = free_stderr()
print("first", file=sys.stderr)
os.write(2, b"second\\n")
os.write(real, b"a child's\\n") if "child" in sys.argv else None
sys.exit("last")
"""


def make(kind: str) -> tuple[int, int]:
    """Give the end to read from and the end to write to of something that stderr may be."""
    match kind:
        case "pipe":
            return os.pipe()
        case "socket":
            ours, theirs = socket.socketpair()
            return ours.detach(), theirs.detach()
        case _:
            return pty.openpty()


@pytest.fixture(params=["pipe", "socket", "terminal"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    made = make(request.param)
    yield made
    for fd in made:
        os.close(fd)


def fill(fd: int) -> None:
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(fd, True)


def test_a_full_stderr_stops_neither_the_session_nor_a_signal(ends: tuple[int, int]) -> None:
    fill(ends[1])
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with subprocess.Popen(
        ["timeout", "-s", "KILL", str(PATIENCE_S), sys.executable, "-c", TALKATIVE, "proxy", "--", *SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=ends[1],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(frame).encode() + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        process.send_signal(signal.SIGTERM)  # `timeout` passes it on
        assert process.wait(PATIENCE_S) == 143
    assert json.loads(answer)["id"] == 1


def test_what_is_written_arrives_in_order_to_the_last_word(ends: tuple[int, int]) -> None:
    done = subprocess.run([sys.executable, "-c", SPEAKER], stderr=ends[1], timeout=PATIENCE_S)
    said = os.read(ends[0], 9999).replace(b"\r\n", b"\n")
    assert (done.returncode, said) == (1, b"first\nsecond\nlast\n")


def test_children_get_a_stderr_that_blocks_as_it_did(ends: tuple[int, int]) -> None:
    program = "from dragoman.cli.stderr import free_stderr; import os; print(os.get_blocking(free_stderr()))"
    done = subprocess.run([sys.executable, "-c", program], stderr=ends[1], stdout=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.stdout == b"True\n"
    assert os.get_blocking(ends[1])


def test_on_windows_nothing_that_has_a_name_is_opened_for_it() -> None:
    """Another user could have made a file `/proc/self/fd/3` there, and would read what we say."""
    program = """
import os
from tests.support.made_up_windows import enter
enter()
from dragoman.cli.stderr import free_stderr
opened = []
open_there, os.open = os.open, lambda path, *rest: opened.append(path) or open_there(path, *rest)
free_stderr()
print(opened)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=PATIENCE_S)
    assert done.stdout == b"[]\n"


def test_a_file_is_appended_to_by_everybody(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", SPEAKER, "child"], stderr=file, timeout=PATIENCE_S)
    assert log.read_text() == "before\nfirst\nsecond\na child's\nlast\n"


@pytest.mark.parametrize("kind", ["pipe", "socket", "terminal"])
def test_a_reader_that_has_gone_ends_nothing(kind: str) -> None:
    program = SPEAKER.replace('os.write(2, b"second\\n")', "").replace('sys.exit("last")', "print('done')")
    read_fd, write_fd = make(kind)
    os.close(read_fd)
    done = subprocess.run([sys.executable, "-c", program], stderr=write_fd, stdout=subprocess.PIPE, timeout=PATIENCE_S)
    os.close(write_fd)
    assert (done.returncode, done.stdout) == (0, b"done\n")


def test_of_a_server_that_is_waited_for_a_few_lines_are_shown_and_no_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An old server writes a page about our first question before it is asked the second one."""
    words = ServerWords(is_opening=False, is_kept=True)
    real, away = os.pipe()
    given = words.carry(away)

    def tell(*lines: str) -> None:
        os.write(given, "".join(f"{line}\n" for line in lines).encode())

    tell("begun")
    words.show_and_go_on(None)
    assert "begun" in capfd.readouterr().err
    tell(
        "open this page",
        "  + Exception Group Traceback (most recent call last):",
        *("  | of no interest" for _ in range(50)),
    )
    tell("it failed")
    words.show()
    tell("after that")
    words._settle()  # type: ignore[misc]
    os.close(away)
    said = os.read(real, 65536).decode()
    assert said == "open this page\nafter that\n"
    assert "it failed" in capfd.readouterr().err


def test_of_a_server_that_goes_on_and_on_ten_lines_are_shown_while_it_is_waited_for() -> None:
    words = ServerWords(is_opening=False, is_kept=True)
    words.carry(os.open(os.devnull, os.O_WRONLY))
    words.show_and_go_on(None)
    assert sum(bool(words.filter(b"%d\n" % number)) for number in range(100)) == 10
