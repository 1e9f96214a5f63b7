"""What a catalogue asks servers on its own behalf, and what it tells the client again and again.

Lives here: requests under ids of ours, and notices that a list has changed. Must not: know what is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from dragoman.core.calls import cancellation
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.envelope import Frame, decoded, error_frame, notification_frame, request_frame
from dragoman.core.switch.catalogue.common import Common
from dragoman.core.switch.catalogue.member import Member

logger = logging.getLogger("dragoman.router")


_CHANGE_PAUSE_S: Final = 0.5
"""How long the client is not told again that the same has changed: a server may say it without end."""


class OwnRequests:
    """The requests of our own that are not answered.

    Args:
        common: What all parts know.
        mark: Is in each id of ours, so that no request of the client has one of them.
    """

    def __init__(self, common: Common, mark: str) -> None:
        self._common = common
        self._mark = mark.encode()
        self._waiting: dict[bytes, tuple[Member, Callable[[Frame], None]]] = {}
        self._last = 0

    def next_key(self) -> bytes:
        """Return an id that was never used."""
        self._last += 1
        return b'"dragoman/%b/%d"' % (self._mark, self._last)

    def send(
        self,
        member: Member,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[Frame], None],
        meta: Mapping[str, Any] | None = None,
        key: bytes | None = None,
    ) -> bytes:
        """Ask a server something, under this id or the next; give the id. The answer may come before this returns."""
        key = key or self.next_key()
        self._waiting[key] = (member, then)
        asked = dict(params) if meta is None else {**params, "_meta": dict(meta)}
        self._common.outside.tell_member(member, request_frame(key, method, asked))
        return key

    def withdraw(self, key: bytes, reason: str) -> None:
        """Take back what is not answered yet."""
        member, _ = self._waiting.pop(key)
        self._common.outside.tell_member(member, cancellation(key, reason))

    def is_waiting(self, key: bytes | None) -> bool:
        """Whether this is the id of one of them."""
        return key in self._waiting

    def take_answer(self, member: Member, frame: Frame) -> None:
        """Take an answer."""
        key = frame.key or b""
        found = self._waiting.get(key)
        if found is None or found[0] is not member:
            logger.debug("%s answered what nobody waits for", member.name)
            return
        del self._waiting[key]
        found[1](frame)

    def forget(self, member: Member, reason: str) -> None:
        """Answer what a server will not answer any more."""
        for key in [key for key, (other, _) in self._waiting.items() if other is member]:
            _, then = self._waiting.pop(key)
            then(error_frame(key, CONNECTION_CLOSED, f"{member.name} is gone: {reason}"))


class Changes:
    """Notices of changed lists: one for many that come at once.

    Args:
        common: What all parts know.
    """

    def __init__(self, common: Common) -> None:
        self._common = common
        self._quiet: set[str] = set()
        self._missed: set[str] = set()

    def tell(self, method: str) -> None:
        """Tell the client with this notification that a list has changed."""
        if method in self._quiet:
            self._missed.add(method)
            return
        self._quiet.add(method)
        self._common.outside.remind(_CHANGE_PAUSE_S, partial(self._expire, method))
        if self._common.tell_streams is not None:
            self._common.tell_streams(method)
        elif self._common.initialized is not None:
            self._common.outside.tell_client(notification_frame(method, None))

    def _expire(self, method: str) -> None:
        self._quiet.discard(method)
        if method in self._missed:
            self._missed.discard(method)
            self.tell(method)


def read_error(frame: Frame) -> dict[str, Any]:
    """Return the error of an answer, whatever stands there in its place."""
    try:
        error = decoded(frame).body["error"]
    except ValueError as fault:
        return {"message": f"an error that cannot be read: {fault}"}
    return error if isinstance(error, dict) else {"message": "an error that is not an object"}


def read_result(frame: Frame) -> dict[str, Any]:
    """Return the result of an answer.

    Raises:
        ValueError: It cannot be read, or is not an object.
    """
    result = decoded(frame).body["result"]
    if not isinstance(result, dict):
        raise ValueError("expected result to be an object")
    return result
