"""Frames that come before a client's session is open: some wait, others are answered at once.

Lives here: which frames of which peer may wait, and the answers that cannot wait. Must not: know the steps of the
handshake (`greeting`) or whether the session is open (`front`, which calls this).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from dragoman.core.batches import Batch
from dragoman.core.calls import cancelled_key
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.commands import Side
from dragoman.core.edges.failures import connection_closed
from dragoman.core.edges.greeting import read_per_request_revision, refuse_per_request
from dragoman.core.edges.lifecycle import FrontState
from dragoman.core.envelope import Frame, Refusal, error_frame, result_frame, rewrite
from dragoman.core.waiting import WaitingRoom, request_keys

logger = logging.getLogger("dragoman.session")


class EarlyFrames:
    """What came too early, by side.

    Args:
        post: Called with (side, frame) for every answer.
        limit_frames: How many frames of each peer may wait.
        limit_bytes: How many bytes they may have together.
    """

    __slots__ = ("_post", "_rooms")

    def __init__(self, post: Callable[[Side, Frame], None], limit_frames: int, limit_bytes: int) -> None:
        self._post = post
        self._rooms = {side: WaitingRoom(limit_frames, limit_bytes) for side in Side}

    def take_client(self, frame: Frame, state: FrontState) -> bool:
        """Deal with a frame of the client that is not part of the handshake; False if it has no business here."""
        is_request = frame.kind == "request"
        if frame.method == "notifications/cancelled":
            self._rooms[Side.CLIENT].remove(cancelled_key(frame) or b"")
        elif state is FrontState.CONNECTING and not is_request:
            logger.warning("%s %s of the client dropped: it came before initialize", frame.method or "a", frame.kind)
            return frame.kind != "batch"
        elif state is FrontState.CONNECTING and (revision := read_per_request_revision(frame)):
            self.reply(Side.CLIENT, frame, refuse_per_request(frame, revision))
        else:
            self.wait(Side.CLIENT, frame)
        return True

    def take_server(self, frame: Frame, state: FrontState) -> bool:
        """Deal with a frame of the server while the session is not open; False where it may pass all the same."""
        is_request = frame.kind == "request"
        if state is FrontState.FAILED:
            logger.debug("%s of the server dropped: the session failed", frame.kind)
        elif not is_request:
            return False
        elif frame.method == "ping":
            self.answer_ping(Side.SERVER, frame)
        elif state in (FrontState.CLOSING, FrontState.CLOSED):
            self.reply(Side.SERVER, frame, connection_closed("the client has closed").answer(frame.key))
        else:
            self.wait(Side.SERVER, frame)
        return True

    def wait(self, side: Side, frame: Frame) -> None:
        """Let a frame wait until the session is open, if there is room."""
        if not self._rooms[side].add(frame):
            logger.warning("%s %s of the %s dropped: too many frames wait", frame.method, frame.kind, side.value)
            if frame.kind == "request":
                message = "too many frames wait for the end of initialisation"
                self.reply(side, frame, error_frame(frame.key, CONNECTION_CLOSED, message))

    def answer_ping(self, side: Side, frame: Frame) -> None:
        """Answer a ping, which either side may send at any time (lifecycle, Initialization)."""
        self.reply(side, frame, result_frame(frame.key or b"null", {}))

    def reply(self, side: Side, frame: Frame, answer: Frame) -> None:
        """Answer a request in the place of the other peer."""
        logger.debug("%s request of the %s answered by the proxy", frame.method, side.value)
        self._post(side, answer)

    def take_all(self, side: Side) -> list[Frame]:
        """Take out what waits, in order."""
        return self._rooms[side].take_all()

    def fail_all(self, failure: Refusal) -> None:
        """Answer every request of the client that waits with an error, and forget the rest."""
        for frame in self._rooms[Side.CLIENT].take_all():
            self.refuse(frame, failure)

    def refuse(self, frame: Frame, failure: Refusal) -> Frame | None:
        """Answer a request of the client, or those of an array, with an error.

        Returns:
            What is left: the frame if it is neither, or the members of an array that are no requests; None for nothing.
        """
        if frame.kind == "request":
            self.reply(Side.CLIENT, frame, failure.answer_to(frame))
            return None
        if frame.kind != "batch":
            return frame
        keys = request_keys(frame)
        batch = Batch(len(keys))
        for key in keys:
            whole = batch.answer(failure.answer(key))
            if whole is not None:
                self._post(Side.CLIENT, whole)
        rest = [member for member in frame.body if not (isinstance(member, dict) and {"id", "method"} <= member.keys())]
        return rewrite(frame, rest) if rest else None
