"""How a server that has forgotten the session gets another one.

Lives here: what an upstream edge does then, by the table `lifecycle.UPSTREAM`. Must not: know what is carried over
(`renewal`). The base of `upstream.UpstreamEdge`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from dragoman.core.commands import Outbox
from dragoman.core.edges.lifecycle import UpstreamEvent, UpstreamState
from dragoman.core.edges.renewal import Renewal, fail
from dragoman.core.envelope import Frame, Malformed, Refusal, result_frame

logger = logging.getLogger("dragoman.session")

_WITHOUT_SESSION: Final = (
    UpstreamState.RENEWING,
    UpstreamState.RESTORING,
    UpstreamState.DROPPED,
    UpstreamState.RESTARTING,
)
"""Where the session is gone, and what clients say waits for another one."""

_PING: Final = ("request", "ping")


class Renewing:
    """The part of an upstream edge that outlives a session."""

    __slots__ = ("_failure", "_renewal")

    state: UpstreamState
    revision: str | None
    outgoing: list[Frame]
    _outbox: Outbox
    _renewal: Renewal | None
    _failure: Refusal | None

    def send(self, frame: Frame) -> None:
        """Write a frame to the server."""
        raise NotImplementedError

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        raise NotImplementedError

    def _tell(self, frame: Frame | Malformed) -> None:
        raise NotImplementedError

    def _advance(self, event: UpstreamEvent) -> None:
        raise NotImplementedError

    def _is_another(self) -> bool:
        """Whether the server that gets a new session is another process than the one that had the old one."""
        raise NotImplementedError

    def expects(self, frame: Frame) -> bool:
        """Whether a frame answers what this edge has asked by itself, to have a new session."""
        return self._renewal is not None and self._renewal.is_answer(frame)

    def lose_session(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """Take note that the server has forgotten the session.

        Args:
            frame: What it was sent in that session and did not look at; None: it says so on its own.
            error: What answers that frame, if nobody sends it again.
            renewed: Whether there is a newer session already: then this is late news.
        """
        state, renewal = self.state, self._renewal
        if renewal is None or (frame is not None and renewal.is_repeated(frame)):
            self._give_up(frame, error)
            return
        if error is not None and renewal.is_answer(error):
            self.take(error)  # what the new session is asked again for: it is not opened anew because of that
            return
        for answer in [] if frame is None else renewal.keep(frame, given_back=True):
            self._tell(answer)
        if state is UpstreamState.DROPPED:
            self._advance(UpstreamEvent.NEEDED)
        elif not renewed and (state is not UpstreamState.RESTORING or frame is None):
            self._advance(UpstreamEvent.SESSION_LOST)
        elif renewed and state is UpstreamState.READY:
            self._send_kept()

    def take_back(self, frames: Sequence[Frame]) -> None:
        """Take back what was still to be sent in a session that is gone: it goes in the next one."""
        for frame in frames:
            if self._renewal is not None:
                self._renewal.standing.forget(frame)
            self.send(frame)

    def _give_up(self, frame: Frame | None, error: Frame | None) -> None:
        if error is not None:
            self._tell(error)
        elif frame is not None:
            logger.warning("%s of the client not delivered: its session is gone", frame.method or "a response")

    def _keep(self, frame: Frame, renewal: Renewal) -> bool:
        """Let a frame wait for another session; False if it does not have to."""
        if self.state not in _WITHOUT_SESSION:
            return False
        if frame.kind in ("result", "error") and (self.state is UpstreamState.RESTORING or not self._is_another()):
            return False  # it may be about what the server is asked, or else the transport knows that nobody waits
        for answer in renewal.keep(frame):
            self._tell(answer)
        if self.state is UpstreamState.DROPPED and frame.kind not in ("result", "error"):
            self._advance(UpstreamEvent.NEEDED)
        return True

    def _take_renewal(self, frame: Frame | Malformed) -> bool:
        """Take what the server says while it gets a new session; False if that is not about the session."""
        renewal, state = self._renewal, self.state
        if renewal is None or state not in _WITHOUT_SESSION:
            return False
        if state is UpstreamState.RENEWING and isinstance(frame, Frame) and (frame.kind, frame.method) == _PING:
            self._outbox.post(self, result_frame(frame.key or b"null", {}))
            return True
        if not renewal.is_answer(frame):
            return False
        if state is UpstreamState.RESTORING:
            if isinstance(frame, Malformed) or frame.kind == "error":
                logger.warning("%s", renewal.explain_unasked(frame))
            self._ask_next()
            return True
        self._failure = renewal.read_answer(frame, self.revision)
        if self._failure is not None:
            logger.warning("%s", self._failure.message)
        self._advance(UpstreamEvent.RENEWED if self._failure is None else UpstreamEvent.NOT_RENEWED)
        return True

    def _ask_next(self) -> None:
        assert self._renewal is not None
        frame = self._renewal.ask_next()
        if frame is None:
            self._advance(UpstreamEvent.RESTORED)
        else:
            self._outbox.post(self, frame)

    # Actions of the table

    def _offer_again(self) -> None:
        assert self._renewal is not None
        logger.warning("the session with the server is gone; opening a new one")
        self._renewal.begin()
        self._outbox.post(self, self._renewal.offered)

    def _announce_again(self) -> None:
        assert self._renewal is not None
        self._outbox.post(self, self._renewal.announced)

    def _ask_again(self) -> None:
        assert self._renewal is not None
        self._renewal.stand()
        self._ask_next()

    def _send_kept(self) -> None:
        assert self._renewal is not None
        for frame in self._renewal.take_kept():
            self.send(frame)

    def _fail_kept(self) -> None:
        assert self._renewal is not None
        assert self._failure is not None
        for frame in self._renewal.take_failed():
            for answer in fail(frame, self._failure):
                self._tell(answer)
        if self._renewal.keeps:
            self._advance(UpstreamEvent.NEEDED)
