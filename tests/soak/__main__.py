"""Mixed load over every front for many minutes: `python -m tests.soak [MINUTES]`; `nox -s soak` runs it.

Two proxies with a network front, one before stdio servers and one before an HTTP server, and a proxy over stdio that is
started again and again. Clients ask small and large things, send nonsense, leave without a word. At the end of every
minute the load rests until the proxies are idle, and a line says what they hold. Exits with 1 if an answer was wrong,
or if there is more of anything at the end than after the first minute.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.peers import listening, over_stdio
from tests.soak.clients import abandon, ask, lines_of, visit

WORKERS: Final = 4
FRONTS: Final = ("http", "http", "http", "sse", "ws", "ws", "stdio", "abandon")
CLIENT_REVISIONS: Final = {"http": "2025-03-26", "sse": "2024-11-05", "ws": "2025-06-18", "stdio": "2024-11-05"}
SERVER_REVISION: Final = "2025-11-25"
IDLE_S: Final = 2
"""After how long the proxies drop sessions that were abandoned."""

REST_LIMIT_S: Final = 20
MEMORY_SLACK: Final = 1.10
MEMORY_SLACK_KB: Final = 3_000
DRAGOMAN: Final = (sys.executable, "-m", "dragoman", "proxy", "--log-level", "error", "--on-loss", "silent")
STDIO_SERVER: Final = (sys.executable, "-m", "bench.server", SERVER_REVISION)
HTTP_SERVER: Final = (sys.executable, "-m", "bench.http_server", SERVER_REVISION)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds."""

    memory_kb: int
    descriptors: int
    children: int
    tasks: int

    def exceeds(self, other: Holding) -> bool:
        """Say whether this is more of anything than before; memory may breathe a little."""
        limit_kb = other.memory_kb * MEMORY_SLACK + MEMORY_SLACK_KB
        counts = (self.descriptors, self.children, self.tasks)
        return self.memory_kb > limit_kb or any(
            now > then for now, then in zip(counts, (other.descriptors, other.children, other.tasks), strict=True)
        )

    def __str__(self) -> str:
        return (
            f"{self.memory_kb / 1000:6.1f} MB {self.descriptors:3} fds {self.children:2} children {self.tasks:2} tasks"
        )


class Watched:
    """A proxy with a network front, and a look at what it holds."""

    def __init__(self, port: int, notes: Path) -> None:
        self.port = port
        self.notes = notes
        self.pid = _listener_of(port)

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
        return Holding(memory_kb, len(os.listdir(f"/proc/{self.pid}/fd")), children, self._lines()[-1]["tasks"])

    def rest(self) -> Holding:
        """Wait until two looks, some time apart, find the same, and no child."""
        until = time.monotonic() + REST_LIMIT_S
        found = self.hold()
        while time.monotonic() < until:
            time.sleep(IDLE_S)
            last, found = found, self.hold()
            if (last.descriptors, last.tasks, found.children) == (found.descriptors, found.tasks, 0):
                break
        return found

    def _lines(self) -> list[Any]:
        return list(lines_of(self.notes.read_text("utf-8"))) if self.notes.exists() else []


class Load:
    """Workers that visit until they are told to stop, and what came of it."""

    def __init__(self, ports: list[int], seed: int) -> None:
        self.ports = ports
        self.seed = seed
        self.sessions: Counter[str] = Counter()
        self.requests = 0
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def run(self, seconds: float) -> None:
        """Keep every worker busy for this long."""
        until = time.monotonic() + seconds
        self.seed += WORKERS
        workers = [threading.Thread(target=self._work, args=(self.seed + place, until)) for place in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, seed: int, until: float) -> None:
        chance = random.Random(seed)
        while time.monotonic() < until:
            front, port = chance.choice(FRONTS), chance.choice(self.ports)
            try:
                count = one_visit(front, port, chance)
            except Exception as error:  # whatever it is, it is what the soak looks for
                with self._lock:
                    self.wrong.append(f"{front}: {type(error).__name__}: {error}"[:300])
                continue
            with self._lock:
                self.sessions[front] += 1
                self.requests += count


def one_visit(front: str, port: int, chance: random.Random) -> int:
    """Visit once over a front; return how many requests were answered."""
    if front == "abandon":
        abandon(port, chance)
        return 0
    if front == "stdio":
        with over_stdio((*DRAGOMAN, "--", *STDIO_SERVER), CLIENT_REVISIONS[front]) as peer:
            return ask(peer, chance)
    return visit(port, front, CLIENT_REVISIONS[front], chance)


@contextlib.contextmanager
def watched_proxy(folder: Path, name: str, *behind: str) -> Iterator[Watched]:
    """Start a proxy with a network front."""
    notes = folder / name
    limits = ("--session-idle", str(IDLE_S), "--body-timeout", str(IDLE_S), "--header-timeout", str(IDLE_S))
    program = (sys.executable, "-m", "tests.soak.watched", str(notes), *DRAGOMAN[3:])
    with listening((*program, "--listen", "http://127.0.0.1:0", *limits, *behind)) as port:
        yield Watched(port, notes)


def soak(minutes: int, seed: int) -> int:
    """Run the load, print a line a minute, and say what grew."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server_port = stack.enter_context(listening(HTTP_SERVER))
        upstream = f"http://127.0.0.1:{server_port}/mcp"
        proxies = {
            "to stdio": stack.enter_context(watched_proxy(folder, "stdio", "--", *STDIO_SERVER)),
            "to http": stack.enter_context(watched_proxy(folder, "http", "--url", upstream)),
        }
        load = Load([proxy.port for proxy in proxies.values()], seed)
        print(f"seed {seed}; {WORKERS} clients at once")
        first: dict[str, Holding] = {}
        grown: list[str] = []
        for minute in range(1, minutes + 1):
            load.run(60 - 2 * IDLE_S)
            held = {name: proxy.rest() for name, proxy in proxies.items()}
            print(
                f"minute {minute:3}: {sum(load.sessions.values()):6} sessions {load.requests:7} answers "
                f"{len(load.wrong)} wrong | " + " | ".join(f"{name}: {now}" for name, now in held.items()),
                flush=True,
            )
            first = first or held
            grown = [name for name, now in held.items() if now.exceeds(first[name])]
        print("sessions:", ", ".join(f"{count} {front}" for front, count in sorted(load.sessions.items())))
    for line in sorted(set(load.wrong))[:20]:
        print("wrong:", line)
    for name in grown:
        print(f"grown: {name}: {first[name]} -> {held[name]}")
    return 1 if load.wrong or grown else 0


def _listener_of(port: int) -> int:
    """Return the process that listens on a port of 127.0.0.1, by the socket's inode."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    (inode,) = {row[9] for row in rows if row[1] == f"0100007F:{port:04X}" and row[3] == "0A"}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == f"socket:[{inode}]":
                return int(link.parts[2])
    raise LookupError(f"nobody listens on {port}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=int, default=15)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    return soak(args.minutes, args.seed)


if __name__ == "__main__":
    sys.exit(main())
