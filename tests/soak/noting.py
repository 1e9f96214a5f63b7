"""A server that notes each call that it was given, `python -m tests.soak.noting FILE REVISION [PORT]`.

Over stdio, or over HTTP at a port. Every call brings a word of its own, which the answer repeats: whoever gets another
one, or has a word that stands in the file twice, has been answered wrongly. Every seventh call takes a while, so that
there are some that are open when something is killed; who wants to hear of progress hears of it first.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from bench.framing import Messages
from bench.server import results

SLOW_S: Final = 0.2
UNKNOWN: Final = {"code": -32601, "message": "there is no such method"}


class Noting:
    """Answers requests, and notes the words of calls.

    Args:
        file: Where to.
        revision: Whose server it is.
    """

    def __init__(self, file: Path, revision: str) -> None:
        self._results = {name.decode(): json.loads(result) for name, result in results(revision, 3).items()}
        self._file = file.open("a", encoding="ascii", buffering=1)
        self._calls = 0

    def answer(self, frame: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
        """Return what is said to a request, of which the last is the response, sent after so many seconds."""
        about = {"jsonrpc": "2.0", "id": frame["id"]}
        result = self._results.get(frame["method"])
        if result is None:
            return [{**about, "error": UNKNOWN}], 0.0
        if frame["method"] != "tools/call":
            return [{**about, "result": result}], 0.0
        word = frame["params"]["arguments"]["who"]
        self._file.write(f"{word}\n")
        self._calls += 1
        said: list[dict[str, Any]] = []
        if (token := frame["params"].get("_meta", {}).get("progressToken")) is not None:
            step = {"progressToken": token, "progress": 1}
            said.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
        said.append({**about, "result": {**result, "content": [{"type": "text", "text": word}]}})
        return said, 0.0 if self._calls % 7 else SLOW_S


class Connection(Messages):
    """One connection over HTTP, a request after another."""

    def __init__(self, noting: Noting) -> None:
        super().__init__()
        self._noting = noting

    def take(self, head: bytes, body: bytes) -> None:
        """Answer a request, now or in a while."""
        if not head.startswith(b"POST"):
            self.transport.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return
        frame = json.loads(body)
        if "id" not in frame or "method" not in frame:
            self.transport.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        said, after_s = self._noting.answer(frame)
        is_stream = len(said) > 1
        texts = [(b"data: %s\n\n" if is_stream else b"%s") % json.dumps(one).encode() for one in said]
        kind = b"text/event-stream" if is_stream else b"application/json"
        session = b"Mcp-Session-Id: noting\r\n" if frame["method"] == "initialize" else b""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n"
        self.transport.write(head % (kind, session, sum(map(len, texts))) + b"".join(texts[:-1]))
        asyncio.get_running_loop().call_later(after_s, self.transport.write, texts[-1])


async def listen(noting: Noting, port: int) -> None:
    """Serve until the process is ended."""
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(noting), "127.0.0.1", port)
    print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    await listener.serve_forever()


def serve(noting: Noting) -> None:
    """Answer line by line until stdin ends."""
    for line in sys.stdin:
        frame = json.loads(line)
        if "id" in frame and "method" in frame:
            (*before, response), after_s = noting.answer(frame)
            for one in before:
                print(json.dumps(one), flush=True)
            time.sleep(after_s)
            print(json.dumps(response), flush=True)


if __name__ == "__main__":
    found = Noting(Path(sys.argv[1]), sys.argv[2])
    if len(sys.argv) > 3:
        asyncio.run(listen(found, int(sys.argv[3])))
    else:
        serve(found)
