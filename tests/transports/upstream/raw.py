"""A server that says exactly the bytes a test gives it, and a way to it; on both event loops."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connection_pool import ConnectionPool
from tests.support import waiting

try:
    import uvloop
except ImportError:
    uvloop = None  # type: ignore[assignment]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PATIENCE_S = 15.0

RUNS = 10
STOP_S = 0.03
"""A third of the shortest time that a test has patience for."""

_LOOK_S = 0.01


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on asyncio's event loop and on uvloop's; nothing may be left over on either.

    uvloop has no clock but the real one. A run there that fails after the machine stopped it says nothing: both ends
    of a connection stood still while one had patience with the other. It is made again.
    """

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def main() -> None:
            async with asyncio.timeout(4 * PATIENCE_S):
                await test(*args, **kwargs)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

        waiting.run(main())
        if uvloop is not None:
            run_unless_stopped(main)

    return run


def run_unless_stopped(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run on uvloop, and again if that fails and the machine stopped it meanwhile."""
    for left in range(RUNS - 1, -1, -1):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            stops = Stops(runner.get_loop())
            try:
                runner.run(main())
            except Exception:
                if not left or stops.longest_s <= STOP_S:
                    raise
            else:
                return


class Stops:
    """Notes for how long an event loop was kept from its work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.longest_s = 0.0
        self._loop = loop
        self._look(time.monotonic())

    def _look(self, due: float) -> None:
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - due)
        self._loop.call_later(_LOOK_S, self._look, now + _LOOK_S)


class Line:
    """One connection, seen from the server."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """Give the next request, head and body; nothing if there is none."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        _, _, rest = head.lower().partition(b"content-length: ")
        return head + (await self.reader.readexactly(int(rest.split(b"\r")[0])) if rest else b"")

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ended(self) -> bool:
        """Wait for the other side to close; whether it said nothing before."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def reset(self) -> None:
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def raw_server(handle: Callable[[Line], Awaitable[None]], **options: Any) -> AsyncIterator[str]:
    """Give the URL of a server that treats each connection so, and closes it afterwards."""
    tasks: set[asyncio.Task[Any]] = set()
    failures: list[BaseException] = []
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.append(writer)
        try:
            await handle(Line(len(tasks), reader, writer))
        except (ConnectionError, asyncio.CancelledError):
            pass
        except BaseException as error:
            failures.append(error)
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, **{"limit": 2**24, **options})
    scheme = "https" if options.get("ssl") else "http"
    try:
        yield f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:  # TLS that is closed waits for the other end, which a proxy in between may not pass on
            with contextlib.suppress(AttributeError):  # asyncio's own that is gone has no loop any more
                writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
    assert not failures, failures


@contextlib.asynccontextmanager
async def wire_to(url: str, **config: Any) -> AsyncIterator[ConnectionPool]:
    wire = ConnectionPool(UpstreamConfig(url, **config))
    try:
        yield wire
    finally:
        await wire.close()


async def ask(
    wire: ConnectionPool, method: str = "POST", body: bytes | None = b"{}", **options: Any
) -> tuple[int, bytes]:
    """Send a request; give the status and the whole body of its answer."""
    answer = await wire.send(method, wire.config.url, {}, body if method == "POST" else None, **options)
    parts = []
    try:
        while part := await answer.some():
            parts.append(part)
    finally:
        answer.close()
    return answer.status, b"".join(parts)
