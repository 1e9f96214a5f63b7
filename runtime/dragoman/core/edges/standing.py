"""What a session has been asked to remember: a new session is asked the same.

Lives here: subscriptions and the log level. Must not: send. Called by `renewal`, which asks a new session again.
"""

from __future__ import annotations

from typing import Final

from dragoman.core.envelope import Frame, classify, to_keep
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE

_PREFIX: Final = "dragoman-again-"
_MOST: Final = 1000
"""How many subscriptions are remembered: a client that never takes any back must not fill our memory."""


NOTED: Final = frozenset({SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
"""What may leave something behind; arrays may hold it too."""


class Standing:
    """Remembers the requests whose effect outlives them."""

    __slots__ = ("_level", "_replays", "_subscriptions")

    def __init__(self) -> None:
        self._level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}
        self._replays = 0

    def note(self, frame: Frame) -> None:
        """Take note of what is sent; most of it leaves nothing behind."""
        if frame.kind == "batch":
            for member in _members(frame):
                self.note(member)
        elif frame.method not in NOTED or frame.kind != "request":
            return
        elif frame.method == SET_LEVEL:
            self._level = to_keep(frame.raw)
        elif (uri := _uri(frame)) is None:
            return
        elif frame.method == UNSUBSCRIBE:
            self._subscriptions.pop(uri, None)
        elif len(self._subscriptions) < _MOST:
            self._subscriptions[uri] = to_keep(frame.raw)

    def forget(self, frame: Frame) -> None:
        """Take note that a request was not looked at: whoever sends it again says so."""
        if frame.method == SET_LEVEL and self._level == frame.raw:
            self._level = None
        elif frame.method == SUBSCRIBE and (uri := _uri(frame)) and self._subscriptions.get(uri) == frame.raw:
            del self._subscriptions[uri]

    @property
    def subscribed(self) -> list[str]:
        """The resources that are subscribed to."""
        return list(self._subscriptions)

    def replay(self) -> list[Frame]:
        """Give the requests to make again, with ids of ours."""
        lines = [*([self._level] if self._level else []), *self._subscriptions.values()]
        return [self._again(line) for line in lines]

    def _again(self, line: bytes) -> Frame:
        self._replays += 1
        key = f"{_PREFIX}{self._replays}"
        body = {**decode(line), "id": key}
        return Frame(encode_line(body), "request", f'"{key}"'.encode(), body["method"])


def _members(batch: Frame) -> list[Frame]:
    try:
        body = decode(batch.raw) if batch.body is None else batch.body
    except ValueError:
        return []
    members = [classify(encode_line(member), member) for member in body]
    return [member for member in members if isinstance(member, Frame)]


def _uri(frame: Frame) -> str | None:
    try:
        body = decode(frame.raw) if frame.body is None else frame.body
    except ValueError:  # it was only peeked at, and the server will say so
        return None
    params = body.get("params")
    return str(params.get("uri")) if isinstance(params, dict) else ""
