"""The order in which frames go to a server, and how many may be on their way.

Lives here: what waits for what. Must not: send. Called by `transport`, which carries jobs out one by one.

First comes `initialize`, alone, then `notifications/initialized`, alone. After that, requests are sent side by side,
notifications one after the other, and responses immediately, because the server may wait for them; but each takes a
connection, and a server may ask without end, so there are few at once, and no more questions are read while others wait
for their turn. Frames that wait to be written are counted, and the receiver is asked to hold back if they are too many.
A request that was written no longer counts, however long its answer takes. One whose server waits for its client's
answer does not count among those under way: people take minutes to answer, and plain calls must not wait for them.
Of several principals none gets another place while it has as many as are left, so that there is one for the next. Nor
may the requests of one wait for places with as many bytes as are left until everybody is held back: they are refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from enum import Enum
from typing import Any, Final

from dragoman.core.calls import cancelled_key
from dragoman.core.envelope import Frame, new_frame
from dragoman.core.methods import CANCELLED, INITIALIZED, LISTEN
from dragoman.transports.upstream.answers import HttpResponse

logger = logging.getLogger("dragoman.upstream")

HIGH_WATER_BYTES: Final = 1024 * 1024
LOW_WATER_BYTES: Final = 256 * 1024
_FULL: Final = "too many requests of this client wait for the server already"
_ANSWERS: Final = 16
_ANSWERS_WAITING: Final = 64
"""How many answers to questions of a server are on their way at once; and how many wait before no more are read."""

_AFTER_CANCEL_S: Final = 5.0
"""How long the answer to a cancelled request is still read."""


class SessionPhase(Enum):
    """How far the session is."""

    OPENING = "opening"
    OPENED = "opened"
    READY = "ready"


class Delivery:
    """One frame on its way.

    Attributes:
        frame: What to send.
        cancelled: Whether the client does not wait for its answer any more.
        task: What sends it and takes its answer; none while that takes no task.
        answer: What comes of it, if it has been sent without a task.
        sent_in: In which session that was, for whoever has sent it.
        is_parked: Whether its server waits for the client's answer to a question, and its place is free meanwhile.
        park: Say whether the server waits so.
        sender: Whose share of the places it takes; listens, which do not end, have one where nobody has a name.
        context: Of whoever has said it, where what comes of it is dealt with: a connection may have been another's.
        is_sent: Whether it has been written, or will never be.
        settle: Told how many bytes wait no more, once they do; None where they never did, or do not any more.
    """

    __slots__ = (
        "answer",
        "cancelled",
        "context",
        "frame",
        "is_parked",
        "is_sent",
        "park",
        "sender",
        "sent_in",
        "settle",
        "task",
    )

    def __init__(self, frame: Frame, park: Callable[[Delivery, bool], None]) -> None:
        self.park = park
        self.is_parked = False
        self.frame = frame
        self.sender = frame.sender or (LISTEN if frame.method == LISTEN else "")
        self.context = copy_context()
        self.cancelled = False
        self.task: asyncio.Task[None] | None = None
        self.answer: HttpResponse | None = None
        self.sent_in: tuple[int, bool] | None = None
        self.is_sent = False
        self.settle: Callable[[int], None] | None = None

    def sent(self) -> None:
        """Count it no more: it has been written, or will never be."""
        self.is_sent = True
        if self.settle is not None:
            self.settle(len(self.frame.raw))
            self.settle = None


class Lanes:
    """Decides when each frame goes.

    Args:
        carry: Sends one frame and deals with its answer; must not raise.
        begin: Sends a request, if that can be done at once, and gives it an answer to come; false if `carry` has to do
            it. Whoever takes that answer calls `end` or `go_on`.
        open_requests: How many requests may be under way at once.
        parked_requests: How many more may wait for answers of clients.
        on_full: Called when more waits than should.
        on_room: Called when there is room again.
        on_unsent: Called with what was still to be sent when another `initialize` goes.
        on_refused: Called with the id of a request for which there is no room, and why.
        on_answers: Called with whether so many answers wait that the server is to be read no further.
    """

    def __init__(
        self,
        carry: Callable[[Delivery], Coroutine[Any, Any, None]],
        begin: Callable[[Delivery], bool],
        open_requests: int,
        parked_requests: int,
        on_full: Callable[[], None],
        on_room: Callable[[], None],
        on_unsent: Callable[[list[Frame]], None],
        on_refused: Callable[[bytes, str], None],
        on_answers: Callable[[bool], None],
    ) -> None:
        self.phase = SessionPhase.OPENING
        self._carry = carry
        self._start_at_once = begin
        self._free, self._parking = open_requests, parked_requests
        self._by_sender: Counter[str] = Counter()
        self._on_full = on_full
        self._on_room = on_room
        self._on_unsent = on_unsent
        self._on_refused = on_refused
        self._on_answers = on_answers
        self._answers: deque[Delivery] = deque()
        self._answering = 0
        self._full = False
        self._bytes = 0
        self._held: deque[Delivery] = deque()
        self._requests: deque[Delivery] = deque()
        self._notices: deque[Delivery] = deque()
        self._noticing = False
        self._asked: dict[bytes, Delivery] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, frame: Frame) -> None:
        """Take a frame to send."""
        if frame.kind == "request" and frame.body is not None:  # it takes more than the bytes, and nobody looks at it
            frame = new_frame(Frame, (*frame[:4], None, *frame[5:]))  # `_replace` takes five times as long
        job = Delivery(frame, self._park)
        if frame.method == "initialize":
            self._begin()
            self._launch(job)
        elif self.phase is SessionPhase.READY or frame.headers:  # a request that brings its own stands for itself
            self._admit(job)
        elif frame.method == CANCELLED and self._cancel(job):
            pass
        elif self.phase is SessionPhase.OPENED and frame.kind in ("result", "error"):
            self._answer(job)
        elif self.phase is SessionPhase.OPENED and frame.method == INITIALIZED:
            self._launch(job)
        else:
            self._held.append(job)
        if not job.is_sent:  # nearly all are, at once
            self._count(job)

    def _count(self, job: Delivery) -> None:
        job.settle = self._settle
        self._bytes += len(job.frame.raw)
        if not self._full and self._bytes > HIGH_WATER_BYTES:
            self._full = True
            self._on_full()

    def note_opened(self) -> None:
        """`initialize` has been answered."""
        self.phase = SessionPhase.OPENED

    def note_ready(self) -> None:
        """The server has taken `notifications/initialized`: everything may go."""
        if self.phase is not SessionPhase.OPENED:
            return  # a new session has begun meanwhile
        self.phase = SessionPhase.READY
        while self._held:
            self._admit(self._held.popleft())

    async def drain(self, patience_s: float) -> None:
        """Wait for what is not a request to be sent, then drop everything else."""
        self._requests.clear()
        self._answers.clear()
        for job in self._asked.values():
            if job.task is None:
                self._drop(job)
        others = {task for task in self._tasks if task not in {job.task for job in self._asked.values()}}
        if others:
            await asyncio.wait(others, timeout=patience_s)
        rest = list(self._tasks)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _begin(self) -> None:
        """Open a session, the first one or another: what the old one was not sent yet it will not be sent."""
        if self.phase is not SessionPhase.OPENING:
            unsent = [*self._held, *self._notices, *self._requests, *self._answers]
            for lane in (self._held, self._notices, self._requests, self._answers):
                lane.clear()
            for job in unsent:
                job.sent()
            asyncio.get_running_loop().call_soon(self._on_unsent, [job.frame for job in unsent])
        self.phase = SessionPhase.OPENING

    def _admit(self, job: Delivery) -> None:
        frame = job.frame
        if frame.kind == "request" and not self._requests and not job.sender and self._free > 0:
            self._start(job)
        elif frame.kind == "request" and self._has_room(job):
            self._requests.append(job)
            self._start_requests()
        elif frame.kind == "request":
            job.sent()
            asyncio.get_running_loop().call_soon(self._on_refused, frame.key or b"null", _FULL)
        elif frame.kind == "notification":
            if frame.method == CANCELLED and self._cancel(job):
                return
            self._notices.append(job)
            if not self._noticing:
                self._noticing = True
                self._spawn(self._send_notices())
        else:
            self._answer(job)

    def _has_room(self, job: Delivery) -> bool:
        """Whether a request may wait: the bytes of all that wait hold everybody back, those of one sender must not."""
        sender, left = job.frame.sender, HIGH_WATER_BYTES - self._bytes - len(job.frame.raw)
        if not sender or left > HIGH_WATER_BYTES // 2:
            return True
        waiting = sum(len(one.frame.raw) for one in self._requests if one.frame.sender == sender)
        return not waiting or waiting < left

    def _start_requests(self) -> None:
        while self._requests and (job := self._find_next()) is not None:
            self._requests.remove(job)
            self._start(job)

    def _start(self, job: Delivery) -> None:
        self._take_place(job, 1)
        key = job.frame.key
        assert key is not None
        self._asked[key] = job
        if not self._start_at_once(job):
            self._ask(job)

    def _find_next(self) -> Delivery | None:
        """Return the first request that may have a place: below 0 are free when parked ones have gone on meanwhile."""
        if self._free > 0:
            for job in self._requests:
                if not job.sender or self._by_sender[job.sender] < self._free:
                    return job
        return None

    def _take_place(self, job: Delivery, change: int) -> None:
        """Take a place for a request, or give one back (-1)."""
        self._free -= change
        if job.sender:
            self._by_sender[job.sender] += change
            if not self._by_sender[job.sender]:
                del self._by_sender[job.sender]

    def go_on(self, job: Delivery) -> None:
        """Carry a request on in a task, that has been sent without."""
        assert job.answer is not None
        job.answer.on_news = None
        self._ask(job)

    def _drop(self, job: Delivery) -> None:
        """Read nothing more of the answer to a request that has been sent without a task."""
        if job.answer is not None:
            job.answer.on_news = None
            job.answer.close()

    def end(self, job: Delivery) -> None:
        """Record that a request has been dealt with."""
        if not job.is_sent:
            job.sent()
        key = job.frame.key
        if key is not None and self._asked.get(key) is job:
            del self._asked[key]
        if job.is_parked:
            self._park(job, False)
        self._take_place(job, -1)
        if self._requests:
            self._start_requests()

    def _park(self, job: Delivery, waits: bool) -> None:
        """Free the place of a request while its server waits for an answer, if there is room; or take it again."""
        if job.answer is not None:
            job.answer.wait(waits)
        if waits is not job.is_parked and (not waits or self._parking):
            job.is_parked = waits
            change = 1 if waits else -1
            self._take_place(job, -change)
            self._parking -= change
            self._start_requests()

    def _ask(self, job: Delivery) -> None:
        """Carry a request in a task, and end it with that, even if it is cancelled before it has begun."""
        job.task = self._spawn(self._carry(job), job.context)
        job.task.add_done_callback(lambda _: self._end_task(job))

    def _end_task(self, job: Delivery) -> None:
        self._drop(job)
        self.end(job)

    async def _send_notices(self) -> None:
        try:
            while self._notices:
                job = self._notices.popleft()
                await self._run(job)
        finally:
            self._noticing = False

    def _cancel(self, notice: Delivery) -> bool:
        """Note that a request is not waited for; whether that was all, because it has not been sent."""
        key = cancelled_key(notice.frame)
        for job in self._requests:
            if job.frame.key == key:
                self._requests.remove(job)
                job.sent()
                notice.sent()
                logger.debug("a request was cancelled before it was sent")
                return True
        asked = None if key is None else self._asked.get(key)
        if asked is not None:
            asked.cancelled = True
            if asked.frame.headers:  # closing its stream is all that there is to say
                if asked.task is not None:
                    asked.task.cancel()
                else:
                    self._drop(asked)
                    self.end(asked)
                notice.sent()
                return True
            if asked.task is None:
                self.go_on(asked)
            if asked.task is not None:
                asyncio.get_running_loop().call_later(_AFTER_CANCEL_S, asked.task.cancel)
        return False

    def _answer(self, job: Delivery) -> None:
        """Send an answer to the server in its turn: at once, if there are not very many."""
        self._answers.append(job)
        self._send_answers()

    def _send_answers(self) -> None:
        while self._answers and self._answering < _ANSWERS:
            self._answering += 1
            self._launch(self._answers.popleft()).add_done_callback(self._note_answered)
        if len(self._answers) in (0, _ANSWERS_WAITING):
            self._on_answers(bool(self._answers))

    def _note_answered(self, _: asyncio.Task[None]) -> None:
        self._answering -= 1
        self._send_answers()

    def _launch(self, job: Delivery) -> asyncio.Task[None]:
        return self._spawn(self._run(job), job.context)

    async def _run(self, job: Delivery) -> None:
        try:
            await self._carry(job)
        finally:
            job.sent()

    def _spawn(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _settle(self, size: int) -> None:
        self._bytes -= size
        if self._full and self._bytes <= LOW_WATER_BYTES:
            self._full = False
            self._on_room()
