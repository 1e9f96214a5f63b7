"""The same server over Streamable HTTP, on a free loopback port: `python -m bench.http_server REVISION [sse]`.

Frames HTTP by hand, as cheaply as asyncio allows and for well-behaved clients only; says on stderr where it listens.
With `sse` each answer is an event of a stream.
"""

from __future__ import annotations

import asyncio
import sys

from bench.framing import Messages
from bench.server import HEAD_BYTES, ID, METHOD, answer_for, results

EMPTY = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"


class Connection(Messages):
    """One connection, a request after another."""

    def __init__(self, answers: dict[bytes, bytes], by_sse: bool) -> None:
        super().__init__()
        self.answers = answers
        self.by_sse = by_sse

    def take(self, head: bytes, body: bytes) -> None:
        """Answer a request."""
        self.transport.write(self.answer(head, body))

    def answer(self, head: bytes, body: bytes) -> bytes:
        """Give the response to one request."""
        if not head.startswith(b"POST"):
            return EMPTY % (b"405 Method Not Allowed" if head.startswith(b"GET") else b"200 OK")
        method, request_id = METHOD.search(body, 0, HEAD_BYTES), ID.search(body, 0, HEAD_BYTES)
        if not method or not request_id:
            return EMPTY % b"202 Accepted"
        answer = answer_for(self.answers, method[1], body)
        frame = b'{"jsonrpc":"2.0","id":' + request_id[1] + b"," + answer + b"}"
        session = b"Mcp-Session-Id: bench\r\n" if method[1] == b"initialize" else b""
        kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        if self.by_sse:
            kind, frame = kind.replace(b"application/json", b"text/event-stream"), b"data: %s\n\n" % frame
        return b"%s%sContent-Length: %d\r\n\r\n%s" % (kind, session, len(frame), frame)


async def serve(revision: str, by_sse: bool) -> None:
    """Listen until the process is ended."""
    answers = results(revision)
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(answers, by_sse), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], "sse" in sys.argv[2:]))
