"""What a server with a handshake says once its session is open: to whom each frame goes.

Lives here: telling its requests, notifications and answers apart. Must not: know what is made of them. Called by
`switch`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from dragoman.core.bridge.names import INTERNAL_ERROR
from dragoman.core.commands import Side
from dragoman.core.edges.per_request_front import CANCELLED
from dragoman.core.envelope import Frame, Malformed, classify
from dragoman.core.exchange import Exchange
from dragoman.core.switch.to_handshake.asking import Asking
from dragoman.core.switch.to_handshake.hearing import ServerNotices
from dragoman.core.switch.to_handshake.native import ServerTasks
from dragoman.core.switch.to_handshake.works import Work, Works

logger = logging.getLogger("dragoman.bridge")


class ServerFrames:
    """Hands on what one server says.

    Args:
        works: What it is at work on.
        asking: Takes its requests.
        hearing: Takes its notifications.
        tasks: Its tasks.
        exchange: Counts what goes nowhere.
        take_answer: Takes the answers that clients get.
    """

    __slots__ = ("_asking", "_exchange", "_hearing", "_take_answer", "_tasks", "_works")

    def __init__(
        self,
        works: Works,
        asking: Asking,
        hearing: ServerNotices,
        tasks: ServerTasks,
        exchange: Exchange,
        take_answer: Callable[[Work, Frame], None],
    ) -> None:
        self._works = works
        self._asking = asking
        self._hearing = hearing
        self._tasks = tasks
        self._exchange = exchange
        self._take_answer = take_answer

    def take(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if isinstance(frame, Malformed):
            self._take_malformed(frame)
        elif frame.kind == "batch":
            for member in frame.body:
                self.take(classify(b"", member, frame.stream))
        elif frame.kind == "request":
            self._asking.take(frame)
        elif frame.method == CANCELLED:
            self._asking.withdraw(frame)
        elif frame.kind == "notification":
            self._hearing.take(frame)
        else:
            self._take_response(frame)

    def _take_malformed(self, malformed: Malformed) -> None:
        self._exchange.reject(Side.SERVER, malformed)
        work = self._works.find(malformed.key) if malformed.is_response else None
        if work is not None:
            message = f"the server answered with something that is not a response: {malformed.reason}"
            error = {"code": INTERNAL_ERROR, "message": message}
            self._take_response(Frame(b"", "error", work.key, None, {"jsonrpc": "2.0", "id": 0, "error": error}))

    def _take_response(self, frame: Frame) -> None:
        work, hook = (None, None) if frame.key is None else self._works.take_answered(frame.key)
        if hook is not None:
            hook(frame)
        elif work is None:
            self._exchange.counters.unmatched += 1
            logger.debug("the server answered what nobody asked, or what was answered")
        elif not self._tasks.follow(work, frame):
            is_for_now = self._asking.finish(work, frame)
            self._works.finish(work)
            if is_for_now:
                self._take_answer(work, frame)
