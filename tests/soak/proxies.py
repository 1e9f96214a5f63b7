"""Proxies that the soak watches: started with a network front, and asked what they hold.

Lives here: starting them, what a process holds, waiting until it rests. Not here: what is done to them (`__main__`,
`trials`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.peers import started
from tests.soak.clients import lines_of

IDLE_S: Final = 2
"""After how long the proxies drop sessions that were abandoned, and connections that do not finish what they began."""

REST_LIMIT_S: Final = 20
MEMORY_SLACK: Final = 1.10
MEMORY_SLACK_KB: Final = 3_000
DRAGOMAN: Final = (sys.executable, "-m", "dragoman", "proxy", "--log-level", "error", "--on-loss", "silent")


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds."""

    memory_kb: int
    descriptors: int
    children: int
    tasks: int
    shared: int

    def exceeds(self, other: Holding, spare: int = 0) -> bool:
        """Say whether this is more of anything than before, beyond so many connections; memory may breathe a little."""
        limit_kb = other.memory_kb * MEMORY_SLACK + MEMORY_SLACK_KB
        counts = ("children", "tasks", "shared")
        is_more = any(getattr(self, name) > getattr(other, name) for name in counts)
        return is_more or self.memory_kb > limit_kb or self.descriptors > other.descriptors + spare

    def __str__(self) -> str:
        return (
            f"{self.memory_kb / 1000:6.1f} MB {self.descriptors:3} fds {self.children:2} children {self.tasks:2} tasks "
            f"{self.shared} under way"
        )


class Watched:
    """A proxy with a network front, and a look at what it holds.

    Args:
        process: The proxy.
        port: Its own.
        notes: Where it notes what it holds.
        keeps: How many servers it keeps while nobody uses them.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, notes: Path, keeps: int) -> None:
        self.port = port
        self.notes = notes
        self.keeps = keeps
        self.pid = process.pid

    def hold(self) -> Holding:
        """Ask the process and the system."""
        before = len(self._lines())
        os.kill(self.pid, signal.SIGUSR1)
        until = time.monotonic() + 5
        while len(self._lines()) == before and time.monotonic() < until:
            time.sleep(0.01)
        status = Path(f"/proc/{self.pid}/status").read_text("utf-8")
        memory_kb = int(status.partition("VmRSS:")[2].split()[0])
        threads = Path(f"/proc/{self.pid}/task").glob("*/children")
        children = sum(len(thread.read_text("utf-8").split()) for thread in threads)
        noted = self._lines()[-1]
        descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))
        return Holding(memory_kb, descriptors, children, noted["tasks"], noted["held"])

    def rest(self) -> Holding:
        """Wait until two looks, some time apart, find the same, and no more children than it keeps."""
        until = time.monotonic() + REST_LIMIT_S
        found = self.hold()
        while time.monotonic() < until:
            time.sleep(IDLE_S)
            last, found = found, self.hold()
            is_calm = found.children <= self.keeps and not found.shared
            if is_calm and (last.descriptors, last.tasks) == (found.descriptors, found.tasks):
                break
        return found

    def _lines(self) -> list[Any]:
        return list(lines_of(self.notes.read_text("utf-8"))) if self.notes.exists() else []


@contextlib.contextmanager
def watched_proxy(
    folder: Path, name: str, *behind: str, keeps: int = 0, url: str = "http://127.0.0.1:0"
) -> Iterator[Watched]:
    """Start a proxy with a network front."""
    notes = folder / name
    limits = ("--session-idle", str(IDLE_S), "--body-timeout", str(IDLE_S), "--header-timeout", str(IDLE_S))
    program = (sys.executable, "-m", "tests.soak.watched", str(notes), *DRAGOMAN[3:])
    with started((*program, "--listen", url, *limits, *behind)) as (process, port):
        yield Watched(process, port, notes, keeps)
