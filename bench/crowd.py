"""Many sessions at one shared server, over HTTP: what each holds of the whole process, and how much they get through.

Compared with the same clients at a bare server: over HTTP, for clients cannot share a pipe.
"""

from __future__ import annotations

import os
import selectors
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep

from bench.peers import HttpPeer, started
from bench.proxy import LISTEN, NEW_REVISION, PROXY, REQUESTS, server_command

SESSIONS = 500
FEW, MANY = 10, 2000
CALLS = 10
"""How many calls of each session a round takes."""

SHARED = (*PROXY, *LISTEN, "--scope", "shared", "--max-sessions", "10000", "--", *server_command("s", NEW_REVISION))


def measure_crowd(rounds: int) -> None:
    """Measure and print."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(f"  a whole proxy, over HTTP        {resident_kb():7.1f} KB a session")
    with ExitStack() as stack:
        bare = stack.enter_context(started(server_command("h", NEW_REVISION)))
        behind = stack.enter_context(started(SHARED))
        direct, shared = (stack.enter_context(Crowd(process.pid, port)) for process, port in (bare, behind))
        pairs = [(direct.measure(), shared.measure()) for _ in range(rounds)]
    for what, field in (("calls a second", "calls_per_s"), ("calls a second of CPU", "calls_per_cpu_s")):
        rates = [(getattr(one, field), getattr(other, field)) for one, other in pairs]
        ratio = median(other / one for one, other in rates)
        direct_rate, shared_rate = (median(pair[place] for pair in rates) for place in (0, 1))
        print(f"  {what:<30}  {shared_rate:7.0f} shared, {direct_rate:.0f} direct: {ratio:.2f} x")


def measure_reached(rounds: int) -> None:
    """Measure what a call costs the proxy before a server behind a URL, with few sessions open and with many."""
    print("\nA call of the sessions in turn, behind --url")
    with started(server_command("h", NEW_REVISION)) as (_, port), ExitStack() as stack:
        many_of, few_of = (stack.enter_context(_sessions_at(port, number)) for number in (MANY, FEW))
        costs = [(_cost_us(*few_of), _cost_us(*many_of)) for _ in range(min(rounds, 5))]
    few, many = (median(cost[place] for cost in costs) for place in (0, 1))
    print(f"  CPU of the proxy, {FEW} and {MANY} sessions   {few:.0f} µs, {many:.0f} µs: {many / few:.2f} x")


@contextmanager
def _sessions_at(port: int, sessions: int) -> Iterator[tuple[int, list[HttpPeer]]]:
    """Give a proxy before a URL, with so many sessions open."""
    command = (*PROXY, *LISTEN, "--max-sessions", "10000", "--url", f"http://127.0.0.1:{port}/mcp")
    with started(command) as (process, front):
        peers: list[HttpPeer] = []
        for _ in range(sessions):
            peer = HttpPeer(front, NEW_REVISION)
            if peers:
                peer.share_connection(peers[0])
            peer.open()
            peers.append(peer)
        yield process.pid, peers
        peers[0].close()


def _cost_us(pid: int, peers: list[HttpPeer]) -> float:
    """Give the CPU time of a call, made in turn, after most sessions have been silent for 5 s."""
    method, params, _ = REQUESTS["call"]
    for _ in range(5):
        sleep(1)
        peers[0].p50_us(method, params, 1)  # or the proxy closes the connection
    before = busy_s(pid)
    for number in range(MANY):
        peers[number % len(peers)].p50_us(method, params, 1)
    return (busy_s(pid) - before) / MANY * 1e6


def resident_kb() -> float:
    """Give how much a proxy grows by a session that is open and has called once; its connection is closed again."""
    with started(SHARED) as (process, port):
        open_and_call(port, SESSIONS // 5)  # what is made once is not what a session costs
        before = resident(process.pid)
        open_and_call(port, SESSIONS)
        return (resident(process.pid) - before) / SESSIONS


def open_and_call(port: int, sessions: int) -> None:
    """Open sessions, one after another."""
    for _ in range(sessions):
        peer = HttpPeer(port, NEW_REVISION)
        peer.open()
        method, params, _ = REQUESTS["call"]
        peer.p50_us(method, params, 1)
        peer.close()


def resident(pid: int) -> int:
    """Give the KB of memory that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a crowd got through in one round.

    Attributes:
        calls_per_s: By the clock; whoever else is busy on this CPU shows.
        calls_per_cpu_s: By the CPU time of clients, proxy and server together: the same on a CPU of one's own.
    """

    calls_per_s: float
    calls_per_cpu_s: float


class Crowd:
    """Clients that all call at once, each over a connection of its own.

    Args:
        pid: Of whom they call; it and its children are watched.
        port: Where they call.
        sessions: How many they are.
    """

    def __init__(self, pid: int, port: int, sessions: int = SESSIONS) -> None:
        self._pid = pid
        self._peers = [HttpPeer(port, NEW_REVISION) for _ in range(sessions)]
        self._selector = selectors.DefaultSelector()
        for peer in self._peers:
            peer.open()

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for peer in self._peers:
            peer.close()

    def measure(self) -> Throughput:
        """Let everybody call ten times, each with one call under way at any time."""
        method, params, _ = REQUESTS["call"]
        began, busy = perf_counter(), process_time() + busy_s(self._pid)
        for peer in self._peers:
            rest = [peer.request(method, params) for _ in range(CALLS)]
            self._selector.register(peer.fileno(), selectors.EVENT_READ, self._caller(peer, rest))
        while self._selector.get_map():
            for key, _ in self._selector.select():
                key.data()
        calls = len(self._peers) * CALLS
        return Throughput(calls / (perf_counter() - began), calls / (process_time() + busy_s(self._pid) - busy))

    def _caller(self, peer: HttpPeer, frames: list[bytes]) -> Callable[[], None]:
        peer.send(frames.pop())

        def proceed() -> None:
            answer = peer.receive()
            assert b'"result"' in answer, answer
            if frames:
                peer.send(frames.pop())
            else:
                self._selector.unregister(peer.fileno())

        return proceed


def busy_s(pid: int) -> float:
    """Give the CPU time that a process, its threads and its children have taken; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(busy_s, children_of(pid)))


def children_of(pid: int) -> list[int]:
    """Give the processes that a process has started; none where the system does not say."""
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()))
    except OSError:
        return []
