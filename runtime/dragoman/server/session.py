"""One session of a server: its client's messages in, its handlers' answers out.

Lives here: requests under way, cancelling, checking what comes and what goes. Must not: know what opens a session in
which era (`opening`), or what a handler may do (`context`).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.envelope import (
    Frame,
    Malformed,
    classify,
    decoded,
    error_frame,
    key_of,
    notification_frame,
    request_frame,
    result_frame,
)
from dragoman.core.exact_json import decode, encode
from dragoman.core.methods import CANCELLED
from dragoman.errors import CapabilityNotSupported, McpError, ProtocolError, ValidationFailed
from dragoman.server.context import Context
from dragoman.server.definition import ServerDefinition
from dragoman.server.opening import HandshakeOpening, Lasting, PerRequestOpening
from dragoman.server.parking import ParkedRun, resume
from dragoman.transports.base import Transport

logger = logging.getLogger("dragoman.server")


class ServerSession:
    """The receiver of the transport to one client.

    Args:
        definition: What the server is.
        transport: To the client.
        on_end: Called when the session is over.
    """

    def __init__(
        self, definition: ServerDefinition, transport: Transport, on_end: Callable[[ServerSession], None]
    ) -> None:
        self._definition = definition
        self._transport = transport
        self._on_end = on_end
        opening = PerRequestOpening if definition.facts.era == "per_request" else HandshakeOpening
        self._opening = opening(definition, self.say)
        self._running: dict[bytes, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._parked: dict[str, ParkedRun] = {}  # by the state that the client was given
        self._asked: dict[bytes, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0

    # What the transport calls

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Messages came."""
        for frame in frames:
            if isinstance(frame, Malformed):
                self._take_malformed(frame)
                continue
            try:
                body = decoded(frame).body
            except ValueError as error:
                self._take_malformed(Malformed(PARSE_ERROR, str(error), frame.key, frame.method is None))
                continue
            for one in body if isinstance(body, list) else [body]:
                member = classify(b"", one)
                if isinstance(member, Malformed):
                    self._take_malformed(member)
                else:
                    self._take(member, one)

    def failed(self, frame: Frame) -> None:
        """Frames do not fail in memory."""

    def session_lost(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """Nor are sessions lost."""

    def unsent(self, frames: Sequence[Frame]) -> None:
        """Nor does anything stay unsent."""

    def ended(self, reason: str) -> None:
        """The client is gone."""
        for task in (*self._running.values(), *self._others):
            task.cancel()
        for answer in self._asked.values():
            answer.cancel()
        for run in self._parked.values():
            run.stop()
        self._on_end(self)

    def broken(self, reason: str) -> None:
        """The client does not read any more."""

    def pause_writing(self) -> None:
        """What a handler says is short."""

    def resume_writing(self) -> None:
        """What a handler says is short."""

    # What is said

    def say(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        self._transport.send([notification_frame(method, params)])

    def announce(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification of the server's own account to a client that wants it."""
        for wanted in self._opening.select(method, params):
            self.say(method, wanted)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and wait for its result.

        Raises:
            McpError: The client answered with an error.
        """
        self._count += 1
        key = encode(f"ask-{self._count}")
        self._asked[key] = asyncio.get_running_loop().create_future()
        self._transport.send([request_frame(key, method, params)])
        try:
            return await self._asked[key]
        finally:
            del self._asked[key]

    # What comes

    def _take_malformed(self, malformed: Malformed) -> None:
        logger.warning("the client sent what is not a message: %s", malformed.reason)
        key = None if malformed.key in self._running else malformed.key  # whose answer is still to come
        if malformed.is_owed and (key is not None or self._opening.allows_null_id):
            self._transport.send([error_frame(key, malformed.code, malformed.reason)])

    def _take(self, frame: Frame, body: dict[str, Any]) -> None:
        if frame.kind == "request":
            assert frame.key is not None
            task = asyncio.get_running_loop().create_task(self._serve(frame.key, body))
            self._running[frame.key] = task
            task.add_done_callback(functools.partial(self._forget, frame.key))
        elif frame.kind == "notification":
            self._take_notice(body)
        else:
            self._take_answer(frame, body)

    def _forget(self, key: bytes, done: asyncio.Task[None]) -> None:
        if self._running.get(key) is done:
            del self._running[key]

    def _take_answer(self, frame: Frame, body: dict[str, Any]) -> None:
        answer = self._asked.get(frame.key or b"")
        if answer is None or answer.done():
            logger.debug("an answer came to a question that nobody asked: id %s", frame.key)
        elif frame.kind == "result":
            answer.set_result(body["result"])
        else:
            error = body["error"]
            answer.set_exception(McpError(error.get("code", 0), str(error.get("message")), error.get("data")))

    def _take_notice(self, body: dict[str, Any]) -> None:
        method, params = body["method"], body.get("params") or {}
        if method == CANCELLED:
            task = self._running.get(key_of(params.get("requestId")) or b"")
            if task is not None:
                task.cancel()
            self._opening.cancel(params.get("requestId"))
            return
        self._opening.take_notice(method)
        handler = self._definition.handlers.get(method)
        if handler is not None:
            task = asyncio.get_running_loop().create_task(self._run_notice(method, body, handler))
            self._others.add(task)
            task.add_done_callback(self._others.discard)

    async def _run_notice(self, method: str, body: dict[str, Any], handler: Callable[..., Any]) -> None:
        try:
            self._definition.check(body)
            context = self._opening.make_context(method, 0, body.get("params") or {}, self.ask)
            returned = handler(self._definition.read_params(method, body), context)
            if inspect.isawaitable(returned):
                await returned
        except Exception:
            logger.exception("the handler of %s failed", method)

    # What is answered

    async def _serve(self, key: bytes, body: dict[str, Any]) -> None:
        method = body["method"]
        try:
            answer = result_frame(key, self._check(method, await self._answer(decode(key), method, body)))
        except Lasting:
            return
        except CapabilityNotSupported as error:
            told = self._opening.refuse(error)
            answer = error_frame(key, told.code, told.message, told.data)
        except (McpError, ProtocolError) as error:
            answer = error_frame(key, error.code, error.message, error.data)
        except ValidationFailed as error:
            answer = error_frame(key, INVALID_PARAMS, str(error), {"pointer": error.pointer})
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # nobody waits; else the handler awaited what was cancelled
                raise
            logger.exception("the handler of %s failed", method)
            answer = error_frame(key, INTERNAL_ERROR, f"the server's handler failed: {type(error).__name__}")
        self._transport.send([answer])

    async def _answer(self, request_id: str | int, method: str, body: dict[str, Any]) -> dict[str, Any]:
        params = body.get("params") or {}
        own = self._opening.answer(request_id, method, params)
        if own is not None:
            return own
        handler = self._definition.handlers.get(method)
        if handler is None:
            raise McpError(METHOD_NOT_FOUND, f"there is no method {method[:80]!r}")
        self._definition.check(body)
        if method in self._definition.facts.input_required:
            return await self._answer_with_questions(request_id, method, body, handler)
        context = self._opening.make_context(method, request_id, params, self.ask)
        return self._opening.complete(method, await self._run(handler, method, body, context))

    async def _answer_with_questions(
        self, request_id: str | int, method: str, body: dict[str, Any], handler: Callable[..., Any]
    ) -> dict[str, Any]:
        """Answer where questions to the client are results: with the handler's result, or with what it asks."""
        params, waiting = body["params"], self._parked
        named = params.get("name"), params.get("uri"), params.get("arguments")
        if "requestState" in params:
            run = resume(waiting, method, named, params)
            self._opening.renew(run.context, request_id, params)
        else:
            run = ParkedRun(method, named)
            run.context = self._opening.make_context(method, request_id, params, run.ask)
            run.task = asyncio.get_running_loop().create_task(self._run(handler, method, body, run.context))
        try:
            asked = await run.until_asked()
        except asyncio.CancelledError:
            run.task.cancel()
            raise
        if asked is None:
            return self._opening.complete(method, run.task.result())
        state = run.park(waiting, self._definition.parked_s)
        return self._opening.complete(
            method, {"resultType": "input_required", "inputRequests": asked, "requestState": state}
        )

    async def _run(
        self, handler: Callable[..., Any], method: str, body: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        result = handler(self._definition.read_params(method, body), context)
        if inspect.isawaitable(result):
            result = await result
        if result is None:
            return {}
        found: dict[str, Any] = result if isinstance(result, dict) else result.model_dump()
        return found

    def _check(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """Make sure that a result is valid: what is not must not leave the server.

        Raises:
            McpError: It is not.
        """
        try:
            self._definition.check({"jsonrpc": "2.0", "id": 0, "result": result}, method)
        except ValidationFailed as error:
            logger.error("the handler of %s gave a result that is %s", method, error)
            raise McpError(INTERNAL_ERROR, f"the server's handler gave a result that is {error}") from error
        return result
