"""Which HTTP library reaches servers fastest: `python -m bench.http_clients [LIBRARY ...]` prints a table.

Lives here: the measurement behind `docs/decisions/0008`. Each library runs in a process of its own against one raw
server, which costs as little as Python can: what is seen is the client. `ours` is the pool in
`transports.upstream`. To measure aiohttp and httpx2, install them: they are not dependencies. Called by a person.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

SMALL = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"x" * 200 + b'"}]}}'
LARGE = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"x" * 1_000_000 + b'"}]}}'
EVENTS = 20_000
STREAMS = 200
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
ACCEPT = {"Accept": HEADERS["Accept"]}
OURS = "dragoman.transports.upstream.connection_pool"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

NAMES = ("raw", "ours", "ours+uvloop", "aiohttp", "aiohttp+uvloop", "httpx2", "httpx2+uvloop")

Post = Callable[[str, bytes], Awaitable[bytes]]
Stream = Callable[[str], AsyncIterator[bytes]]


class Server(asyncio.Protocol):
    """Answers by path: /small, /large, /events, /open (an event stream that says nothing)."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.kept = b""

    def data_received(self, data: bytes) -> None:
        self.kept += data
        while (end := self.kept.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self.kept, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.kept) < whole:
                return
            self.answer(self.kept.split(b" ", 2)[1])
            self.kept = self.kept[whole:]

    def answer(self, path: bytes) -> None:
        if path in (b"/small", b"/large"):
            body = SMALL if path == b"/small" else LARGE
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.transport.write(head + body)
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        if path == b"/events":
            event = b"event: message\r\nid: 1\r\ndata: " + SMALL + b"\r\n\r\n"
            chunk = b"%x\r\n%s\r\n" % (len(event), event)
            for _ in range(EVENTS // 100):
                self.transport.write(chunk * 100)
            self.transport.write(b"0\r\n\r\n")


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def measure(base: str, post: Post, stream: Stream) -> dict[str, float]:
    found = {}
    for _ in range(300):
        await post(base + "/small", SMALL)
    times = []
    for _ in range(3000):
        began = time.perf_counter()
        await post(base + "/small", SMALL)
        times.append(time.perf_counter() - began)
    found["POST p50, µs"] = statistics.median(times) * 1e6
    times = []
    for _ in range(60):
        began = time.perf_counter()
        assert len(await post(base + "/large", LARGE)) == len(LARGE)
        times.append(time.perf_counter() - began)
    found["1 MB both ways p50, ms"] = statistics.median(times) * 1e3
    began = time.perf_counter()

    async def work() -> None:
        for _ in range(100):
            await post(base + "/small", SMALL)

    await asyncio.gather(*(work() for _ in range(32)))
    found["32 at once, POST/s"] = 3200 / (time.perf_counter() - began)
    began = time.perf_counter()
    async for _ in stream(base + "/events"):
        pass
    found["SSE, events/s"] = EVENTS / (time.perf_counter() - began)
    before = _rss_kb()
    opened = [asyncio.create_task(_first(stream(base + "/open"))) for _ in range(STREAMS)]
    await asyncio.sleep(2)
    found["open stream, KB"] = (_rss_kb() - before) / STREAMS
    found["RSS at the end, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for task in opened:
        task.cancel()
    return found


async def _first(stream: AsyncIterator[bytes]) -> None:
    async for _ in stream:
        return


def _rss_kb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


async def with_aiohttp(base: str) -> dict[str, float]:
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, read_bufsize=256 * 1024
    ) as session:

        async def post(url: str, body: bytes) -> bytes:
            data = aiohttp.BytesIOPayload(__import__("io").BytesIO(body)) if len(body) > 500_000 else body
            async with session.post(url, data=data, headers=HEADERS) as response:
                return await response.read()

        async def stream(url: str) -> AsyncIterator[bytes]:
            async with session.get(url, headers=HEADERS) as response:
                async for chunk in response.content.iter_any():
                    yield chunk

        return await measure(base, post, stream)


async def with_wire(base: str) -> dict[str, float]:
    from dragoman.transports.upstream.config import UpstreamConfig
    from dragoman.transports.upstream.connection_pool import ConnectionPool

    wire = ConnectionPool(UpstreamConfig(base))

    async def post(url: str, body: bytes) -> bytes:
        answer = await wire.send("POST", url, ACCEPT, body, idle_s=300.0)
        try:
            return await answer.whole()
        finally:
            answer.close()

    async def stream(url: str) -> AsyncIterator[bytes]:
        answer = await wire.send("GET", url, ACCEPT)
        try:
            while part := await answer.some():
                yield part
        finally:
            answer.close()

    try:
        return await measure(base, post, stream)
    finally:
        await wire.close()


async def with_httpx(base: str, name: str) -> dict[str, float]:
    httpx: Any = __import__(name)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx.AsyncClient(limits=limits, timeout=None) as client:

        async def post(url: str, body: bytes) -> bytes:
            content: bytes = (await client.post(url, content=body, headers=HEADERS)).content
            return content

        async def stream(url: str) -> AsyncIterator[bytes]:
            async with client.stream("GET", url, headers=HEADERS) as response:
                async for chunk in response.aiter_raw():
                    yield chunk

        return await measure(base, post, stream)


async def with_raw_streams(base: str) -> dict[str, float]:
    host, port = base.removeprefix("http://").split(":")
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(url: str, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        pair = idle.pop() if idle else await asyncio.open_connection(host, int(port), limit=2**21)
        path = url.removeprefix(base)
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        pair[1].write(head.encode() + b"\r\n\r\n" + body)
        return pair

    async def post(url: str, body: bytes) -> bytes:
        pair = await send(url, body)
        head = await pair[0].readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert length is not None
        answer = await pair[0].readexactly(int(length[1]))
        idle.append(pair)
        return answer

    async def stream(url: str) -> AsyncIterator[bytes]:
        reader, _ = await send(url, b"")
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readline(), 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)

    return await measure(base, post, stream)


def run_one(name: str, base: str) -> None:
    library, _, loop = name.partition("+")
    if loop:
        import uvloop

        runner: Any = uvloop.run
    else:
        runner = asyncio.run
    began = time.perf_counter()
    if library != "raw":
        __import__(OURS if library == "ours" else library)
    import_ms = (time.perf_counter() - began) * 1e3
    work = {"aiohttp": with_aiohttp, "ours": with_wire, "raw": with_raw_streams}.get(library)
    found = runner(work(base) if work else with_httpx(base, library))
    print({"import, ms": round(import_ms, 1), **{key: round(value, 1) for key, value in found.items()}})


def _is_installed(name: str) -> bool:
    library = name.partition("+")[0]
    return library in ("raw", "ours") or importlib.util.find_spec(library) is not None


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve())
    elif sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2], sys.argv[3])
    else:
        module = [sys.executable, "-m", "bench.http_clients"]
        with subprocess.Popen([*module, "--serve"], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            base = f"http://127.0.0.1:{server.stdout.readline().strip()}"
            for name in sys.argv[1:] or filter(_is_installed, NAMES):
                output = subprocess.run([*module, "--one", name, base], check=True, capture_output=True, text=True)
                print(f"{name:16}", output.stdout.strip())
            server.kill()


if __name__ == "__main__":
    main()
