"""One peer of the demonstration: JSON-RPC frames, one a line, on stdin and stdout.

Lives here: reading, writing, asking and waiting. Must not: know a method, or import more than the standard library, so
that a peer starts in a moment. Called by `client` and `server`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

Frame = dict[str, Any]


class Peer:
    """Speaks JSON-RPC over stdin and stdout, and blocks while it waits.

    Args:
        first_id: The id of the first request; an integer or a text, to which numbers are appended.
    """

    def __init__(self, first_id: int | str) -> None:
        self._first_id = first_id
        self._asked = 0

    def frames(self) -> Iterator[Frame]:
        """Yield what comes, until the other side closes."""
        for line in sys.stdin.buffer:
            yield json.loads(line)

    def send(self, **members: Any) -> None:
        """Send one frame."""
        line = json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":"), ensure_ascii=False)
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send(method=method, **_present(params))

    def ask(self, method: str, params: dict[str, Any], meanwhile: Callable[[Frame], None]) -> Frame:
        """Send a request and wait for its response.

        Args:
            method: What to ask.
            params: With what; nothing is sent if empty.
            meanwhile: Called with every other frame that comes before the response.

        Returns:
            The response, whole.

        Raises:
            EOFError: The other side closed without a response.
        """
        key = self._next_id()
        self.send(id=key, method=method, **_present(params))
        for frame in self.frames():
            if frame.get("id") == key and "method" not in frame:
                return frame
            meanwhile(frame)
        raise EOFError(f"no response to {method}")

    def _next_id(self) -> int | str:
        self._asked += 1
        first = self._first_id
        return first + self._asked - 1 if isinstance(first, int) else f"{first}{self._asked}"


def _present(params: dict[str, Any]) -> dict[str, Any]:
    return {"params": params} if params else {}
