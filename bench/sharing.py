"""What a client session costs at a server that many share: bytes held, and time a call."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.crowd import measure_crowd, measure_reached
from dragoman.core.commands import Send
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame
from dragoman.core.exact_json import encode_line
from dragoman.core.switch.shared.switch import Shared
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig, wiring_of
from dragoman.transports.lines import LineFramer
from dragoman.transports.memory import MemoryTransport, connect_pair

SESSIONS = 500
REVISION = "2025-11-25"
_INFO = {"name": "bench", "version": "1"}
INITIALIZE = {"protocolVersion": REVISION, "capabilities": {"roots": {}, "elicitation": {}}, "clientInfo": _INFO}
FRAMER = LineFramer()
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
CALL = encode_line(
    {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t", "arguments": {"text": "x" * 200}}}
)


def measure_sharing(rounds: int) -> None:
    """Measure and print."""
    print(f"\n{SESSIONS} sessions on one shared server")
    print(f"  edges and switch alone, open    {held(open_clients):7.1f} KB a session")
    print(f"  the same, with a call each      {held(open_clients_with_calls):7.1f} KB a session")
    print(f"  with proxy and front transport  {asyncio.run(held_by_proxies()):7.1f} KB a session")
    took_us = median(call_us() for _ in range(rounds))
    print(f"  a call of 200 bytes and its answer through edges and switch: {took_us:.1f} µs")
    measure_crowd(rounds)
    measure_reached(rounds)


def held(prepare: Callable[[], object]) -> float:
    """Give the KB a session that something holds on to."""
    prepare()  # what is made once is not what a session costs
    gc.collect()
    tracemalloc.start()
    kept = prepare()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size / SESSIONS / 1024


def open_clients() -> tuple[Shared, list[FrontEdge]]:
    """Let every session open, subscribe to a resource of its own and to a common one."""
    switch = Shared(wiring_of(ProxyConfig()))
    fronts = [switch.join() for _ in range(SESSIONS)]
    for number, front in enumerate(fronts):
        for frame in _said(switch, front, _request(0, "initialize", INITIALIZE)):
            _said(switch, switch.upstream, _answer(frame.raw, {**INITIALIZE, "serverInfo": _INFO}))
        _said(switch, front, READY)
        for uri in (f"file:///home/{number}", "file:///common"):
            for frame in _said(switch, front, _request(uri, "resources/subscribe", {"uri": uri})):
                _said(switch, switch.upstream, _answer(frame.raw, {}))
    return switch, fronts


def open_clients_with_calls() -> tuple[Shared, list[FrontEdge]]:
    """Let every session also have a call under way."""
    switch, fronts = open_clients()
    for front in fronts:
        _said(switch, front, CALL)
    return switch, fronts


def _said(switch: Shared, edge: FrontEdge | UpstreamEdge, data: bytes) -> list[Frame]:
    """Let a peer speak; give what the server hears."""
    for frame in FRAMER.feed(data):
        edge.take(frame)
    sends = [command for command in switch.outbox.take_all() if isinstance(command, Send)]
    return [frame for send in sends if send.edge is switch.upstream for frame in send.frames]


async def held_by_proxies() -> float:
    """Give the KB a session of everything in this process: edges, switch, host, front."""
    sizes = []
    for _ in range(2):
        gc.collect()
        tracemalloc.start()
        runs, pool, kept = await _open_proxies()
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0] / SESSIONS / 1024)
        tracemalloc.stop()
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        await pool.close()
        del kept
    return sizes[-1]


def call_us() -> float:
    """Give the time that one call and its answer take in edges and switch, in microseconds."""
    switch, fronts = open_clients()
    answer = {"content": [{"type": "text", "text": "x" * 200}]}
    began = time.perf_counter()
    for front in fronts:
        _said(switch, front, CALL)
    asked = time.perf_counter() - began
    lines = []
    for front in fronts:
        [frame] = _said(switch, front, CALL.replace(b'"id":7', b'"id":8'))
        lines.append(_answer(frame.raw, answer))
    began = time.perf_counter()
    for line in lines:
        _said(switch, switch.upstream, line)
    return (asked + time.perf_counter() - began) / SESSIONS * 1e6


async def _open_proxies() -> tuple[list[asyncio.Task[Any]], UpstreamPool, list[object]]:
    server = _Server()
    pool = UpstreamPool(Scope.SHARED, server.connect)
    runs: list[asyncio.Task[Any]] = []
    kept: list[object] = [server]
    for _ in range(SESSIONS):
        front, client = connect_pair()
        client.start_raw(_Deaf())
        proxy = pool.proxy(ProxyConfig(), front)
        runs.append(asyncio.create_task(proxy.run()))
        client.write(_request(0, "initialize", INITIALIZE) + READY)
        kept += [client, proxy]
    for _ in range(20):
        await asyncio.sleep(0)
    return runs, pool, kept


class _Deaf:
    """Takes everything and keeps nothing."""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""

    def ended(self, reason: str) -> None:
        """The peer says no more."""

    def broken(self, reason: str) -> None:
        """The peer does not read."""

    def pause_writing(self) -> None:
        """Hold back."""

    def resume_writing(self) -> None:
        """Go on."""


class _Server(_Deaf):
    """Answers `initialize`."""

    def connect(self) -> MemoryTransport:
        near, self.far = connect_pair()
        self.far.start_raw(self)
        return near

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        for line in data.splitlines():
            if b'"initialize"' in line:
                self.far.write(_answer(line, {**INITIALIZE, "serverInfo": _INFO}))


def _request(key: Any, method: str, params: dict[str, Any]) -> bytes:
    return encode_line({"jsonrpc": "2.0", "id": key, "method": method, "params": params})


def _answer(line: bytes, result: dict[str, Any]) -> bytes:
    from dragoman.core.exact_json import decode

    return encode_line({"jsonrpc": "2.0", "id": decode(line)["id"], "result": result})
