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
from dragoman.core.commands import ClientEdge, Deferral, DeferralPhase, Side
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
        deferral: The request.
        answer: What its peer answers.
        context: Says whose session it is, for the log.
        task: Runs the chain, once it is the request's turn.
        timer: Ends that.
    """

    deferral: Deferral
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
        self._running: dict[Deferral, HeldRequest] = {}
        self._lanes: dict[tuple[ClientEdge, Side], PeerQueue] = {}

    # Commands

    def run(self, deferral: Deferral) -> None:
        """Let middleware have a request or notification."""
        lane = self._lane(deferral.front, deferral.side)
        size = len(deferral.frame.raw)
        call = deferral.call
        if len(lane.steps) >= QUEUE_FRAMES or lane.size + size > QUEUE_BYTES:
            reason = "too much waits for a middleware to hand a notification on"
            logger.warning("%s %s dropped: %s", deferral.frame.method, deferral.frame.kind, reason)
            if call is not None:
                answer = error_frame(call.key, TOO_MUCH, reason, {"method": call.method})
                now = asyncio.get_running_loop().call_soon  # and not while another command is carried out
                now(self._host.perform, deferral.conclude, answer)
        elif call is None:
            self._queue(lane, lambda: self._begin_notice(lane, deferral), size)
        else:
            answer_to_come = asyncio.get_running_loop().create_future()
            running = HeldRequest(deferral, answer_to_come, self._context(deferral.front))
            self._running[deferral] = running
            self._queue(lane, lambda: self._begin_request(running), size)

    def settle(self, deferral: Deferral, frame: Frame) -> None:
        """Give middleware the answer to a request."""
        running = self._running.get(deferral)
        if running is not None:
            lane = self._lane(deferral.front, deferral.side.other)
            self._queue(lane, lambda: self._hand_back(running, frame), len(frame.raw))

    def abandon(self, deferral: Deferral) -> None:
        """Stop what is done with a request."""
        running = self._running.pop(deferral, None)
        if running is not None:
            _stop(running)

    def drop(self, front: ClientEdge) -> None:
        """Stop everything of a session that is over."""
        for deferral in [deferral for deferral in self._running if deferral.front is front]:
            deferral.end()
            self.abandon(deferral)
        for side in Side:
            lane = self._lanes.pop((front, side), None)
            if lane is not None:
                lane.steps.clear()
                if lane.notice is not None:
                    lane.notice.cancel()

    # Order

    def _lane(self, front: ClientEdge, side: Side) -> PeerQueue:
        return self._lanes.setdefault((front, side), PeerQueue())

    def _queue(self, lane: PeerQueue, step: Callable[[], None], size: int) -> None:
        if lane.notice is None:
            step()
        else:
            lane.steps.append((step, size))
            lane.size += size

    def _go_on(self, lane: PeerQueue, _: asyncio.Task[None]) -> None:
        lane.notice = None
        while lane.steps and lane.notice is None:
            step, size = lane.steps.popleft()
            lane.size -= size
            step()

    # Notifications

    def _begin_notice(self, lane: PeerQueue, deferral: Deferral) -> None:
        context = self._context(deferral.front)
        lane.notice = asyncio.get_running_loop().create_task(self._run_notice(deferral), context=context)
        lane.notice.add_done_callback(lambda task: self._go_on(lane, task))

    async def _run_notice(self, deferral: Deferral) -> None:
        async def hand_on(message: Message) -> None:
            _check_first(deferral)
            self._host.perform(deferral.proceed, message.frame)

        proceed: Callable[[Message], Awaitable[None]] = hand_on
        for one in reversed(self._notices):
            proceed = _before(one, proceed)
        task = asyncio.ensure_future(proceed(self._message(deferral)))
        try:
            await asyncio.wait((task,), timeout=self._timeout_s)
        finally:
            was_handed_on = deferral.phase is DeferralPhase.OVER
            deferral.end()
            if not task.done():
                task.cancel()
        outcome = "afterwards" if was_handed_on else "and is dropped"
        if not task.done():
            words = "a middleware has not let %s go on within %g s: it is stopped, %s"
            logger.warning(words, deferral.frame.method, self._timeout_s, outcome)
        elif not task.cancelled() and (error := task.exception()) is not None:
            self._explain(deferral, error)

    # Requests

    def _begin_request(self, running: HeldRequest) -> None:
        if running.deferral.phase is DeferralPhase.HELD:
            coroutine = self._run_request(running)
            running.task = asyncio.get_running_loop().create_task(coroutine, context=running.context)
            self._start_timer(running)

    async def _run_request(self, running: HeldRequest) -> None:
        deferral = running.deferral
        call = deferral.call
        assert call is not None, "a notification has no answer"

        async def ask(message: Message) -> Answer:
            _check_first(deferral)
            _stop_timer(running)
            self._host.perform(deferral.proceed, message.frame)
            return Answer(await running.answer)

        proceed: Callable[[Message], Awaitable[Answer]] = ask
        for one in reversed(self._requests):
            proceed = _before(one, proceed)
        try:
            answer = (await proceed(self._message(deferral))).to_frame(call.key)
        except asyncio.CancelledError:
            if running.deferral not in self._running:  # nobody waits for it
                raise
            answer = self._write_failure(deferral, "a middleware of the proxy was cancelled")
        except Exception as error:  # theirs: the session goes on
            self._explain(deferral, error)
            answer = self._write_failure(deferral, f"a middleware of the proxy failed: {type(error).__name__}")
        self._conclude(running, answer)

    def _hand_back(self, running: HeldRequest, frame: Frame) -> None:
        if not running.answer.done():
            running.answer.set_result(frame)
            self._start_timer(running)

    def _conclude(self, running: HeldRequest, answer: Frame) -> None:
        if self._running.pop(running.deferral, None) is not None:
            _stop_timer(running)
            self._host.perform(running.deferral.conclude, answer)

    def _start_timer(self, running: HeldRequest) -> None:
        later = asyncio.get_running_loop().call_later
        running.timer = later(self._timeout_s, self._expire, running, context=running.context)

    def _expire(self, running: HeldRequest) -> None:
        deferral = running.deferral
        reason = f"a middleware of the proxy took longer than {self._timeout_s:g} s"
        logger.warning("%s request given up: %s", deferral.frame.method, reason)
        self._conclude(running, self._write_failure(deferral, reason, TOO_MUCH))
        _stop(running)

    # Both

    def _context(self, front: ClientEdge) -> contextvars.Context:
        """Return a context in which what is logged is about this session."""
        context = contextvars.copy_context()
        label, principal = self._host.caller_of(front)
        context.run(LABEL.set, label)
        context.run(PRINCIPAL.set, principal)
        return context

    def _message(self, deferral: Deferral) -> Message:
        side, frame = deferral.side, deferral.frame
        spoken, understood = (deferral.table.find_revision(one, deferral.call, frame) for one in (side, side.other))
        return Message(frame, side, LABEL.get(), spoken, understood, frame.sender or PRINCIPAL.get())

    def _write_failure(self, deferral: Deferral, reason: str, code: int = INTERNAL_ERROR) -> Frame:
        assert deferral.call is not None
        return error_frame(deferral.call.key, code, reason, {"method": deferral.call.method})

    def _explain(self, deferral: Deferral, error: BaseException) -> None:
        frame = deferral.frame
        logger.warning("a middleware failed at %s %s: %s: %s", frame.method, frame.kind, type(error).__name__, error)
        logger.debug("where it failed", exc_info=error)


def _before(one: Any, proceed: Any) -> Any:
    """Put one middleware before what follows it."""
    return lambda message: one(message, proceed)


def _check_first(deferral: Deferral) -> None:
    if deferral.phase is not DeferralPhase.HELD:
        raise RuntimeError("proceed was called again, or too late: it may be called once, while somebody waits")


def _stop(running: HeldRequest) -> None:
    _stop_timer(running)
    if running.task is not None:
        running.task.cancel()


def _stop_timer(running: HeldRequest) -> None:
    if running.timer is not None:
        running.timer.cancel()
