"""Which HTTP server to run the front on: `python -m bench.http_servers`, the table of docs/decisions.

Each candidate serves the same three things in a process of its own: a POST that is answered with JSON, a stream of
events, and streams that stay open. The client is the same raw one for all. Those that are not installed are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"x": "y" * 200}}).encode()
EVENT = b"event: message\nid: s1-1\ndata: " + BODY + b"\n\n"
EVENTS = 2000
HELD = 500

Message = MutableMapping[str, Any]

CANDIDATES: dict[str, tuple[str, ...]] = {
    "asyncio protocol by hand": (),
    "uvicorn, httptools, uvloop": ("uvicorn", "httptools", "uvloop"),
    "uvicorn, httptools, asyncio": ("uvicorn", "httptools"),
    "uvicorn, h11, uvloop": ("uvicorn", "h11", "uvloop"),
    "granian": ("granian",),
    "aiohttp, uvloop": ("aiohttp", "uvloop"),
    "aiohttp, asyncio": ("aiohttp",),
}


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Serve, as ASGI has it."""
    if scope["type"] != "http":
        return
    kind = b"application/json" if scope["method"] == "POST" else b"text/event-stream"
    if scope["method"] == "POST":
        body = b""
        while (message := await receive()).get("more_body", False) or message.get("body"):
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    for _ in range(EVENTS if scope["path"] == "/stream" else 1):
        await send({"type": "http.response.body", "body": EVENT, "more_body": True})
    if scope["path"] == "/hold":
        while (await receive())["type"] != "http.disconnect":
            pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def serve(name: str, port: int) -> None:
    """Be one of the candidates."""
    loop = "uvloop" if "uvloop" in name else "asyncio"
    if name.startswith("uvicorn"):
        import uvicorn

        http: Any = "h11" if "h11" in name else "httptools"
        uvicorn.run(app, port=port, http=http, loop=loop, access_log=False, log_level="error", ws="none")
    elif name == "granian":
        options = ["--interface", "asgi", "--port", str(port), "--log-level", "error", "--workers", "1"]
        os.execv(sys.executable, [sys.executable, "-m", "granian", *options, "bench.http_servers:app"])
    else:
        import uvloop

        run = _serve_aiohttp if name.startswith("aiohttp") else _serve_by_hand
        with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
            runner.run(run(port))


async def _serve_aiohttp(port: int) -> None:
    from aiohttp import web

    async def post(request: web.Request) -> web.Response:
        return web.Response(body=await request.read(), content_type="application/json")

    async def get(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(EVENTS if request.path == "/stream" else 1):
            await response.write(EVENT)
        if request.path == "/hold":
            await asyncio.sleep(3600)
        return response

    served = web.Application()
    served.add_routes([web.post("/mcp", post), web.get("/stream", get), web.get("/hold", get)])
    runner = web.AppRunner(served, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


async def _serve_by_hand(port: int) -> None:
    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            assert isinstance(self.transport, asyncio.Transport)
            if data.startswith(b"POST"):
                body = data[data.index(b"\r\n\r\n") + 4 :]
                self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                return
            self.transport.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            chunk = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
            for _ in range(EVENTS if b"/stream" in data else 1):
                self.transport.write(chunk)
            if b"/stream" in data:
                self.transport.write(b"0\r\n\r\n")

    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", port)
    await server.serve_forever()


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


POST = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(
    BODY
)


def measure_posts(port: int, count: int = 2000) -> tuple[float, float]:
    """Give the median and the 99th percentile of a round trip, in microseconds."""
    times = []
    with _connect(port) as connection:
        for _ in range(count):
            before = time.perf_counter_ns()
            connection.sendall(POST + BODY)
            answer = b""
            while not answer.endswith(BODY):
                answer += connection.recv(65536)
            times.append((time.perf_counter_ns() - before) / 1000)
    times.sort()
    return statistics.median(times), times[int(len(times) * 0.99)]


def measure_stream(port: int) -> float:
    """Give how many events come in a second."""
    with _connect(port) as connection:
        before = time.perf_counter()
        connection.sendall(b"GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        tail = b""
        while not tail.endswith(b"0\r\n\r\n"):
            tail = (tail + connection.recv(262144))[-16:]
        return EVENTS / (time.perf_counter() - before)


def measure_memory(port: int, pid: int) -> tuple[float, float]:
    """Give resident megabytes at rest, and kilobytes that each open stream adds."""
    before = _resident(pid)
    held = [_connect(port) for _ in range(HELD)]
    for connection in held:
        connection.sendall(b"GET /hold HTTP/1.1\r\nhost: localhost\r\n\r\n")
    for connection in held:
        seen = b""
        while b"\n\n" not in seen:
            seen += connection.recv(65536)
    after = _resident(pid)
    for connection in held:
        connection.close()
    return before / 1024, (after - before) / HELD


def _resident(pid: int) -> int:
    """Give the kilobytes of a process and its children."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    lines = [line for each in pids for line in Path(f"/proc/{each}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def _start(name: str) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.http_servers", "--serve", name, "--port", str(port)], start_new_session=True
    )
    for _ in range(200):
        try:
            _connect(port).close()
            break
        except OSError:
            time.sleep(0.05)
    return process, port


def main() -> None:
    """Measure every candidate in turn, several times, and print the table of medians."""
    parser = argparse.ArgumentParser(prog="python -m bench.http_servers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--serve", choices=CANDIDATES, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.port)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    present = [name for name, needs in CANDIDATES.items() if all(map(importlib.util.find_spec, needs))]
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in present}
    for _ in range(args.rounds):
        for name in present:
            process, port = _start(name)
            try:
                measure_posts(port, 200)
                figures = *measure_posts(port), measure_stream(port), *measure_memory(port, process.pid)
                found[name].append(figures)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    print("| server | POST p50 µs | p99 µs | events/s | MB at rest | KB a stream |\n|---|---|---|---|---|---|")
    for name, rounds in found.items():
        p50, p99, events, rest, each = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {name} | {p50:.0f} | {p99:.0f} | {events:,.0f} | {rest:.0f} | {each:.1f} |")


if __name__ == "__main__":
    main()
