"""A server that answers as the one in a trace did.

Lives here: finding the answer to a request, and saying it. Must not: read the trace (`capture`).

A request is answered by the first recorded one with the same method and params that was not used yet, else by the last
such one; what the transport or the client may say otherwise each time (`_meta`, the id) is not compared. If there is
none with these params, one of the same method and name does. `initialize` is answered whatever the client says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.exact_json import decode, encode
from dragoman.inspect.capture import Capture, RecordedCall

_NAMES: Final = ("name", "uri", "taskId")


class MockServer:
    """Speaks in place of a server, a line at a time.

    Args:
        capture: What it said.
        output: Where it is said again.
    """

    def __init__(self, capture: Capture, output: BinaryIO) -> None:
        self._output = output
        self._calls = [call for call in capture.calls if call.answer is not None]
        self._used: set[int] = set()

    def run(self, lines: Iterable[bytes]) -> None:
        """Answer each line until they end."""
        for line in lines:
            self.take(line)

    def take(self, line: bytes) -> None:
        """Answer a line, if it is a request."""
        try:
            frame = decode(line)
        except ValueError:
            return
        if not isinstance(frame, dict) or not isinstance(frame.get("method"), str) or "id" not in frame:
            return
        found = self._find(frame)
        if found is None:
            message = f"the trace has no answer to {frame['method']}"
            self._say({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": INTERNAL_ERROR, "message": message}})
            return
        for said in found.before:
            self._say(_follow(said, found.request, frame))
        assert found.answer is not None
        self._say(found.answer | {"id": frame["id"]})

    def _find(self, frame: dict[str, Any]) -> RecordedCall | None:
        """Return the recorded call that fits a request best."""
        same = [index for index, one in enumerate(self._calls) if one.request["method"] == frame["method"]]
        alike = [index for index in same if _essence(self._calls[index].request) == _essence(frame)]
        named = [index for index in same if _name(self._calls[index].request) == _name(frame)]
        fitting = alike or named or (same if frame["method"] == "initialize" else [])
        if not fitting:
            return None
        index = next((index for index in fitting if index not in self._used), fitting[-1])
        self._used.add(index)
        return self._calls[index]

    def _say(self, frame: dict[str, Any]) -> None:
        self._output.write(encode(frame) + b"\n")
        self._output.flush()


def _essence(frame: dict[str, Any]) -> dict[str, Any]:
    params = frame.get("params")
    return {name: value for name, value in params.items() if name != "_meta"} if isinstance(params, dict) else {}


def _name(frame: dict[str, Any]) -> object:
    params = _essence(frame)
    return next((params[name] for name in _NAMES if name in params), None)


def _follow(said: dict[str, Any], recorded: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Give what was said before the answer, about the request that is made now: its token for progress."""
    params, token = said.get("params"), _token(asked)
    if not isinstance(params, dict) or "progressToken" not in params or params["progressToken"] != _token(recorded):
        return said
    return said | {"params": params | {"progressToken": token}}


def _token(frame: dict[str, Any]) -> object:
    params = frame.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None
