"""What a client session costs at a server that many share: bytes held, and time a call."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.crowd import measure_crowd
from dragoman.core.exact_json import encode_line
from dragoman.core.sharing.calls import Member
from dragoman.core.sharing.hub import Hub
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.lines import LineFramer
from dragoman.transports.memory import MemoryTransport, connect_pair
from dragoman.transports.pool import Scope, UpstreamPool

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
    print(f"  core.sharing alone, open        {held(open_members):7.1f} KB a session")
    print(f"  the same, with a call each      {held(open_members_with_calls):7.1f} KB a session")
    print(f"  with proxy and front transport  {asyncio.run(held_by_proxies()):7.1f} KB a session")
    print(
        f"  a call of 200 bytes and its answer through core.sharing: {median(call_us() for _ in range(rounds)):.1f} µs"
    )
    measure_crowd(rounds)


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


def open_members() -> tuple[Hub, list[Member]]:
    """Let every session open, subscribe to a resource of its own and to a common one."""
    hub = Hub()
    members = [hub.join() for _ in range(SESSIONS)]
    for number, member in enumerate(members):
        for to, frame in hub.receive(member, FRAMER.feed(_request(0, "initialize", INITIALIZE)), 0.0):
            if to is None:
                answer = _answer(frame.raw, {**INITIALIZE, "serverInfo": _INFO})
                hub.receive_server(FRAMER.feed(answer), 0.0)
        hub.receive(member, FRAMER.feed(READY), 0.0)
        for uri in (f"file:///home/{number}", "file:///common"):
            for to, frame in hub.receive(member, FRAMER.feed(_request(uri, "resources/subscribe", {"uri": uri})), 0.0):
                if to is None:
                    hub.receive_server(FRAMER.feed(_answer(frame.raw, {})), 0.0)
    return hub, members


def open_members_with_calls() -> tuple[Hub, list[Member]]:
    """Let every session also have a call under way."""
    hub, members = open_members()
    for member in members:
        hub.receive(member, FRAMER.feed(CALL), 0.0)
    return hub, members


async def held_by_proxies() -> float:
    """Give the KB a session of everything in this process: proxy, virtual transport, hub, front."""
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
    """Give the time that one call and its answer take in the hub, in microseconds."""
    hub, members = open_members()
    answer = {"content": [{"type": "text", "text": "x" * 200}]}
    began = time.perf_counter()
    for member in members:
        [(_, frame)] = hub.receive(member, FRAMER.feed(CALL), 0.0)
    asked = time.perf_counter() - began
    lines = []
    for member in members:
        [(_, frame)] = hub.receive(member, FRAMER.feed(CALL.replace(b'"id":7', b'"id":8')), 0.0)
        lines.append(_answer(frame.raw, answer))
    began = time.perf_counter()
    for line in lines:
        hub.receive_server(FRAMER.feed(line), 0.0)
    return (asked + time.perf_counter() - began) / SESSIONS * 1e6


async def _open_proxies() -> tuple[list[asyncio.Task[Any]], UpstreamPool, list[object]]:
    server = _Server()
    pool = UpstreamPool(Scope.SHARED, server.connect)
    runs: list[asyncio.Task[Any]] = []
    kept: list[object] = [server]
    for _ in range(SESSIONS):
        front, client = connect_pair()
        client.start_raw(_Deaf())
        proxy = Proxy(ProxyConfig(), front, pool.connect)
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
