"""Runs middleware for a host.

Lives here: tasks, their order and their time. Must not: decide what becomes of a request (`core.around`). Used by
`host`, where there is middleware.

Order. What one peer says goes through a queue: a notification is handed on, or dropped, before anything that came
after it goes to middleware or, if it is an answer, back to it. A request, and what is done with an answer, holds
nothing up. So no notification is overtaken; requests and answers may be.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.commands import ClientEdge, HeldFrame, HeldPhase, Side
from dragoman.core.envelope import Frame, error_frame
from dragoman.core.label import LABEL, PRINCIPAL
from dragoman.middleware import Answer, Message, Middleware, NoticeMiddleware

if TYPE_CHECKING:
    from dragoman.host.host import Host

logger = logging.getLogger("dragoman.middleware")

TOO_MUCH: Final = -32000
"""The implementation-defined code for a request that would have to wait for too much, or that took too long."""

QUEUE_FRAMES: Final = 1024
QUEUE_BYTES: Final = 16 * 1024 * 1024
"""How much of one peer may wait for middleware to hand a notification on."""


@dataclass(slots=True, eq=False)
class HeldRequest:
    """A request that middleware has.

    Attributes:
        held_frame: The request.
        answer: What its peer answers.
        context: Says whose session it is, for the log.
        task: Runs the chain, once it is the request's turn.
        timer: Ends that.
    """

    held_frame: HeldFrame
    answer: asyncio.Future[Frame]
    context: contextvars.Context
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True, eq=False)
class PeerQueue:
    """What one peer of a session has said, in order, behind a notification that middleware has.

    Attributes:
        notice: Hands that notification on.
        steps: What waits, with its size.
        size: How many bytes that is.
    """

    notice: asyncio.Task[None] | None = None
    steps: deque[tuple[Callable[[], None], int]] = field(default_factory=deque)
    size: int = 0


class Chains:
    """The middleware of one host.

    Args:
        host: Whose.
        requests: Around requests, the outermost first.
        notices: Around notifications, the outermost first.
        timeout_s: How long it may take for each, beside the time that the peer takes to answer.
    """

    def __init__(
        self, host: Host, requests: Sequence[Middleware], notices: Sequence[NoticeMiddleware], timeout_s: float
    ) -> None:
        self._host = host
        self._requests = requests
        self._notices = notices
        self._timeout_s = timeout_s
        self._running: dict[HeldFrame, HeldRequest] = {}
        self._queues: dict[tuple[ClientEdge, Side], PeerQueue] = {}

    # Commands

    def run(self, held_frame: HeldFrame) -> None:
        """Let middleware have a request or notification."""
        queue = self._queue_of(held_frame.front, held_frame.side)
        size = len(held_frame.frame.raw)
        call = held_frame.call
        if len(queue.steps) >= QUEUE_FRAMES or queue.size + size > QUEUE_BYTES:
            reason = "too much waits for a middleware to hand a notification on"
            logger.warning("%s %s dropped: %s", held_frame.frame.method, held_frame.frame.kind, reason)
            if call is not None:
                answer = error_frame(call.key, TOO_MUCH, reason, {"method": call.method})
                now = asyncio.get_running_loop().call_soon  # and not while another command is carried out
                now(self._host.perform, held_frame.conclude, answer)
        elif call is None:
            self._queue(queue, lambda: self._begin_notice(queue, held_frame), size)
        else:
            answer_to_come = asyncio.get_running_loop().create_future()
            running = HeldRequest(held_frame, answer_to_come, self._context(held_frame.front))
            self._running[held_frame] = running
            self._queue(queue, lambda: self._begin_request(running), size)

    def settle(self, held_frame: HeldFrame, frame: Frame) -> None:
        """Give middleware the answer to a request."""
        running = self._running.get(held_frame)
        if running is not None:
            queue = self._queue_of(held_frame.front, held_frame.side.other)
            self._queue(queue, lambda: self._hand_back(running, frame), len(frame.raw))

    def abandon(self, held_frame: HeldFrame) -> None:
        """Stop what is done with a request."""
        running = self._running.pop(held_frame, None)
        if running is not None:
            _stop(running)

    def drop(self, front: ClientEdge) -> None:
        """Stop everything of a session that is over."""
        for held_frame in [held_frame for held_frame in self._running if held_frame.front is front]:
            held_frame.end()
            self.abandon(held_frame)
        for side in Side:
            queue = self._queues.pop((front, side), None)
            if queue is not None:
                queue.steps.clear()
                if queue.notice is not None:
                    queue.notice.cancel()

    # Order

    def _queue_of(self, front: ClientEdge, side: Side) -> PeerQueue:
        return self._queues.setdefault((front, side), PeerQueue())

    def _queue(self, queue: PeerQueue, step: Callable[[], None], size: int) -> None:
        if queue.notice is None:
            step()
        else:
            queue.steps.append((step, size))
            queue.size += size

    def _go_on(self, queue: PeerQueue, _: asyncio.Task[None]) -> None:
        queue.notice = None
        while queue.steps and queue.notice is None:
            step, size = queue.steps.popleft()
            queue.size -= size
            step()

    # Notifications

    def _begin_notice(self, queue: PeerQueue, held_frame: HeldFrame) -> None:
        context = self._context(held_frame.front)
        queue.notice = asyncio.get_running_loop().create_task(self._run_notice(held_frame), context=context)
        queue.notice.add_done_callback(lambda task: self._go_on(queue, task))

    async def _run_notice(self, held_frame: HeldFrame) -> None:
        async def hand_on(message: Message) -> None:
            _check_first(held_frame)
            if (held_frame.front, held_frame.side) in self._queues:  # the session may have ended in this very moment
                self._host.perform(held_frame.proceed, message.frame)

        proceed: Callable[[Message], Awaitable[None]] = hand_on
        for one in reversed(self._notices):
            proceed = _before(one, proceed)
        task = asyncio.ensure_future(proceed(self._message(held_frame)))
        try:
            await asyncio.wait((task,), timeout=self._timeout_s)
        finally:
            was_handed_on = held_frame.phase is HeldPhase.OVER
            held_frame.end()
            if not task.done():
                task.cancel()
        outcome = "afterwards" if was_handed_on else "and is dropped"
        if not task.done():
            words = "a middleware has not let %s go on within %g s: it is stopped, %s"
            logger.warning(words, held_frame.frame.method, self._timeout_s, outcome)
        elif not task.cancelled() and (error := task.exception()) is not None:
            self._explain(held_frame, error)

    # Requests

    def _begin_request(self, running: HeldRequest) -> None:
        if running.held_frame.phase is HeldPhase.HELD:
            coroutine = self._run_request(running)
            running.task = asyncio.get_running_loop().create_task(coroutine, context=running.context)
            self._start_timer(running)

    async def _run_request(self, running: HeldRequest) -> None:
        held_frame = running.held_frame
        call = held_frame.call
        assert call is not None, "a notification has no answer"

        async def ask(message: Message) -> Answer:
            _check_first(held_frame)
            _stop_timer(running)
            self._host.perform(held_frame.proceed, message.frame)
            return Answer(await running.answer)

        proceed: Callable[[Message], Awaitable[Answer]] = ask
        for one in reversed(self._requests):
            proceed = _before(one, proceed)
        try:
            answer = (await proceed(self._message(held_frame))).to_frame(call.key)
        except asyncio.CancelledError:
            if running.held_frame not in self._running:  # nobody waits for it
                raise
            answer = self._write_failure(held_frame, "a middleware of the proxy was cancelled")
        except Exception as error:  # theirs: the session goes on
            self._explain(held_frame, error)
            answer = self._write_failure(held_frame, f"a middleware of the proxy failed: {type(error).__name__}")
        self._conclude(running, answer)

    def _hand_back(self, running: HeldRequest, frame: Frame) -> None:
        if not running.answer.done():
            running.answer.set_result(frame)
            self._start_timer(running)

    def _conclude(self, running: HeldRequest, answer: Frame) -> None:
        if self._running.pop(running.held_frame, None) is not None:
            _stop_timer(running)
            self._host.perform(running.held_frame.conclude, answer)

    def _start_timer(self, running: HeldRequest) -> None:
        later = asyncio.get_running_loop().call_later
        running.timer = later(self._timeout_s, self._expire, running, context=running.context)

    def _expire(self, running: HeldRequest) -> None:
        held_frame = running.held_frame
        reason = f"a middleware of the proxy took longer than {self._timeout_s:g} s"
        logger.warning("%s request given up: %s", held_frame.frame.method, reason)
        self._conclude(running, self._write_failure(held_frame, reason, TOO_MUCH))
        _stop(running)

    # Both

    def _context(self, front: ClientEdge) -> contextvars.Context:
        """Return a context in which what is logged is about this session."""
        context = contextvars.copy_context()
        label, principal = self._host.caller_of(front)
        context.run(LABEL.set, label)
        context.run(PRINCIPAL.set, principal)
        return context

    def _message(self, held_frame: HeldFrame) -> Message:
        side, frame = held_frame.side, held_frame.frame
        spoken, understood = (held_frame.table.find_revision(one, held_frame.call, frame) for one in (side, side.other))
        return Message(frame, side, LABEL.get(), spoken, understood, frame.sender or PRINCIPAL.get())

    def _write_failure(self, held_frame: HeldFrame, reason: str, code: int = INTERNAL_ERROR) -> Frame:
        assert held_frame.call is not None
        return error_frame(held_frame.call.key, code, reason, {"method": held_frame.call.method})

    def _explain(self, held_frame: HeldFrame, error: BaseException) -> None:
        frame = held_frame.frame
        logger.warning("a middleware failed at %s %s: %s: %s", frame.method, frame.kind, type(error).__name__, error)
        logger.debug("where it failed", exc_info=error)


def _before(one: Any, proceed: Any) -> Any:
    """Put one middleware before what follows it."""
    return lambda message: one(message, proceed)


def _check_first(held_frame: HeldFrame) -> None:
    if held_frame.phase is not HeldPhase.HELD:
        raise RuntimeError("proceed was called again, or too late: it may be called once, while somebody waits")


def _stop(running: HeldRequest) -> None:
    _stop_timer(running)
    if running.task is not None:
        running.task.cancel()


def _stop_timer(running: HeldRequest) -> None:
    if running.timer is not None:
        running.timer.cancel()
