"""What `dragoman proxy` adds: the same requests to a bare server and to one behind the proxy, in turns.

Topologies are named for the front, then the upstream: s is stdio, h Streamable HTTP. Wherever a side is HTTP, the bare
server that is compared with is reached over HTTP too. How many times slower than no proxy depends on how slow server
and client are; so the figure to look at is what the proxy adds, divided by what the floor adds: the least that one
could write in Python (`floor`), measured in the same rounds.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.flight import IN_FLIGHT, cpu_us, measure_rate
from bench.peers import Peer, listening, over_http, over_stdio, started

CLIENT_REVISION = "2024-11-05"
OLD_HTTP_REVISION = "2025-03-26"
NEW_REVISION = "2025-11-25"
TOPOLOGIES = ("ss", "hs", "sh", "hh")
REQUESTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "call": ("tools/call", {"name": "tool_1", "arguments": {"text": "x" * 200}}, 200),
    "list": ("tools/list", {}, 50),
    "1m": ("tools/call", {"name": "tool_1", "arguments": {"text": "x" * 1_000_000}}, 5),
}
"""Kind → method, params, and how many requests a round."""

SAME, TRANSLATING = "same revision", "translating"
CROWD_CALLS = 10 * IN_FLIGHT
"""How many calls a round takes where many are under way."""

PROXY = (sys.executable, "-m", "dragoman", "proxy", "--log-level", "error")
LISTEN = ("--listen", "http://127.0.0.1:0")
SERVERS = {"s": "bench.server", "h": "bench.http_server"}


FLOORS = {
    "ss": {SAME: "pump", TRANSLATING: "parse"},
    "hs": {SAME: "peek", TRANSLATING: "parse"},
    "sh": {SAME: "parse", TRANSLATING: "parse"},
    "hh": {SAME: "parse", TRANSLATING: "parse"},
}
"""Topology → what the floor does to frames; see `floor`."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time that a call takes, one after the other, in the floor and in the proxy."""

    topology: str
    words: str
    floor_us: float
    proxy_us: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """Clients with an open session each: of a bare server, and of one behind the floor and behind the proxy."""

    direct: Peer
    floor: Peer
    proxy: Peer

    def each(self) -> tuple[Peer, Peer, Peer]:
        """Give all three, in the order in which they take turns."""
        return self.direct, self.floor, self.proxy


def measure_proxy(rounds: int) -> list[Cost]:
    """Measure and print what the proxy adds, beside what the floor adds, all on one CPU where the system lets us."""
    costs = []
    if sys.platform == "linux":
        # Unpinned, who wakes up where changes small figures several times over.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"\ndragoman proxy: p50 of one request after another; {IN_FLIGHT} at once; all on one CPU")
    for topology in TOPOLOGIES:
        old = CLIENT_REVISION if topology == "ss" else OLD_HTTP_REVISION
        for words, revision in {SAME: old, TRANSLATING: NEW_REVISION}.items():
            with ExitStack() as stack:
                candidates = Candidates(
                    connect_directly(stack, topology, revision),
                    connect_through_floor(stack, topology, FLOORS[topology][words], revision),
                    connect_through_proxy(stack, topology, old, revision),
                )
                for kind in REQUESTS:
                    compare(f"{topology}  {words:<13}  {kind:<4}", candidates, kind, rounds)
                single = compare_rates(f"{topology}  {words:<13}  call", candidates, rounds)
                costs.append(Cost(topology, words, *single))
    return costs


def connect_directly(stack: ExitStack, topology: str, revision: str) -> Peer:
    """Open a session with a bare server."""
    transport = "s" if topology == "ss" else "h"
    return connect(stack, transport, server_command(transport, revision), revision)


def connect_through_floor(stack: ExitStack, topology: str, depth: str, revision: str) -> Peer:
    """Open a session with the floor before a server of its own."""
    target = server_command("s", revision)
    if topology[1] == "h":
        target = (str(stack.enter_context(listening(server_command("h", revision)))),)
    command = (sys.executable, "-m", "bench.floor", topology, depth, *target)
    return connect(stack, topology[0], command, revision)


def connect_through_proxy(stack: ExitStack, topology: str, client_revision: str, revision: str) -> Peer:
    """Open a session with the proxy before a server of its own."""
    behind = ("--", *server_command("s", revision))
    if topology[1] == "h":
        port = stack.enter_context(listening(server_command("h", revision)))
        behind = ("--url", f"http://127.0.0.1:{port}/mcp")
    listen = LISTEN if topology[0] == "h" else ()
    return connect(stack, topology[0], (*PROXY, *listen, "--server-revision", revision, *behind), client_revision)


def connect(stack: ExitStack, front: str, command: tuple[str, ...], revision: str) -> Peer:
    """Start what is measured and open a session with it, over its pipes or its port."""
    if front == "s":
        return stack.enter_context(over_stdio(command, revision))
    process, port = stack.enter_context(started(command))
    return stack.enter_context(over_http(port, revision, process.pid))


def server_command(transport: str, revision: str) -> tuple[str, ...]:
    """Give the command of a bare server."""
    return sys.executable, "-m", SERVERS[transport], revision


def compare(title: str, candidates: Candidates, kind: str, rounds: int) -> None:
    """Measure one kind of request in turns, and print the line."""
    method, params, calls = REQUESTS[kind]
    for peer in candidates.each():
        peer.p50_us(method, params, calls)  # what is done once only
    times = [[peer.p50_us(method, params, calls) for peer in candidates.each()] for _ in range(rounds)]
    bare, floor, proxy = (median(column) for column in zip(*times, strict=True))
    ratio = median(one[2] / one[0] for one in times)
    print(
        f"  {title}  direct {bare:>8.1f} µs  floor +{floor - bare:>7.1f}  proxy +{proxy - bare:>7.1f}"
        f"  added ÷ floor's {(proxy - bare) / (floor - bare):>5.2f}  proxy ÷ direct {ratio:>6.2f}",
        flush=True,
    )


def compare_rates(title: str, candidates: Candidates, rounds: int) -> tuple[float, float]:
    """Measure calls a second and CPU a call in turns, print the line, and return the latter of floor and proxy."""
    method, params, calls = REQUESTS["call"]
    single = {}
    for peer in (candidates.floor, candidates.proxy):
        before = cpu_us(peer.pid)
        for _ in range(5):
            peer.p50_us(method, params, calls)
        single[peer] = (cpu_us(peer.pid) - before) / (5 * calls)
    crowd = [[measure_rate(peer, method, params, CROWD_CALLS) for peer in candidates.each()] for _ in range(rounds)]
    rates = [median(round_[place].calls_per_s for round_ in crowd) for place in range(3)]
    cpu = [median(round_[place].cpu_us for round_ in crowd) for place in range(3)]
    print(
        f"  {title} x {IN_FLIGHT}  direct {rates[0]:>8.0f} /s  floor {rates[1] / rates[0]:.2f}  proxy"
        f" {rates[2] / rates[0]:.2f}  CPU a call, alone / in the crowd: floor {single[candidates.floor]:.0f} /"
        f" {cpu[1]:.0f} µs, proxy {single[candidates.proxy]:.0f} / {cpu[2]:.0f} µs",
        flush=True,
    )
    return single[candidates.floor], single[candidates.proxy]
