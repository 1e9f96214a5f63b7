"""What a client has asked a session to remember, so that a new session can be asked the same.

Lives here: subscriptions and the log level. Must not: send. Called by `streamable`, which replays it to a server that
dropped a session.
"""

from __future__ import annotations

from typing import Final

from dragoman.core.envelope import Frame
from dragoman.core.exact_json import decode, encode_line

_PREFIX: Final = "dragoman-again-"
_MOST: Final = 1000
"""How many subscriptions are remembered: a client that never takes any back must not fill our memory."""


class Standing:
    """Remembers the requests whose effect outlives them."""

    def __init__(self) -> None:
        self._level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}
        self._replays = 0

    def note(self, frame: Frame) -> None:
        """Take note of a request that a server has answered."""
        match frame.method:
            case "logging/setLevel":
                self._level = frame.raw
            case "resources/subscribe" if len(self._subscriptions) < _MOST:
                self._subscriptions[_uri(frame)] = frame.raw
            case "resources/unsubscribe":
                self._subscriptions.pop(_uri(frame), None)
            case _:
                pass

    def replay(self) -> list[Frame]:
        """Give the requests to make again, with ids of ours."""
        lines = [*([self._level] if self._level else []), *self._subscriptions.values()]
        return [self._again(line) for line in lines]

    def _again(self, line: bytes) -> Frame:
        self._replays += 1
        key = f"{_PREFIX}{self._replays}"
        body = {**decode(line), "id": key}
        return Frame(encode_line(body), "request", f'"{key}"'.encode(), body["method"], body)


def _uri(frame: Frame) -> str:
    body = decode(frame.raw) if frame.body is None else frame.body
    params = body.get("params")
    return str(params.get("uri")) if isinstance(params, dict) else ""
