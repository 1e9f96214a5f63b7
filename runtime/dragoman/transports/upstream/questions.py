"""What a server of Streamable HTTP asks, and what becomes of the answer once the server has forgotten the session.

Lives here: in which session each question was asked, and which request waits for its answer. Must not: send. Called by
`streamable`.

An answer belongs to the session of its question: in the next one, the server may have asked something else under the
same id. So it is not sent there, and the request that waits for it will never be answered: it fails at once, however
long the server keeps its stream open. What the next session asks under that id meanwhile goes to the client under
another one, so that the two answers differ. A question that came unasked, on the stream of a GET, does not say who
waits for its answer: as long as it is open, every request that was under way may be silent, and if the session is gone
every request of that fails, for one of them does.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from dragoman.core.envelope import Frame
from dragoman.core.peek import with_id
from dragoman.core.places import keep_latest
from dragoman.transports.upstream.lanes import Delivery
from dragoman.transports.upstream.link import Link

logger = logging.getLogger("dragoman.upstream")

_MOST: Final = 1024
"""How many questions are remembered; the oldest is forgotten first."""

_GONE: Final = "its session is gone, and with it what it asked in the middle of this request"


class _Asked(NamedTuple):
    """In which session a question was asked, and on the stream of which request; None for that of a GET.

    A ping is one that no request waits for.
    """

    epoch: int
    stream: bytes | None
    is_waited_for: bool


class SessionQuestions:
    """The questions of one server, and its requests that are under way.

    Args:
        link: Where the errors for requests go.
        parked_requests: How many requests may wait for answers of clients.

    Attributes:
        epoch: How many sessions there have been.
    """

    def __init__(self, link: Link, parked_requests: int) -> None:
        self.epoch = 0
        self._most = _MOST + parked_requests
        self._gone = 0  # how many of them the server has forgotten
        self._link = link
        self._asked: dict[bytes, _Asked] = {}
        self._jobs: dict[bytes, tuple[int, Delivery]] = {}
        self._names = 0
        self._renamed: dict[bytes, bytes] = {}  # the ids of questions at the server, by those that they have here
        link.on_question = self._note
        link.on_withdrawn = self._find_name

    def begin(self, job: Delivery, epoch: int) -> None:
        """Record a request, sent in this session, whose answer is being read."""
        if job.frame.key is not None:
            self._jobs[job.frame.key] = epoch, job

    def end(self, job: Delivery) -> None:
        """Record that nothing more is read of that."""
        if job.frame.key is not None:
            self._jobs.pop(job.frame.key, None)

    def lose(self, epoch: int) -> None:
        """Record that the server has forgotten this session."""
        self._gone = max(self._gone, epoch)

    def drops(self, frame: Frame) -> bool:
        """Whether a response answers what was asked in a session that is gone: then the request that waits fails."""
        asked = self._asked.get(frame.key or b"")
        if asked is None or asked.epoch > self._gone:
            return False
        logger.warning("a response of the client not delivered: the session in which it was asked is gone")
        self.fail(frame.key)
        return True

    def at_server(self, frame: Frame) -> Frame:
        """Return an answer under the id that its question has at the server."""
        key = None if frame.method is not None else self._renamed.get(frame.key or b"")
        return frame if key is None else frame._replace(raw=with_id(frame, key), key=key, body=None)

    def _find_name(self, key: bytes) -> bytes | None:
        """Return which id the latest question has here that has this one at the server, if another one."""
        return next((ours for ours, theirs in reversed(self._renamed.items()) if theirs == key), None)

    def settle(self, key: bytes | None) -> None:
        """Record that the server has taken an answer."""
        for _, job in self._find_waiting(self._asked.pop(key or b"", None)):
            if all(other.stream not in (job.frame.key, None) for other in self._asked.values() if other.is_waited_for):
                job.park(job, False)

    def fail(self, key: bytes | None) -> None:
        """Fail what waits for an answer that the server does not take any more."""
        for _, job in self._find_waiting(self._asked.pop(key or b"", None)):
            if not job.cancelled and job.frame.key is not None:
                job.cancelled = True
                self._link.fail(job.frame.key, f"{self._link.peer}: {_GONE}")
            if job.task is not None:
                job.task.cancel()

    def _note(self, key: bytes, stream: bytes | None, is_waited_for: bool) -> bytes | None:
        epoch = self._jobs[stream][0] if stream is not None and stream in self._jobs else self.epoch
        name = None
        if (before := self._asked.get(key)) is not None and before.epoch != epoch:
            self._names += 1
            name = b'"dragoman-asked-%d"' % self._names
            keep_latest(self._renamed, name, key, self._most)
            key = name
        asked = self._asked[key] = _Asked(epoch, stream, is_waited_for)
        for _, job in self._find_waiting(asked):
            job.park(job, True)
        if len(self._asked) > self._most:
            del self._asked[next(iter(self._asked))]
        return name

    def _find_waiting(self, asked: _Asked | None) -> list[tuple[int, Delivery]]:
        """Return the requests one of which waits for the answer to a question."""
        if asked is None or not asked.is_waited_for:
            return []
        if asked.stream is not None:
            return [self._jobs[asked.stream]] if asked.stream in self._jobs else []
        return [(epoch, job) for epoch, job in self._jobs.values() if epoch == asked.epoch]
