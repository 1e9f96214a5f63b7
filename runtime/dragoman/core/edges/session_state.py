"""What a session has been asked to remember, subscriptions and the log level: a new session is asked the same."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from dragoman.core.envelope import Frame, classify, decoded, key_of, read_params, to_keep
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE

_PREFIX: Final = "dragoman-again-"
_MOST: Final = 1000
"""How many requests are remembered: a client that never takes a subscription back must not fill our memory."""

AGAIN_S: Final = 5.0
"""How long a server is waited for with what it is asked again, in all: what clients want meanwhile waits, too."""

NOTED: Final = frozenset({SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE})
"""What may leave something behind; arrays may hold it too."""


class SessionState:
    """Remembers the requests whose effect outlives them."""

    __slots__ = ("_lines", "_replays")

    def __init__(self) -> None:
        self._lines: dict[str, bytes] = {}  # by the resource that is subscribed to; the log level under ""
        self._replays = 0

    def note(self, frame: Frame) -> None:
        """Remember what is sent; most of it leaves nothing behind."""
        if frame.kind == "batch":
            for member in decoded(frame).body:
                if isinstance(told := classify(encode_line(member), member), Frame):
                    self.note(told)
        elif frame.kind != "request" or frame.method not in NOTED or (subject := _subject(frame)) is None:
            return
        elif frame.method == UNSUBSCRIBE:
            self._lines.pop(subject, None)
        elif len(self._lines) < _MOST or subject in self._lines:
            self._lines[subject] = to_keep(frame.raw)

    def forget(self, frame: Frame) -> None:
        """Forget a request that was not looked at: whoever sends it again says so."""
        subject = _subject(frame) if frame.method in NOTED else None
        if subject is not None and self._lines.get(subject) == frame.raw:
            del self._lines[subject]

    def drop(self, uri: str) -> None:
        """Forget a resource that nobody wants: the request for it has failed."""
        self._lines.pop(uri, None)

    def fail(self, keys: Container[bytes]) -> None:
        """Forget the resources for which these requests are: they have failed, so nobody is subscribed by them."""
        for uri in self.subscribed:
            if key_of(decode(self._lines[uri]).get("id")) in keys:
                del self._lines[uri]

    @property
    def subscribed(self) -> list[str]:
        """The resources that are subscribed to."""
        return [subject for subject in self._lines if subject]

    def replay(self) -> list[Frame]:
        """The requests to make again, with ids of ours."""
        return [self._again(line) for line in self._lines.values()]

    def _again(self, line: bytes) -> Frame:
        self._replays += 1
        key = f"{_PREFIX}{self._replays}"
        body = {**decode(line), "id": key}
        return Frame(encode_line(body), "request", f'"{key}"'.encode(), body["method"])


def _subject(frame: Frame) -> str | None:
    """Which resource a request is about, "" for the log level; None where that cannot be read: the server says so."""
    params = read_params(frame)
    if frame.method == SET_LEVEL:
        return "" if "level" in params else None
    return str(params["uri"]) if params.get("uri") else None
