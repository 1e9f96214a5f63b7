"""What `dragoman proxy` adds between and within the eras: the rows that `proxy` does not have, over pipes and HTTP.

`stateless` is two that speak for themselves, `to stateless` a client with a handshake at a server without, `to session`
the reverse. Each is measured in the same rounds as its measure: the first beside two of one revision with a handshake,
where frames pass as bytes as well; the others beside a pair of such revisions whose frames are translated. What counts
is what is added, divided by what is added there. Calls in the middle of which the server asks, and such that run as
tasks, have rows of their own: `asking`.
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
from bench.peers import HttpPeer, Peer, StdioPeer, listening, started
from bench.proxy import (
    CLIENT_REVISION,
    FLOORS,
    LISTEN,
    NEW_REVISION,
    OLD_HTTP_REVISION,
    PROXY,
    REQUESTS,
    SAME,
    TOPOLOGIES,
    TRANSLATING,
    Candidates,
    compare,
    compare_rates,
    connect_directly,
    connect_through_proxy,
    server_command,
)
from bench.server import WITHOUT_A_HANDSHAKE

META = "io.modelcontextprotocol/"
KINDS = ("call", "list")
CELLS = {
    "stateless": (WITHOUT_A_HANDSHAKE, WITHOUT_A_HANDSHAKE, SAME),
    "to stateless": (NEW_REVISION, WITHOUT_A_HANDSHAKE, TRANSLATING),
    "to session": (WITHOUT_A_HANDSHAKE, NEW_REVISION, TRANSLATING),
}
"""Cell → what the client speaks, what the server speaks, and which measure it is held against."""

MEASURES = {SAME: (NEW_REVISION, NEW_REVISION), TRANSLATING: (CLIENT_REVISION, NEW_REVISION)}


class Stateless(Peer):
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


class StatelessPeer(Stateless, StdioPeer):
    """Such a client of a process."""


class StatelessHttpPeer(Stateless, HttpPeer):
    """Such a client of `/mcp` on a port of this machine."""

    def open(self) -> None:
        """Look at what there is; heads say what bodies say."""
        self._is_open = True
        self._head += b"MCP-Protocol-Version: %s\r\n" % self._revision.encode()
        self._bare = self._head
        super().open()

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        """Give the frame of the next request; its head is that of the next one that is sent."""
        name = b"Mcp-Name: %s\r\n" % params["name"].encode() if "name" in params else b""
        self._head = b"%sMcp-Method: %s\r\n%s" % (self._bare, method.encode(), name)
        return super().request(method, params)


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
    print("\ndragoman proxy between and within the eras: p50 of one request after another")
    for cell, (client, server, measure) in CELLS.items():
        with ExitStack() as stack:
            pair, measured = _pair(stack, client, server), _pair(stack, *MEASURES[measure])
            for kind in KINDS:
                _compare(f"{cell}  {kind}", measure, (*pair, *measured), kind, rounds)
    for topology in ("hs", "hh"):
        with ExitStack() as stack:
            peers = (
                connect_stateless(stack, "hh", ()),
                connect_stateless(stack, topology, ("--server-revision", WITHOUT_A_HANDSHAKE)),
                connect_directly(stack, topology, OLD_HTTP_REVISION),
                connect_through_proxy(stack, topology, OLD_HTTP_REVISION, OLD_HTTP_REVISION),
            )
            for kind in ("call", "1m"):
                _compare(f"stateless  {kind}  {topology}", SAME, peers, kind, rounds)
    _measure_newest(rounds)
    _measure_sse(rounds)
    measure_asking(rounds, lambda stack, *about: stack.enter_context(connected(*about)))


def _measure_newest(rounds: int) -> None:
    """Measure what is added between two that speak for themselves, over each link, one at a time and many at once."""
    for topology in TOPOLOGIES:
        link, depth = ("s", "pump") if topology == "ss" else ("h", FLOORS[topology][SAME])
        listen = LISTEN if topology[0] == "h" else ()
        with ExitStack() as stack:
            target, behind = server_command("s", WITHOUT_A_HANDSHAKE), ("--", *server_command("s", WITHOUT_A_HANDSHAKE))
            if topology[1] == "h":
                port = stack.enter_context(listening(server_command("h", WITHOUT_A_HANDSHAKE)))
                target, behind = (str(port),), ("--url", f"http://127.0.0.1:{port}/mcp")
            proxy = (*PROXY, *listen, "--server-revision", WITHOUT_A_HANDSHAKE, *behind)
            candidates = Candidates(
                _speak(stack, link, server_command(link, WITHOUT_A_HANDSHAKE)),
                _speak(stack, topology[0], (sys.executable, "-m", "bench.floor", topology, depth, *target)),
                _speak(stack, topology[0], proxy),
            )
            for kind in REQUESTS:
                compare(f"{topology}  without a handshake  {kind:<4}", candidates, kind, rounds)
            compare_rates(f"{topology}  without a handshake  call", candidates, rounds)


def _measure_sse(rounds: int) -> None:
    """Measure what an answer adds that a server over HTTP gives as an event, beside one that it gives as JSON."""
    with ExitStack() as stack:
        direct = connect_directly(stack, "sh", NEW_REVISION)
        proxies = []
        for more in (("sse",), ()):
            port = stack.enter_context(listening((*server_command("h", NEW_REVISION), *more)))
            command = (*PROXY, "--server-revision", NEW_REVISION, "--url", f"http://127.0.0.1:{port}/mcp")
            proxies.append(stack.enter_context(connected(command, NEW_REVISION)))
        for kind in KINDS:
            _compare(f"answer by SSE  {kind}", "by JSON", (direct, proxies[0], direct, proxies[1]), kind, rounds)


def connect_stateless(stack: ExitStack, topology: str, options: tuple[str, ...]) -> Peer:
    """Be a client over HTTP: of a bare server, or with options for a proxy, of one before a server of its own."""
    command = server_command("h", WITHOUT_A_HANDSHAKE)
    if options:
        behind = ("--", *server_command("s", WITHOUT_A_HANDSHAKE))
        if topology[1] == "h":
            behind = ("--url", f"http://127.0.0.1:{stack.enter_context(listening(command))}/mcp")
        command = (*PROXY, *LISTEN, *options, *behind)
    return _speak(stack, "h", command)


def _speak(stack: ExitStack, front: str, command: tuple[str, ...]) -> Peer:
    """Start a process and be a client of it that speaks for itself, over its pipes or its port."""
    if front == "s":
        return stack.enter_context(connected(command, WITHOUT_A_HANDSHAKE))
    process, port = stack.enter_context(started(command))
    peer = StatelessHttpPeer(port, WITHOUT_A_HANDSHAKE, process.pid)
    peer.open()
    return peer


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
