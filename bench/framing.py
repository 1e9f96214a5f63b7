"""HTTP messages out of a connection, as cheaply as asyncio allows, for well-behaved peers only.

Lives here: what the bare server and the floor share. Every message has a length or no body.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length:\s*(\d+)")


BUFFER: Final = bytearray(1 << 20)
"""What every connection reads into: a large buffer for each read would be mapped and unmapped each time."""

VIEW: Final = memoryview(BUFFER)


class Messages(asyncio.BufferedProtocol):
    """Cuts HTTP messages with a length, requests or responses, out of one connection."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._pending = bytearray()
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        """Give where to read into."""
        return BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Cut messages."""
        data = bytes(VIEW[:nbytes])
        if not self._pending and (end := data.find(b"\r\n\r\n")) >= 0:
            length = LENGTH.search(data, 0, end + 2)
            if end + 4 + (int(length[1]) if length else 0) == len(data):
                self.take(data[:end], data[end + 4 :])
                return
        self._pending += data
        while len(self._pending) >= self._needed and (end := self._pending.find(b"\r\n\r\n")) >= 0:
            length = LENGTH.search(self._pending, 0, end + 2)
            self._needed = end + 4 + (int(length[1]) if length else 0)
            if len(self._pending) < self._needed:
                return
            head, body = bytes(self._pending[:end]), bytes(self._pending[end + 4 : self._needed])
            del self._pending[: self._needed]
            self._needed = 0
            self.take(head, body)

    def take(self, head: bytes, body: bytes) -> None:
        """Deal with one message."""
        raise NotImplementedError
