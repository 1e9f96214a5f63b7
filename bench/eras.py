"""What `dragoman proxy` adds between and within the eras, over pipes: the rows that `proxy` does not have.

MM is two that speak for themselves, LM a client with a handshake at a server without, ML the reverse. Each is measured
in the same rounds as its measure: MM beside two of one revision with a handshake, where frames pass as bytes as well;
LM and ML beside a pair of such revisions whose frames are translated. What counts is what is added, divided by what is
added there. Calls in the middle of which the server asks, and such that run as tasks, have rows of their own: `asking`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from bench.asking import measure_asking
from bench.peers import Peer, StdioPeer
from bench.proxy import CLIENT_REVISION, NEW_REVISION, PROXY, REQUESTS, SAME, TRANSLATING, server_command
from bench.server import WITHOUT_A_HANDSHAKE

META = "io.modelcontextprotocol/"
KINDS = ("call", "list")
CELLS = {
    "MM": (WITHOUT_A_HANDSHAKE, WITHOUT_A_HANDSHAKE, SAME),
    "LM": (NEW_REVISION, WITHOUT_A_HANDSHAKE, TRANSLATING),
    "ML": (WITHOUT_A_HANDSHAKE, NEW_REVISION, TRANSLATING),
}
"""Cell → what the client speaks, what the server speaks, and which measure it is held against."""

MEASURES = {SAME: (NEW_REVISION, NEW_REVISION), TRANSLATING: (CLIENT_REVISION, NEW_REVISION)}


class StatelessPeer(StdioPeer):
    """A client whose requests each speak for themselves."""

    def open(self) -> None:
        """Look at what there is."""
        self.exchange(self.request("server/discover", {}))

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        """Give the frame of the next request, with what it says of its client."""
        about = {
            META + "protocolVersion": self._revision,
            META + "clientInfo": {"name": "bench", "version": "1"},
            META + "clientCapabilities": self.capabilities,
        }
        return super().request(method, {**params, "_meta": about})


@contextmanager
def connected(
    command: tuple[str, ...], revision: str, capabilities: dict[str, Any] | None = None
) -> Iterator[StdioPeer]:
    """Start a process and be its client; end it afterwards."""
    make = StdioPeer if revision < WITHOUT_A_HANDSHAKE else StatelessPeer
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        peer = make(process, revision)
        peer.capabilities = capabilities or {}
        peer.open()
        yield peer
        assert process.stdin
        process.stdin.close()


def measure_eras(rounds: int) -> None:
    """Measure and print, all on one CPU where the system lets us."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("\ndragoman proxy between and within the eras, over pipes: p50 of one request after another")
    for cell, (client, server, measure) in CELLS.items():
        with ExitStack() as stack:
            pair, measured = _pair(stack, client, server), _pair(stack, *MEASURES[measure])
            for kind in KINDS:
                _compare(f"{cell}  {kind}", measure, (*pair, *measured), kind, rounds)
    measure_asking(rounds, lambda stack, *about: stack.enter_context(connected(*about)))


def _pair(stack: ExitStack, client: str, server: str) -> tuple[Peer, Peer]:
    """Open a session with a bare server, and one through the proxy."""
    direct = stack.enter_context(connected(server_command("s", server), server))
    behind = (*PROXY, "--server-revision", server, "--", *server_command("s", server))
    return direct, stack.enter_context(connected(behind, client))


def _compare(title: str, measure: str, peers: tuple[Peer, ...], kind: str, rounds: int) -> None:
    """Measure one kind of request in turns, and print the line."""
    method, params, calls = REQUESTS[kind]
    for peer in peers:
        peer.p50_us(method, params, calls)  # what is done once only
    times = [[peer.p50_us(method, params, calls) for peer in peers] for _ in range(rounds)]
    bare, proxy, measured_bare, measured_proxy = (median(column) for column in zip(*times, strict=True))
    added, measured = proxy - bare, measured_proxy - measured_bare
    print(
        f"  {title}  direct {bare:>7.1f} µs  proxy +{added:>6.1f}  {measure} +{measured:>6.1f}"
        f"  added ÷ added there {added / measured:>5.2f}",
        flush=True,
    )
