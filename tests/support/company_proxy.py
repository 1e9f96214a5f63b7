"""A small HTTP proxy, as companies have one: it makes tunnels, hands requests on, and may want credentials."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import urlsplit

_CHUNK_BYTES: Final = 65_536


class CompanyProxy:
    """What has come to the proxy.

    Attributes:
        address: Where it listens.
        asked: The first line of each request that it was sent.
        names: Which address to go to for a name, as its own DNS would say.
        user: What it wants as `user:password`; nobody is asked without.
        answer: What it answers in place of doing its work.
    """

    def __init__(self, names: Mapping[str, str], user: str, answer: bytes) -> None:
        self.address = ""
        self.asked: list[str] = []
        self.names, self.user, self.answer = names, user, answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, _ = line.decode().split(" ")
        self.asked.append(f"{method} {target}")
        if self.answer:
            writer.write(self.answer)
        elif self.user and b"Basic %b\r\n" % base64.b64encode(self.user.encode()) not in rest:
            writer.write(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n")
        else:
            where = urlsplit(target if "://" in target else f"//{target}")
            host, port = self.names.get(where.hostname or "", where.hostname), where.port
            there, back = await asyncio.open_connection(host, port or 80)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                kept = [one for one in rest.split(b"\r\n") if not one.lower().startswith(b"proxy-")]
                back.write(f"{method} {where.path} HTTP/1.1\r\n".encode() + b"\r\n".join(kept))
            try:
                await asyncio.gather(_pump(reader, back), _pump(there, writer))
            finally:
                back.transport.abort()
        await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def company_proxy(
    names: Mapping[str, str] | None = None, user: str = "", answer: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[CompanyProxy]:
    """Run one on a free port of loopback."""
    proxy = CompanyProxy(names or {}, user, answer)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await proxy.serve(reader, writer)
        writer.transport.abort() if tls else writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    proxy.address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
