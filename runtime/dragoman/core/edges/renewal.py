"""What is carried over when a server has dropped its session and gets a new one.

Lives here: the `initialize` to send again, what was set up (`standing`), and the frames that wait meanwhile. Must not:
decide when (the table in `lifecycle`), or send. Called by `upstream`.

A server that answers "no such session" has not looked at the frame, so the frame can be sent again. This is done once,
because a server may answer every session like this. A response is not sent again: in the new session, the server has
not asked, or has asked something else under the same id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from dragoman.core.calls import cancelled_key
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.edges.offer import WORDS_SHOWN
from dragoman.core.edges.standing import Standing
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded, to_keep, twin_of
from dragoman.core.methods import INITIALIZED
from dragoman.core.settings import Settings
from dragoman.core.unchecked import find_object
from dragoman.core.waiting import WaitingRoom, request_keys

logger = logging.getLogger("dragoman.session")

_MOST: Final = 16 * 1024
"""How many frames may wait for a new session: a client may have thousands of requests under way."""


class Renewal:
    """What is kept for the case that the server drops the session, and what waits while a new one is opened.

    Args:
        settings: With the limits.
        offered: The `initialize` that the server has accepted.
        announced: The `initialized` that followed.

    Attributes:
        offered: The same `initialize`, for the next session.
        announced: The same `initialized`.
        standing: What the session was asked to remember.
        capabilities: What the server declared when it last got a new session.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_given_back",
        "_meanwhile",
        "_repeated",
        "_repeated_before",
        "_settings",
        "_waited",
        "announced",
        "capabilities",
        "offered",
        "standing",
    )

    def __init__(self, settings: Settings, offered: Frame, announced: Frame) -> None:
        self.offered = offered._replace(raw=to_keep(offered.raw), body=None)
        self.announced = announced._replace(raw=to_keep(announced.raw), body=None)
        self.standing = Standing()
        self.capabilities: dict[str, Any] = {}
        self._settings = settings
        self._given_back = WaitingRoom(_MOST, settings.queue_bytes)
        self._meanwhile = WaitingRoom(_MOST, settings.queue_bytes)
        self._repeated: dict[bytes | int, Frame] = {}  # what this session has been sent again
        self._repeated_before: dict[bytes | int, Frame] = {}  # what the one before it has: its word on that may be late
        self._waited = 0  # how much of what came meanwhile was there when `initialize` was offered
        self._again: Iterator[Frame] = iter(())
        self._asked: Frame | None = None

    # What waits

    def keep(self, frame: Frame, given_back: bool = False) -> list[Frame]:
        """Let a frame wait for the next session.

        Args:
            frame: The client's.
            given_back: Whether the old session has not looked at it; else it came meanwhile.

        Returns:
            The errors for requests that cannot wait, because too much does.
        """
        if frame.kind in ("result", "error"):
            logger.warning("a response of the client not delivered: the session in which it asked is gone")
        elif frame.method == "notifications/cancelled" and self._remove(cancelled_key(frame)):
            logger.debug("a request was cancelled before it was sent again")
        elif frame.method != INITIALIZED:
            if given_back:
                self.standing.forget(frame)
            room = self._given_back if given_back else self._meanwhile
            if not room.add(frame):
                return fail(frame, Refusal(CONNECTION_CLOSED, "too many frames wait for the server's new session", {}))
        return []

    def take_kept(self) -> list[Frame]:
        """Take out what waits: first what was sent already, which is not sent a third time."""
        again = self._given_back.take_all()
        for frame in again:
            self._repeated[_name(frame)] = frame
        return [*again, *self._meanwhile.take_all()]

    def take_failed(self) -> list[Frame]:
        """Take out what waited when `initialize` was offered; what came since gets an offer of its own."""
        meanwhile = self._meanwhile.take_all()
        for frame in meanwhile[self._waited :]:
            self._meanwhile.add(frame)
        return [*self._given_back.take_all(), *meanwhile[: self._waited]]

    @property
    def keeps(self) -> bool:
        """Whether anything waits."""
        return bool(self._given_back) or bool(self._meanwhile)

    def is_repeated(self, frame: Frame) -> bool:
        """Whether this frame has been sent again already."""
        name = _name(frame)
        return name in self._repeated or name in self._repeated_before

    def _remove(self, key: bytes | None) -> bool:
        return key is not None and (self._given_back.remove(key) or self._meanwhile.remove(key))

    # What the new session is asked

    def begin(self) -> None:
        """Take note that `initialize` is offered again."""
        self._repeated_before, self._repeated = self._repeated, {_name(self.announced): self.announced}
        self._waited = len(self._meanwhile)
        self._asked = self.offered

    def read_answer(self, answer: Frame | Malformed, revision: str | None) -> Refusal | None:
        """Read the answer to the `initialize` that was offered again.

        Args:
            answer: What the server said.
            revision: What it spoke before.

        Returns:
            Why there is no new session, if there is none.
        """
        self._asked = None
        if isinstance(answer, Malformed):
            return _explain(f"its answer to initialize is not a response: {answer.reason}")
        try:
            body = decoded(answer).body
        except ValueError as error:
            return _explain(f"its answer to initialize cannot be read: {error}")
        member = body["error" if answer.kind == "error" else "result"]
        if not isinstance(member, dict):
            return _explain("its answer to initialize is not an object")
        if answer.kind == "error":
            return _explain(str(member.get("message", "")), member.get("code"), find_object(member, "data"))
        named = member.get("protocolVersion")
        self.capabilities = find_object(member, "capabilities")
        return None if named == revision else _explain(f"in a new session it speaks {named}, not {revision}")

    def stand(self) -> None:
        """Ask the new session for what the old one was asked to remember."""
        self._again = iter(self.standing.replay())

    def ask_next(self) -> Frame | None:
        """Give the next thing to ask the new session for; None when it has been asked for all."""
        self._asked = next(self._again, None)
        return self._asked

    def explain_unasked(self, answer: Frame | Malformed) -> str:
        """Say what the new session was not asked again for, and why."""
        method = "" if self._asked is None else self._asked.method
        if isinstance(answer, Malformed):
            return f"{method} not repeated in the new session: {answer.reason}"
        return f"{method} not repeated in the new session: {answer.raw[:WORDS_SHOWN].decode(errors='replace').strip()}"

    def is_answer(self, frame: Frame | Malformed) -> bool:
        """Whether it answers what the edge itself has asked: clients hear nothing of that."""
        asked = None if self._asked is None else self._asked.key
        if asked is None or frame.key is None:
            return False
        is_response = frame.is_response if isinstance(frame, Malformed) else frame.kind in ("result", "error")
        return is_response and (frame.key == asked or (self._settings.restore_ids and frame.key == twin_of(asked)))


def fail(frame: Frame, failure: Refusal) -> list[Frame]:
    """Give the errors that answer the requests in a frame."""
    keys = request_keys(decoded(frame) if frame.kind == "batch" else frame)
    if not keys:
        logger.warning("%s of the client not delivered: %s", frame.method or frame.kind, failure.message)
    return [failure.answer(key) for key in keys]


def _name(frame: Frame) -> bytes | int:
    """Give what a frame is known by: a request by its id, anything else by itself."""
    return id(frame) if frame.kind != "request" or frame.key is None else frame.key


def _explain(reason: str, code: Any = None, data: dict[str, Any] | None = None) -> Refusal:
    message = f"the session with the server is gone, and a new one cannot be opened: {reason}"
    return Refusal(code if isinstance(code, int) else CONNECTION_CLOSED, message, data or {})
