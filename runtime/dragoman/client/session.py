"""Who waits for which answer: ids, progress, timeouts and cancelling, of one client.

Lives here: the table of requests that are under way, and what becomes of each frame that the proxy hands over. Must
not: know what a method means (`client`), or answer the server (`handlers`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import (
    Frame,
    classify,
    decoded,
    error_frame,
    key_of,
    notification_frame,
    request_frame,
    result_frame,
)
from dragoman.core.methods import CANCELLED, PROGRESS
from dragoman.core.unchecked import find, find_object
from dragoman.errors import ConnectionClosed, McpError, RemoteProtocolError, RequestTimeout
from dragoman.transports.countdown import Countdown
from dragoman.transports.frame_link import FrameLink

logger = logging.getLogger("dragoman.client")


@dataclass(slots=True)
class _Asked:
    """A request under way."""

    method: str
    answer: asyncio.Future[dict[str, Any]]
    timeout_s: float | None
    progress: Callable[[dict[str, Any]], None] | None
    timer: Countdown = field(default_factory=Countdown)


class Hearer(Protocol):
    """Who hears what a server tells of its own accord."""

    def deliver(self, body: dict[str, Any]) -> None:
        """A notification came."""

    def discard(self, what: str, reason: str) -> None:
        """Something came that cannot be used."""

    def end(self) -> None:
        """Nothing more comes."""


class Session:
    """One client's side of a session.

    Args:
        hearer: What the server tells of its own accord goes there.
        answer: Answers what it asks, by method and params.

    Attributes:
        transport: What the proxy takes for the client.
        is_over: Asks whether the proxy has ended the session; what it answers then are not the server's words.
        silent: Asks which of several servers have not answered what all of them were asked.
    """

    def __init__(self, hearer: Hearer, answer: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
        self.transport = FrameLink(self._take, lost=self._end)
        self.is_over: Callable[[], bool] = lambda: False
        self.silent: Callable[[], Sequence[str]] = tuple
        self._hearer, self._handle = hearer, answer
        self._asked: dict[bytes, _Asked] = {}
        self._answering: dict[bytes, asyncio.Task[None]] = {}
        self._last_id = 0

    def new_id(self) -> int:
        """Return an id that no request has had."""
        self._last_id += 1
        return self._last_id

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        progress: Callable[[dict[str, Any]], None] | None = None,
        can_cancel: bool = True,
        number: int | None = None,
    ) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Args:
            method: Its method.
            params: Its params, without a progress token.
            timeout_s: How long it may go without an answer or progress, in seconds.
            progress: Called with the params of each progress notification.
            can_cancel: Whether the server is told when nobody waits any more.
            number: Its id, from `new_id`; None for the next one.

        Returns:
            The whole frame of the result.

        Raises:
            McpError: The server answered with an error.
            RequestTimeout: It did not answer in time.
            ConnectionClosed: The session is over.
        """
        if self.is_over():  # the proxy would still answer what is none of the server's business
            raise ConnectionClosed("the session is over")
        number = self.new_id() if number is None else number
        key = b"%d" % number
        said = dict(params)
        if progress is not None or timeout_s is not None:
            said["_meta"] = {**said.get("_meta", {}), "progressToken": number}
        asked = _Asked(method, asyncio.get_running_loop().create_future(), timeout_s, progress)
        self._asked[key] = asked  # before it is said: what the proxy answers itself comes at once
        try:
            self._say(request_frame(key, method, said))
            self._start_timer(asked)
            return await asked.answer
        except (asyncio.CancelledError, RequestTimeout) as error:
            if can_cancel and key in self._asked:
                reason = "timed out" if isinstance(error, RequestTimeout) else "cancelled by the client"
                with contextlib.suppress(ConnectionClosed):  # then it is over in any case
                    self.notify(CANCELLED, {"requestId": number, "reason": reason})
            raise
        finally:
            self._asked.pop(key, None)
            asked.timer.stop()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification.

        Raises:
            ConnectionClosed: The session is over.
        """
        self._say(notification_frame(method, params))

    def _say(self, frame: Frame) -> None:
        """Say this to the server; at the end only that an answer is not waited for any more."""
        if self.transport.is_closed or (self.transport.is_ended and frame.method != CANCELLED):
            raise ConnectionClosed("the session is over")
        self.transport.say(frame)

    def _start_timer(self, asked: _Asked) -> None:
        if asked.timeout_s is not None:
            asked.timer.set(asked.timeout_s, partial(self._expire, asked))

    def _expire(self, asked: _Asked) -> None:
        if not asked.answer.done() and asked.timeout_s is not None:
            silent = self.silent() if asked.method.endswith("/list") else ()
            asked.answer.set_exception(RequestTimeout(asked.method, asked.timeout_s, silent))

    # What the proxy says

    def _take(self, frame: Frame) -> None:
        try:
            body = decoded(frame).body
        except ValueError as error:
            self._take_undecodable(frame, error)
            return
        for one in body if frame.kind == "batch" else (body,):
            member = classify(b"", one) if frame.kind == "batch" else frame
            if isinstance(member, Frame):
                self._take_one(member, one)

    def _take_undecodable(self, frame: Frame, error: ValueError) -> None:
        asked = self._asked.pop(frame.key, None) if frame.key is not None and frame.method is None else None
        if asked is not None and not asked.answer.done():
            asked.answer.set_exception(RemoteProtocolError(PARSE_ERROR, f"the answer to {asked.method}: {error}"))
        else:
            self._hearer.discard(frame.method or "an answer", str(error))

    def _take_one(self, frame: Frame, body: dict[str, Any]) -> None:
        if frame.kind == "request":
            self._take_request(frame, body)
        elif frame.kind != "notification":
            self._take_answer(frame, body)
        elif frame.method == PROGRESS:
            self._take_progress(body)
        elif frame.method == CANCELLED:
            self._take_cancelled(find(body, "params", "requestId"))
        else:
            self._hearer.deliver(body)

    def _take_answer(self, frame: Frame, body: dict[str, Any]) -> None:
        asked = self._asked.pop(frame.key or b"", None)
        if asked is None or asked.answer.done():
            logger.debug("an answer came to a request that nobody waits for: id %s", frame.key)
        elif frame.kind == "error":
            asked.answer.set_exception(self._read_error(find_object(body, "error")))
        elif not isinstance(body["result"], dict):
            asked.answer.set_exception(
                RemoteProtocolError(INVALID_REQUEST, f"expected the result of {asked.method} to be an object")
            )
        elif body.get("error") is not None:
            asked.answer.set_exception(
                RemoteProtocolError(INVALID_REQUEST, f"expected a result or an error of {asked.method}, found both")
            )
        else:
            asked.answer.set_result(body)

    def _read_error(self, error: dict[str, Any]) -> Exception:
        code, message, data = error.get("code"), error.get("message"), error.get("data")
        if code == CONNECTION_CLOSED and self.is_over():
            return ConnectionClosed(str(message), data if isinstance(data, dict) else None)
        return McpError(code if isinstance(code, int) else 0, str(message), data)

    def _take_progress(self, body: dict[str, Any]) -> None:
        token = find(body, "params", "progressToken")
        asked = self._asked.get(b"%d" % token) if isinstance(token, int) else None
        if asked is None:
            logger.debug("progress came for a request that nobody waits for")
            return
        self._start_timer(asked)
        if asked.progress is not None:
            asked.progress(body)

    # What the server asks

    def _take_request(self, frame: Frame, body: dict[str, Any]) -> None:
        key = frame.key or b"null"
        task = asyncio.get_running_loop().create_task(self._answer(key, body["method"], body.get("params") or {}))
        self._answering[key] = task
        task.add_done_callback(lambda _: self._answering.pop(key, None))

    async def _answer(self, key: bytes, method: str, params: dict[str, Any]) -> None:
        try:
            answer = result_frame(key, await self._handle(method, params))
        except McpError as error:
            answer = error_frame(key, error.code, error.message, error.data)
        except Exception as error:
            logger.exception("the handler of %s failed", method)
            answer = error_frame(key, INTERNAL_ERROR, f"the client's handler failed: {type(error).__name__}")
        try:
            self._say(answer)
        except ConnectionClosed:
            logger.debug("the session ended before %s was answered", method)

    def _take_cancelled(self, named: object) -> None:
        task = self._answering.get(key_of(named) or b"")
        if task is not None:
            task.cancel()

    def _end(self) -> None:
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(ConnectionClosed("the session is over"))
        for task in self._answering.values():
            task.cancel()
        self._hearer.end()
