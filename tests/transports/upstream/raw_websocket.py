"""A WebSocket server that says exactly the frames a test gives it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from websockets.utils import apply_mask

from tests.transports.upstream.raw import Line, raw_server
from tests.transports.upstream.stage import hello

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
LAST, NOT_LAST, CLOSE = 0x81, 0x01, 0x88

Misbehave = Callable[[Line, dict[str, Any]], Awaitable[None]]


def frame_of(body: bytes, first: int = LAST) -> bytes:
    size = len(body)
    if size < 126:
        length = bytes([size])
    else:
        length = b"\x7e" + size.to_bytes(2, "big") if size < 65536 else b"\x7f" + size.to_bytes(8, "big")
    return bytes([first]) + length + body


async def read_frame(line: Line) -> tuple[int, bytes]:
    first, size = await line.reader.readexactly(2)
    size &= 127
    if size > 125:
        size = int.from_bytes(await line.reader.readexactly(2 if size == 126 else 8), "big")
    mask, body = await line.reader.readexactly(4), await line.reader.readexactly(size)
    return first, apply_mask(body, mask)


def accept_of(head: bytes) -> bytes:
    """Give what accepts the key in the head of a request."""
    key = head.lower().index(b"sec-websocket-key: ") + len(b"sec-websocket-key: ")
    return base64.b64encode(hashlib.sha1(head[key : key + 24] + _MAGIC).digest())


@contextlib.asynccontextmanager
async def frames_server(misbehave: Misbehave) -> AsyncIterator[str]:
    """Shake hands, answer pings, and do this about each call; give the URL."""

    async def handle(line: Line) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await talk(line)

    async def talk(line: Line) -> None:
        head = await line.reader.readuntil(b"\r\n\r\n")
        answer = b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: mcp\r\n"
        await line.say(answer + b"Sec-WebSocket-Accept: " + accept_of(head) + b"\r\n\r\n")
        while True:
            first, body = await read_frame(line)
            if first == CLOSE:
                return
            frame = json.loads(body)
            if frame.get("method") in ("initialize", "ping"):
                result = hello() if frame["method"] == "initialize" else {}
                answer = json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode()
                await line.say(frame_of(answer))
            elif frame.get("method") == "tools/call":
                await misbehave(line, frame)

    async with raw_server(handle) as url:
        yield url.replace("http:", "ws:")
