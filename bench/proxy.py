"""What `dragoman proxy` adds over stdio: the same requests to a bare server and to one behind the proxy, in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

CLIENT_REVISION = "2024-11-05"
SERVER_REVISIONS = {"same revision": "2024-11-05", "translating 3 steps": "2025-11-25"}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "call": ("tools/call", {"name": "tool_1", "arguments": {"text": "x" * 200}}),
    "list": ("tools/list", {}),
}
PROXY = (sys.executable, "-m", "dragoman", "proxy", "--log-level", "error", "--")
SERVER = str(Path(__file__).with_name("server.py"))
CALLS = 200
READ_BYTES = 1 << 20


def measure_proxy(rounds: int) -> None:
    """Measure and print sequential latency, direct and through the proxy, all on one CPU where the system lets us."""
    if sys.platform == "linux":
        # Unpinned, who wakes up where changes small figures several times over.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"\ndragoman proxy, stdio to stdio: p50 of one request after another, {CALLS} a round")
    for words, revision in SERVER_REVISIONS.items():
        server = (sys.executable, SERVER, revision)
        with Peer(server, revision) as direct, Peer((*PROXY, *server), CLIENT_REVISION) as proxied:
            for kind, (method, params) in REQUESTS.items():
                times = [(direct.p50_us(method, params), proxied.p50_us(method, params)) for _ in range(rounds)]
                bare, behind = median(pair[0] for pair in times), median(pair[1] for pair in times)
                ratio = median(pair[1] / pair[0] for pair in times)
                print(f"  {words:<20} {kind}  direct {bare:>7.1f} µs  proxy {behind:>7.1f} µs  {ratio:>5.2f} x")


class Peer:
    """A client of one process, over its pipes; a request at a time."""

    def __init__(self, command: tuple[str, ...], revision: str) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin
        assert self._process.stdout
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        self._number = 0
        self._revision = revision

    def __enter__(self) -> Peer:
        info = {"name": "bench", "version": "1"}
        params = {"protocolVersion": self._revision, "capabilities": {}, "clientInfo": info}
        os.write(self._stdin, self._request("initialize", params))
        answer = json.loads(self._receive())
        assert answer["result"]["protocolVersion"] == self._revision, answer
        os.write(self._stdin, _line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return self

    def __exit__(self, *exception: object) -> None:
        with self._process as process:
            assert process.stdin
            process.stdin.close()

    def p50_us(self, method: str, params: dict[str, Any]) -> float:
        """Give the median time of one request, in microseconds, from its first byte out to its last byte in."""
        lines = [self._request(method, params) for _ in range(CALLS)]
        times = []
        for line in lines:
            started = perf_counter_ns()
            os.write(self._stdin, line)
            answer = self._receive()
            times.append(perf_counter_ns() - started)
        frame = json.loads(answer)
        assert frame["id"] == self._number, frame
        assert "result" in frame, frame
        return median(times) / 1000

    def _request(self, method: str, params: dict[str, Any]) -> bytes:
        self._number += 1
        return _line({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def _receive(self) -> bytes:
        chunk = os.read(self._stdout, READ_BYTES)
        if chunk.endswith(b"\n"):
            return chunk
        chunks = [chunk]
        while not chunk.endswith(b"\n"):
            chunk = os.read(self._stdout, READ_BYTES)
            assert chunk, "the process ended"
            chunks.append(chunk)
        return b"".join(chunks)


def _line(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"
