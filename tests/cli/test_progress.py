"""What `dragoman check` says on a terminal while it works, and where there is none."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import commands

SERVER = str(Path(__file__).parents[1] / "check" / "hostile_server.py")
REVISION = "2025-06-18"
LONGEST_S = 60


def read_all(fd: int) -> bytes:
    """Read a terminal until nobody holds its other end."""
    found = b""
    with os.fdopen(fd, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while piece := terminal.read(65536):
            found += piece
    return found


def check(*command: str, terminal: str = "xterm") -> tuple[str, str]:
    """Give what is written on a terminal that is stderr, and the report."""
    ours, theirs = pty.openpty()
    options = ("--revision", REVISION, "--timeout", "5")
    words = [sys.executable, "-m", "dragoman", "check", *options, "--", *command]
    environment = {**os.environ, "TERM": terminal, "COLUMNS": "40"}
    with commands.start(words, stdout=subprocess.PIPE, stderr=theirs, env=environment, text=True) as process:
        os.close(theirs)
        found = read_all(ours)
        report = process.communicate(timeout=LONGEST_S)[0]
    return found.decode(), report


def test_a_line_says_what_is_asked_and_is_gone_at_the_end() -> None:
    found, _ = check(sys.executable, SERVER)
    steps = found.split("\r\x1b[K")
    assert {f"{REVISION}: initialize", f"{REVISION}: tools/list", f"{REVISION}: ping"} <= set(steps)
    assert (steps[-1], "\n" in found, max(map(len, steps)) < 40) == ("", False, True)


def test_a_terminal_that_cannot_replace_a_line_gets_none() -> None:
    assert check(sys.executable, SERVER, terminal="dumb")[0] == ""


def test_without_a_terminal_nothing_is_said() -> None:
    assert commands.dragoman("check", "--revision", REVISION, "--", sys.executable, SERVER).stderr == ""


SPEAKS = "import sys, runpy; print('I am\\x1b[2J up', file=sys.stderr, flush=True); sys.argv[1:] = {mode!r}; "
SPEAKS += f"runpy.run_path({SERVER!r}, run_name='__main__')"


@pytest.mark.parametrize(("mode", "said"), [([], ""), (["dies 4"], "stderr:\r\n  I am�[2J up\r\n")])
def test_what_the_server_says_is_told_if_it_fails(mode: list[str], said: str) -> None:
    found, report = check(sys.executable, "-c", SPEAKS.format(mode=mode))
    assert found.split("\r\x1b[K")[-1].removeprefix("The last that the server wrote on ") == said
    assert "1 of 1 revisions spoken" in report
