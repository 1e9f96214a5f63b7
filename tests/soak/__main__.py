"""Mixed load over every front for many minutes: `python -m tests.soak [MINUTES]`; `nox -s soak` runs it.

Proxies with a network front, before stdio servers with a handshake and without, before an HTTP server, and before stdio
servers that clients share, all of them or those of a person; and a proxy over stdio that is started again and again.
Clients of both eras ask small and large things, have calls parked, repeated or made tasks, run tools as tasks, send
nonsense, leave without a word. Three instances before a server each are killed meanwhile, as are the servers and a
store (`killing`). At the end of every minute the load rests until the proxies are idle, and a line says what they hold.
Before that, proxies of their own are put to trials (`trials`, `rolling`), smaller ones where there are fewer minutes.
Exits with 1 if an answer was wrong, if there is more of anything at the end than after the first minute, or if a trial
misses its target.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from bench.peers import listening, over_stdio
from tests.soak.clients import LIMIT_S, abandon, ask, visit
from tests.soak.killing import KEPT_CONNECTIONS, NEWER, OLDER, Killer, Victims, among_instances
from tests.soak.per_request import visit_without_a_handshake
from tests.soak.proxies import DRAGOMAN, IDLE_S, Holding, Watched, watched_proxy
from tests.soak.rolling import run_rolls
from tests.soak.sharing import visit_shared
from tests.soak.tasks import visit_with_tasks
from tests.soak.trials import WHOLE_MINUTES, run_trials
from tests.support.signals import heed_signals

WORKERS: Final = 4
FRONTS: Final = ("http", "http", "http", "sse", "ws", "ws", "stdio", "abandon", "requests", "requests", "requests")
TASK_FRONTS: Final = ("tasks", "tasks", "abandon")
CLIENT_REVISIONS: Final = {"http": "2025-03-26", "sse": "2024-11-05", "ws": "2025-06-18", "stdio": "2024-11-05"}
SERVER_REVISION: Final = "2025-11-25"
STDIO_SERVER: Final = (sys.executable, "-m", "bench.server", SERVER_REVISION)
STATELESS_SERVER: Final = (sys.executable, "-m", "bench.server", "2026-07-28")
SHARED_SERVER: Final = (sys.executable, "-m", "tests.soak.server")
TASK_SERVER: Final = (sys.executable, "-m", "bench.asking_server", "2026-07-28")
SECRETS: Final = {"ada": "a" * 32, "bob": "b" * 32}
KILLED: Final = (
    ("by redis", OLDER, "redis", True),
    ("by a folder", NEWER, "folder", True),
    ("started again", OLDER, "stdio", False),
)
HTTP_SERVER: Final = (sys.executable, "-m", "bench.http_server", SERVER_REVISION)


@dataclass(frozen=True, slots=True)
class Door:
    """Where clients come in.

    Attributes:
        name: For the report.
        port: Of the proxy.
        secrets: What clients show, one of them each.
        way: How clients without a handshake are asked in the middle of a call; empty where servers do not ask.
        fronts: What clients come over, or come for.
    """

    name: str
    port: int
    secrets: tuple[str, ...]
    way: str
    fronts: tuple[str, ...]
    victims: Victims | None = None


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
        workers = [
            threading.Thread(target=self._work, args=(self.seed + place, until), daemon=True)
            for place in range(WORKERS)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(seconds + 2 * LIMIT_S)
            if worker.is_alive():
                self.wrong.append("a client waits and does not give up")

    def _work(self, seed: int, until: float) -> None:
        chance = random.Random(seed)
        while time.monotonic() < until:
            door = chance.choice(self.doors)
            front = chance.choice(door.fronts)
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
    if door.victims:
        return door.victims.visit(front, chance)
    if front == "abandon":
        abandon(door.port, chance)
        return 0
    if front == "stdio":
        with over_stdio((*DRAGOMAN, "--", *STDIO_SERVER), CLIENT_REVISIONS[front]) as peer:
            return ask(peer, chance)
    if front == "tasks":
        return visit_with_tasks(door.port, chance)
    if front == "requests":
        return visit_without_a_handshake(door.port, chance.choice(door.secrets), door.way, chance)
    if door.way:
        return visit_shared(door.port, front, CLIENT_REVISIONS[front], chance.choice(door.secrets), chance)
    return visit(door.port, front, CLIENT_REVISIONS[front], chance)


def soak(minutes: int, seed: int) -> int:
    """Run the trials and the load, print a line for each trial and each minute, and say what grew."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        missed = 0
        for verdict in chain(run_trials(folder, minutes), run_rolls(folder, min(1.0, minutes / WHOLE_MINUTES))):
            missed += bool(verdict.failed)
            print(verdict, flush=True)
        server_port = stack.enter_context(listening(HTTP_SERVER))
        upstream = f"http://127.0.0.1:{server_port}/mcp"
        secrets = folder / "secrets"
        secrets.write_text("".join(f"{name} {secret}\n" for name, secret in SECRETS.items()), "ascii")
        soon = ("--questions", "park", "--answer-timeout", "1")  # who does not come back is in the way of others
        shared = ("--scope", "shared", "--server-idle", "1", *soon, "--", *SHARED_SERVER)
        repeated = ("--questions", "replay", "--repeatable", "tool_1", "--server-idle", "1", "--", *SHARED_SERVER)
        promoted = ("--questions", "task", "--task-ttl", "1", "--server-idle", "1", "--", *SHARED_SERVER)
        of_persons = ("--scope", "principal", "--auth-token-file", str(secrets), *soon, "--", *SHARED_SERVER)
        proxies = {
            "to stdio": stack.enter_context(watched_proxy(folder, "stdio", "--", *STDIO_SERVER)),
            "stateless": stack.enter_context(watched_proxy(folder, "stateless", "--", *STATELESS_SERVER)),
            "to http": stack.enter_context(watched_proxy(folder, "http", "--url", upstream)),
            "shared": stack.enter_context(watched_proxy(folder, "shared", *shared)),
            "of persons": stack.enter_context(
                watched_proxy(folder, "persons", "--server-idle", "3600", *of_persons, keeps=len(SECRETS))
            ),
            "repeated": stack.enter_context(watched_proxy(folder, "repeated", *repeated)),
            "promoted": stack.enter_context(watched_proxy(folder, "promoted", *promoted)),
            "tasks": stack.enter_context(watched_proxy(folder, "tasks", "--", *TASK_SERVER)),
        }
        ways = {"shared": "park", "of persons": "park", "repeated": "replay", "promoted": "task"}
        doors = [
            Door(name, proxy.port, secrets_of(name), ways.get(name, ""), TASK_FRONTS if name == "tasks" else FRONTS)
            for name, proxy in proxies.items()
        ]
        groups = [stack.enter_context(among_instances(folder, *about)) for about in KILLED]
        proxies |= {group.name: group.watched for group in groups}
        spare = {group.name: KEPT_CONNECTIONS for group in groups}
        doors += [Door(group.name, group.watched.port, (), "", (OLDER, NEWER), group) for group in groups]
        load, killer = Load(doors, seed), Killer(groups, seed)
        print(f"seed {seed}; {WORKERS} clients at once")
        first: dict[str, Holding] = {}
        grown: list[str] = []
        for minute in range(1, minutes + 1):
            with killer.at_work():
                load.run(60 - 2 * IDLE_S)
            for group in groups:
                load.wrong += group.take_wrong()
            with ThreadPoolExecutor(len(proxies)) as pool:
                list(pool.map(Watched.rest, proxies.values()))
            held = {name: proxy.hold() for name, proxy in proxies.items()}  # by now each has given its memory back
            print(
                f"minute {minute:3}: {sum(load.sessions.values()):6} sessions {load.requests:7} answers "
                f"{len(load.wrong)} wrong | " + " | ".join(f"{name}: {now}" for name, now in held.items()),
                flush=True,
            )
            first = first or held
            grown = [name for name, now in held.items() if now.exceeds(first[name], spare.get(name, 0))]
        print("sessions:", ", ".join(f"{count} {front}" for front, count in sorted(load.sessions.items())))
        for group in groups:
            print(f"{group.name}:", ", ".join(f"{count} {what}" for what, count in sorted(group.seen.items())))
    for line in sorted(set(load.wrong))[:20]:
        print("wrong:", line)
    for name in grown:
        print(f"grown: {name}: {first[name]} -> {held[name]}")
    return 1 if load.wrong or grown or missed else 0


def roll_alone() -> int:
    """Run the rolling restarts, as large as they can be."""
    with tempfile.TemporaryDirectory() as folder:
        missed = 0
        for verdict in run_rolls(Path(folder), 1.0):
            missed += bool(verdict.failed)
            print(verdict, flush=True)
    return 1 if missed else 0


def secrets_of(name: str) -> tuple[str, ...]:
    """Give what clients show a proxy."""
    return tuple(SECRETS.values()) if name == "of persons" else ("",)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("minutes", nargs="?", default="15", help="how long, or `roll` for rolling restarts alone")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    heed_signals()
    return roll_alone() if args.minutes == "roll" else soak(int(args.minutes), args.seed)


if __name__ == "__main__":
    sys.exit(main())
