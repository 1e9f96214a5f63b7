"""The page on this machine that a person comes back to from signing in.

Source: RFC 8252, 7.3: loopback redirects. It listens on loopback only, and only while somebody is signing in.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import socket
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

PATH: Final = "/callback"
_HEAD_BYTES: Final = 32 * 1024
_HEAD_S: Final = 10.0
HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"same-origin"),  # `no-referrer` would hide from us which page sends a form
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)
"""What every page goes with: nothing of it is kept, loaded from elsewhere, or shown inside of another page."""

_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{margin:0;min-height:100vh;display:grid;place-items:center;font:1.1rem/1.5 system-ui,sans-serif;"
    "background:light-dark(#f3f4f6,#16181d);color:light-dark(#1f2328,#e6e8eb)}"
    "main{box-sizing:border-box;width:min(34rem,92vw);padding:2.5rem;border-radius:.75rem;overflow-wrap:anywhere;"
    "background:light-dark(#fff,#22262d);border-top:.35rem solid #2f6f5e;box-shadow:0 .3rem 1.5rem #0002}"
    "h1{margin:0 0 .75rem;font-size:1.6rem;line-height:1.25}p{margin:0}"
    "form{margin-top:1.5rem}input,button{box-sizing:border-box;width:100%;margin:.3rem 0;padding:.6rem;font:inherit}"
    "small{display:block;margin-top:2rem;color:light-dark(#656d76,#9aa2ad)}"
)
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{0} · Dragoman</title>'
    '<meta name="viewport" content="width=device-width"><style>{2}</style>'
    "<main><h1>{0}</h1><p>{1}</p>{4}<small>{3}</small></main>"
)


def write_page(title: str, text: str, place: str, forms: str = "") -> bytes:
    """Write a page.

    Args:
        title: What it is.
        text: What to read.
        place: Who writes it, and where.
        forms: What to fill in, as HTML.
    """
    return _PAGE.format(html.escape(title), html.escape(text), _STYLE, html.escape(place), forms).encode()


class ReturnPage(Protocol):
    """Waits for a person.

    Attributes:
        url: Where they come back to.
    """

    url: str

    async def wait(self, state: str) -> dict[str, str]:
        """Wait for the person who brings this state; give all that they bring."""

    async def close(self, title: str, text: str) -> None:
        """Take no one else, and tell whoever came back."""


class CallbackPage:
    """Waits for a person. Start it; close it with what they are to read."""

    def __init__(self) -> None:
        self.url = ""
        self._servers: list[asyncio.Server] = []
        self._state = ""
        self._found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._waiting: list[asyncio.StreamWriter] = []

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Args:
            host: `localhost` or `127.0.0.1`: how the page is called.
            port: 0 for any.

        Raises:
            OSError: The port is taken.
        """
        first = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD_BYTES)
        self._servers.append(first)
        port = first.sockets[0].getsockname()[1]
        if host == "localhost":  # which some browsers look up in IPv6 alone
            with contextlib.suppress(OSError):
                self._servers.append(await asyncio.start_server(self._serve, "::1", port, family=socket.AF_INET6))
        self.url = f"http://{host}:{port}{PATH}"

    async def wait(self, state: str) -> dict[str, str]:
        """Wait for the person who brings this state; give all that they bring."""
        self._state = state
        return await self._found

    async def close(self, title: str, text: str) -> None:
        """Stop listening, and tell whoever came back."""
        for server in self._servers:
            server.close()
        for writer in self._waiting:
            await _answer(writer, "200 OK", title, text)
        self._found.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            parts = urlsplit(target)
            brought = dict(parse_qsl(parts.query, keep_blank_values=True))
        except (ValueError, TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            return
        is_ours = method == "GET" and parts.path == PATH and self._state and brought.get("state") == self._state
        if is_ours and not self._found.done():
            self._waiting.append(writer)
            self._found.set_result(brought)
        else:
            await _answer(writer, "404 Not Found", "Nothing here", "Nobody waits for this answer.")


async def _answer(writer: asyncio.StreamWriter, status: str, title: str, text: str) -> None:
    body = write_page(title, text, "Dragoman, on this machine")
    listed = (*HEADERS, (b"content-length", b"%d" % len(body)), (b"connection", b"close"))
    with contextlib.suppress(OSError):
        writer.write(
            f"HTTP/1.1 {status}\r\n".encode() + b"".join(b"%b: %b\r\n" % one for one in listed) + b"\r\n" + body
        )
        await writer.drain()
    writer.close()
