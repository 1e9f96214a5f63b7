"""Many requests at once: how many a second, and what each costs the process in the middle.

Lives here: clients that keep 64 requests under way, over the pipes of a process or over as many connections of one
session. Called by `proxy`.
"""

from __future__ import annotations

import selectors
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from bench.peers import HttpPeer, Peer, StdioPeer

IN_FLIGHT: Final = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """What came of one round.

    Attributes:
        calls_per_s: By the clock, everybody on one CPU.
        cpu_us: Time that the process in the middle took for a call, in microseconds; 0 where the system does not say.
    """

    calls_per_s: float
    cpu_us: float


def measure_rate(peer: Peer, method: str, params: dict[str, Any], calls: int) -> Rate:
    """Send so many requests, with 64 of them under way as long as there are any.

    Args:
        peer: A client whose session is open; over HTTP it gets connections beside its own, which stay.
        method: What is asked.
        params: The same each time.
        calls: How many, a multiple of 64.
    """
    frames = [peer.request(method, params) for _ in range(calls)]
    before, began = cpu_us(peer.pid), perf_counter()
    if isinstance(peer, StdioPeer):
        _through_pipes(peer, frames)
    else:
        assert isinstance(peer, HttpPeer)
        _over_connections(peer, frames)
    return Rate(calls / (perf_counter() - began), (cpu_us(peer.pid) - before) / calls)


def cpu_us(pid: int) -> float:
    """Give the CPU time of a process with all its threads, without its children, in microseconds."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
        return sum(int(task.read_text("ascii").split()[0]) for task in tasks) / 1000
    except OSError:
        return 0.0


def _through_pipes(peer: StdioPeer, frames: list[bytes]) -> None:
    rest = iter(frames)
    peer.write(b"".join(frame + b"\n" for frame, _ in zip(rest, range(IN_FLIGHT), strict=False)))
    missing, sent = len(frames), IN_FLIGHT
    while missing:
        come = peer.read().count(b"\n")
        missing -= come
        if sent < len(frames):
            peer.write(b"".join(frame + b"\n" for frame in frames[sent : sent + come]))
            sent += come


def _over_connections(peer: HttpPeer, frames: list[bytes]) -> None:
    rest = list(frames)
    missing = len(frames)
    with selectors.DefaultSelector() as selector:
        for connection in peer.connections(IN_FLIGHT):
            connection.send(rest.pop())
            selector.register(connection.fileno(), selectors.EVENT_READ, connection)
        while missing:
            for key, _ in selector.select(timeout=30):
                key.data.receive()
                missing -= 1
                if rest:
                    key.data.send(rest.pop())
