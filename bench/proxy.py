"""What `dragoman proxy` adds: the same requests to a bare server and to one behind the proxy, in turns.

Topologies are named for the front, then the upstream: s is stdio, h Streamable HTTP. Wherever a side is HTTP, the bare
server that is compared with is reached over HTTP too.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.peers import Peer, listening, over_http, over_stdio

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

PROXY = (sys.executable, "-m", "dragoman", "proxy", "--log-level", "error")
LISTEN = ("--listen", "http://127.0.0.1:0")
SERVERS = {"s": "bench.server", "h": "bench.http_server"}


def measure_proxy(rounds: int) -> None:
    """Measure and print sequential latency, direct and through the proxy, all on one CPU where the system lets us."""
    if sys.platform == "linux":
        # Unpinned, who wakes up where changes small figures several times over.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("\ndragoman proxy: p50 of one request after another, all on one CPU")
    for topology in TOPOLOGIES:
        old = CLIENT_REVISION if topology == "ss" else OLD_HTTP_REVISION
        for words, revision in {"same revision": old, "translating": NEW_REVISION}.items():
            with ExitStack() as stack:
                direct = connect_directly(stack, topology, revision)
                proxied = connect_through_proxy(stack, topology, old, revision)
                for kind in REQUESTS:
                    compare(f"{topology}  {words:<13}  {kind:<4}", direct, proxied, kind, rounds)


def connect_directly(stack: ExitStack, topology: str, revision: str) -> Peer:
    """Open a session with a bare server."""
    if topology == "ss":
        return stack.enter_context(over_stdio(server_command("s", revision), revision))
    return stack.enter_context(over_http(stack.enter_context(listening(server_command("h", revision))), revision))


def connect_through_proxy(stack: ExitStack, topology: str, client_revision: str, revision: str) -> Peer:
    """Open a session with the proxy before a server of its own."""
    front, upstream = topology[0], topology[1]
    behind = ("--", *server_command("s", revision))
    if upstream == "h":
        port = stack.enter_context(listening(server_command("h", revision)))
        behind = ("--url", f"http://127.0.0.1:{port}/mcp")
    behind = ("--server-revision", revision, *behind)
    if front == "s":
        return stack.enter_context(over_stdio((*PROXY, *behind), client_revision))
    port = stack.enter_context(listening((*PROXY, *LISTEN, *behind)))
    return stack.enter_context(over_http(port, client_revision))


def server_command(transport: str, revision: str) -> tuple[str, ...]:
    """Give the command of a bare server."""
    return sys.executable, "-m", SERVERS[transport], revision


def compare(title: str, direct: Peer, proxied: Peer, kind: str, rounds: int) -> None:
    """Measure one kind of request in turns, and print the line."""
    method, params, calls = REQUESTS[kind]
    for peer in (direct, proxied):
        peer.p50_us(method, params, calls)  # what is done once only
    times = [(direct.p50_us(method, params, calls), proxied.p50_us(method, params, calls)) for _ in range(rounds)]
    bare, behind = median(pair[0] for pair in times), median(pair[1] for pair in times)
    ratio = median(pair[1] / pair[0] for pair in times)
    print(f"  {title}  direct {bare:>8.1f} µs  proxy {behind:>8.1f} µs  {ratio:>6.2f} x", flush=True)
