"""The configuration file in `examples/` does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import commands

FILE = str(Path(__file__).parents[2] / "examples" / "desktop_config.json")
LONGEST_S = 60


def dragoman(*arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.dragoman(*arguments, env={**os.environ, "PYTHON": sys.executable})


def test_its_servers_answer() -> None:
    done = dragoman("config", "check", FILE)
    assert done.returncode == 0, done.stderr  # which has what the servers themselves log
    assert [line.partition(",")[0] for line in done.stdout.splitlines()] == [
        "home: ok: notes 1.0",
        "work: ok: notes 1.0",
    ]


def test_the_router_serves_both() -> None:
    proxy = ["--", sys.executable, "-m", "dragoman", "proxy", "--config", FILE]
    done = dragoman("list", *proxy)
    assert "  home_add" in done.stdout, done.stderr
    assert "  office_add" in done.stdout
    assert "  home+note://1" in done.stdout
    assert dragoman("read", "office+note://1", *proxy).stdout == "Bread"
