"""One peer of the demonstration: JSON-RPC frames, one a line, on stdin and stdout.

Lives here: reading, writing, asking, answering and waiting. Must not: know a method, or import more than the standard
library and a few constants, so that a peer starts in a moment. Called by the clients and servers of the demonstration.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND

Frame = dict[str, Any]

Answers = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""By method, what gives the result of a request with these params; a KeyError says what there is not."""


class GivenUp(Exception):
    """The server said something that this client's revision does not have."""


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

    def answer(self, frame: Frame, answers: Answers, revision: str) -> None:
        """Answer a request, as a peer that speaks this revision; a notification needs no answer."""
        if "id" not in frame or "method" not in frame:
            return
        answer = answers.get(frame["method"])
        if answer is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"revision {revision} has no {frame['method']}"}
            self.send(id=frame["id"], error=error)
            return
        try:
            result = answer(frame.get("params", {}))
        except KeyError as missing:
            self.send(id=frame["id"], error={"code": INVALID_PARAMS, "message": f"there is no {missing}"})
        else:
            self.send(id=frame["id"], result=result)

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
