"""A WebSocket that says why it closes to a server that is still sending.

Lives here: reading on what nobody wants, for a while. Must not: know frames. Used by `websocket`.

Were a connection closed while there is something to read, the system would reset it (RFC 9293, 3.6.1), and the server
would lose the close frame together with what it was sending. aiohttp closes at once, so its connection is kept open by
another descriptor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import Final

import aiohttp

_LINGER_S: Final = 5.0
_READ_BYTES: Final = 256 * 1024


class LingeringSocket(aiohttp.ClientWebSocketResponse):
    """A connection; `linger` after it was closed."""

    _kept: socket.socket | None = None

    async def close(self, *, code: int = aiohttp.WSCloseCode.OK, message: bytes = b"") -> bool:
        """Close; if that is because of what the server sends, be ready to read on."""
        connection = self.get_extra_info("socket")
        if code != aiohttp.WSCloseCode.OK and connection is not None and not self.closed and self._kept is None:
            with contextlib.suppress(OSError):  # too many are open: then it cannot be helped
                self._kept = socket.socket(fileno=os.dup(connection.fileno()))
                self._kept.setblocking(False)
        return await super().close(code=code, message=message)

    async def linger(self) -> None:
        """Read on until the server closes too, but not for long."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        loop = asyncio.get_running_loop()
        with kept, contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await asyncio.sleep(0)  # until what was to be written has been
                kept.shutdown(socket.SHUT_WR)
                while await loop.sock_recv(kept, _READ_BYTES):
                    pass
