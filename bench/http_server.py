"""The same server over Streamable HTTP, on a free loopback port: `python -m bench.http_server REVISION`.

Frames HTTP by hand, as cheaply as asyncio allows and for well-behaved clients only; says on stderr where it listens.
"""

from __future__ import annotations

import asyncio
import re
import sys

from bench.server import HEAD_BYTES, ID, METHOD, answer_for, results

LENGTH = re.compile(rb"(?i)\r\ncontent-length:\s*(\d+)")
EMPTY = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection, a request after another."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self.answers = answers
        self.pending = bytearray()
        self.needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self.pending += data  # a bytearray, which grows in place
        while len(self.pending) >= self.needed and (end := self.pending.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.pending[:end])
            length = LENGTH.search(head)
            self.needed = end + 4 + (int(length[1]) if length else 0)
            if len(self.pending) < self.needed:
                return
            body = bytes(self.pending[end + 4 : self.needed])
            del self.pending[: self.needed]
            self.needed = 0
            self.transport.write(self.answer(head, body))

    def answer(self, head: bytes, body: bytes) -> bytes:
        """Give the response to one request."""
        if not head.startswith(b"POST"):
            return EMPTY % (b"405 Method Not Allowed" if head.startswith(b"GET") else b"200 OK")
        method, request_id = METHOD.search(body, 0, HEAD_BYTES), ID.search(body, 0, HEAD_BYTES)
        if not method or not request_id:
            return EMPTY % b"202 Accepted"
        result = answer_for(self.answers, method[1], body)
        frame = b'{"jsonrpc":"2.0","id":' + request_id[1] + b',"result":' + result + b"}"
        session = b"Mcp-Session-Id: bench\r\n" if method[1] == b"initialize" else b""
        kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        return b"%s%sContent-Length: %d\r\n\r\n%s" % (kind, session, len(frame), frame)


async def serve(revision: str) -> None:
    """Listen until the process is ended."""
    answers = results(revision)
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(answers), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
