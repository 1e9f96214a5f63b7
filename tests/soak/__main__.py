"""Mixed load over every front for many minutes: `python -m tests.soak [MINUTES]`; `nox -s soak` runs it.

Proxies with a network front, before stdio servers, before an HTTP server, and before stdio servers that clients share,
all of them or those of a person; and a proxy over stdio that is started again and again. Clients ask small and large
things, send nonsense, leave without a word. At the end of every minute the load rests until the proxies are idle, and
a line says what they hold. Exits with 1 if an answer was wrong, or if there is more of anything at the end than after
the first minute.
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
from tests.soak.sharing import visit_shared

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
SHARED_SERVER: Final = (sys.executable, "-m", "tests.soak.server")
SECRETS: Final = {"ada": "a" * 32, "bob": "b" * 32}
HTTP_SERVER: Final = (sys.executable, "-m", "bench.http_server", SERVER_REVISION)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds."""

    memory_kb: int
    descriptors: int
    children: int
    tasks: int
    shared: int

    def exceeds(self, other: Holding) -> bool:
        """Say whether this is more of anything than before; memory may breathe a little."""
        limit_kb = other.memory_kb * MEMORY_SLACK + MEMORY_SLACK_KB
        counts = ("descriptors", "children", "tasks", "shared")
        return self.memory_kb > limit_kb or any(getattr(self, name) > getattr(other, name) for name in counts)

    def __str__(self) -> str:
        return (
            f"{self.memory_kb / 1000:6.1f} MB {self.descriptors:3} fds {self.children:2} children {self.tasks:2} tasks "
            f"{self.shared} under way"
        )


class Watched:
    """A proxy with a network front, and a look at what it holds.

    Args:
        port: Its own.
        notes: Where it notes what it holds.
        keeps: How many servers it keeps while nobody uses them.
    """

    def __init__(self, port: int, notes: Path, keeps: int) -> None:
        self.port = port
        self.notes = notes
        self.keeps = keeps
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


@dataclass(frozen=True, slots=True)
class Door:
    """Where clients come in.

    Attributes:
        name: For the report.
        port: Of the proxy.
        secrets: What clients of shared servers show, one of them each; empty where servers are not shared.
    """

    name: str
    port: int
    secrets: tuple[str, ...] = ()


class Load:
    """Workers that visit until they are told to stop, and what came of it."""

    def __init__(self, doors: list[Door], seed: int) -> None:
        self.doors = doors
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
            front, door = chance.choice(FRONTS), chance.choice(self.doors)
            try:
                count = one_visit(front, door, chance)
            except Exception as error:  # whatever it is, it is what the soak looks for
                with self._lock:
                    self.wrong.append(f"{front} {door.name}: {type(error).__name__}: {error}"[:300])
                continue
            with self._lock:
                self.sessions[front] += 1
                self.requests += count


def one_visit(front: str, door: Door, chance: random.Random) -> int:
    """Visit once over a front; return how many requests were answered."""
    if front == "abandon":
        abandon(door.port, chance)
        return 0
    if front == "stdio":
        with over_stdio((*DRAGOMAN, "--", *STDIO_SERVER), CLIENT_REVISIONS[front]) as peer:
            return ask(peer, chance)
    if door.secrets:
        return visit_shared(door.port, front, CLIENT_REVISIONS[front], chance.choice(door.secrets), chance)
    return visit(door.port, front, CLIENT_REVISIONS[front], chance)


@contextlib.contextmanager
def watched_proxy(folder: Path, name: str, *behind: str, keeps: int = 0) -> Iterator[Watched]:
    """Start a proxy with a network front."""
    notes = folder / name
    limits = ("--session-idle", str(IDLE_S), "--body-timeout", str(IDLE_S), "--header-timeout", str(IDLE_S))
    program = (sys.executable, "-m", "tests.soak.watched", str(notes), *DRAGOMAN[3:])
    with listening((*program, "--listen", "http://127.0.0.1:0", *limits, *behind)) as port:
        yield Watched(port, notes, keeps)


def soak(minutes: int, seed: int) -> int:
    """Run the load, print a line a minute, and say what grew."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server_port = stack.enter_context(listening(HTTP_SERVER))
        upstream = f"http://127.0.0.1:{server_port}/mcp"
        secrets = folder / "secrets"
        secrets.write_text("".join(f"{name} {secret}\n" for name, secret in SECRETS.items()), "ascii")
        shared = ("--scope", "shared", "--server-idle", "1", "--", *SHARED_SERVER)
        of_persons = ("--scope", "principal", "--auth-token-file", str(secrets), "--", *SHARED_SERVER)
        proxies = {
            "to stdio": stack.enter_context(watched_proxy(folder, "stdio", "--", *STDIO_SERVER)),
            "to http": stack.enter_context(watched_proxy(folder, "http", "--url", upstream)),
            "shared": stack.enter_context(watched_proxy(folder, "shared", *shared)),
            "of persons": stack.enter_context(
                watched_proxy(folder, "persons", "--server-idle", "3600", *of_persons, keeps=len(SECRETS))
            ),
        }
        shown = {"shared": ("",), "of persons": tuple(SECRETS.values())}
        load = Load([Door(name, proxy.port, shown.get(name, ())) for name, proxy in proxies.items()], seed)
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
