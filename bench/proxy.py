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
PROXY = (sys.executable, "-c", "import sys; from dragoman.cli import main; sys.exit(main())", "proxy", "--")
SERVER = str(Path(__file__).with_name("server.py"))
CALLS = 200


def measure_proxy(rounds: int) -> None:
    """Measure and print sequential latency, direct and through the proxy."""
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
        self._number = 0
        self._revision = revision

    def __enter__(self) -> Peer:
        info = {"name": "bench", "version": "1"}
        params = {"protocolVersion": self._revision, "capabilities": {}, "clientInfo": info}
        answer = json.loads(self._ask("initialize", params))
        assert answer["result"]["protocolVersion"] == self._revision, answer
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def p50_us(self, method: str, params: dict[str, Any]) -> float:
        """Give the median time of one request, in microseconds; the last answer is looked at."""
        times = []
        for _ in range(CALLS):
            started = perf_counter_ns()
            line = self._ask(method, params)
            times.append(perf_counter_ns() - started)
        answer = json.loads(line)
        assert answer["id"] == self._number, answer
        assert "result" in answer, answer
        return median(times) / 1000

    def _ask(self, method: str, params: dict[str, Any]) -> bytes:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._receive()

    def _send(self, frame: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")

    def _receive(self) -> bytes:
        assert self._process.stdout
        chunks = []
        while True:
            chunk = os.read(self._process.stdout.fileno(), 1 << 20)
            chunks.append(chunk)
            if chunk.endswith(b"\n"):
                return b"".join(chunks)
            assert chunk, "the process ended"
