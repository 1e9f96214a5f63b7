"""Requests whose answers come on a stream that they share, and the patience with a server that says nothing.

Lives here: one timer for all of them. Must not: send. Called by `legacy` and `websocket`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dragoman.core.calls import cancelled_key
from dragoman.core.envelope import Frame, twin_of
from dragoman.transports.countdown import Countdown
from dragoman.transports.upstream.link import Link

_CHECKS: Final = 8


class Waiting:
    """Fails requests once a server that owes answers, and waits for none, has said nothing at all for too long.

    Args:
        link: Who is told.
        idle_timeout_s: How long is too long.
    """

    def __init__(self, link: Link, idle_timeout_s: float) -> None:
        self._link = link
        self._idle_timeout_s = idle_timeout_s
        self._keys: dict[bytes, None] = {}
        self._asked: set[bytes] = set()
        link.on_question, link.on_withdrawn = self._note_question, self._asked.discard
        self._alive_at = 0.0
        self._timer = Countdown()

    def _note_question(self, key: bytes, stream: bytes | None, is_waited_for: bool) -> None:
        if is_waited_for:
            self._asked.add(key)

    def note_sent(self, frame: Frame) -> None:
        """Record what the server is sent: a request, or that the answer to one is not wanted any more."""
        if frame.kind == "request" and frame.key is not None:
            self.expect(frame.key)
        elif frame.method == "notifications/cancelled":
            self.forget(cancelled_key(frame))
        elif frame.method is None:
            self._asked.discard(frame.key or b"")

    def expect(self, key: bytes) -> None:
        """An answer to this request has to come."""
        if not self._keys:
            self.note_sign_of_life()
        self._keys[key] = None
        if not self._timer.is_set:
            self._arm()

    def forget(self, key: bytes | None) -> bool:
        """It came, or is not wanted any more; whether it was still expected."""
        if key is None:
            return False
        if key in self._keys:
            del self._keys[key]
            return True
        twin = twin_of(key)
        if twin is None or twin not in self._keys or not self._link.is_same(key, twin):
            return False
        del self._keys[twin]
        return True

    def note_sign_of_life(self) -> None:
        """Something came from the server."""
        self._alive_at = asyncio.get_running_loop().time()

    def close(self) -> None:
        """Wait no more."""
        self._keys.clear()
        self._timer.stop()

    def _arm(self) -> None:
        self._timer.set(self._idle_timeout_s / _CHECKS, self._check)

    def _check(self) -> None:
        if not self._link.reading.is_set() or self._asked:
            self.note_sign_of_life()  # it may speak, but nobody listens; or it is not its turn
        elif asyncio.get_running_loop().time() - self._alive_at >= self._idle_timeout_s:
            for key in list(self._keys):
                self._link.fail(key, f"{self._link.peer}: nothing came from it for {self._idle_timeout_s:g} s")
            self._keys.clear()
        if self._keys:
            self._arm()
