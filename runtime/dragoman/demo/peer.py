"""A client of the demonstration, as far as it moves frames: JSON-RPC, one a line, on stdin and stdout.

Lives here: reading, writing, asking, answering and waiting. Must not: know a method, or import more than the standard
library and a few constants, so that a client starts in a moment. Called by `client` and `stateless_client`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dragoman.core.codes import METHOD_NOT_FOUND

Frame = dict[str, Any]

Answers = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""By method, what gives the result of a request with these params."""


class GivenUp(Exception):
    """The server said something that this client's revision does not have."""


class Peer:
    """Speaks JSON-RPC over stdin and stdout, and blocks while it waits."""

    def __init__(self) -> None:
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

    def answer(self, frame: Frame, answers: Answers, revision: str) -> None:
        """Answer a request, as a peer that speaks this revision; a notification needs no answer."""
        if "id" not in frame or "method" not in frame:
            return
        answer = answers.get(frame["method"])
        if answer is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"revision {revision} has no {frame['method']}"}
            self.send(id=frame["id"], error=error)
        else:
            self.send(id=frame["id"], result=answer(frame.get("params", {})))

    def ask_result(self, method: str, params: dict[str, Any], meanwhile: Callable[[Frame], None]) -> dict[str, Any]:
        """Send a request and wait for its result, as `ask` does for its response.

        Raises:
            EOFError: The other side closed without a response.
            GivenUp: It answered with an error.
        """
        response = self.ask(method, params, meanwhile)
        if "error" in response:
            raise GivenUp(f"{method} failed: {response['error']['message']}")
        result: dict[str, Any] = response["result"]
        return result

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
        key = self._asked
        self._asked += 1
        self.send(id=key, method=method, **_present(params))
        for frame in self.frames():
            if frame.get("id") == key and "method" not in frame:
                return frame
            meanwhile(frame)
        raise EOFError(f"no response to {method}")


def run_client(converse: Callable[[], None]) -> int:
    """Hold a conversation; say on stderr why, if it ends early. Give the exit code."""
    try:
        converse()
    except (GivenUp, EOFError) as error:
        print(f"the client gives up: {error}", file=sys.stderr)
        return 1
    return 0


def _present(params: dict[str, Any]) -> dict[str, Any]:
    return {"params": params} if params else {}
