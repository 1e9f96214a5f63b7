"""The same client for programs without an event loop: each call waits for its answer.

Lives here: a loop in a thread of its own, and what hands calls to it. Must not: have a second implementation of any
call: what a client can do is `Client`, and each of its methods is found there by name. Called as
`dragoman.connect_sync`, whose type is `dragoman_spec.clients.SyncConnect`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, TypeVar

from dragoman.client.connect import ANY, Target, connect
from dragoman.client.tasks import ToolTask

logger = logging.getLogger("dragoman.client")

T = TypeVar("T")

HANDLERS: Final = ("sampling", "elicitation", "roots")


class EventThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._is_over = False
        self._thread = threading.Thread(target=self._go_on, name="dragoman", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something there, and wait for it; an interrupt here cancels it there."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread."""
        self._is_over = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _go_on(self) -> None:
        while not self._is_over:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # of a callback: whoever waits for the loop would wait for ever
                logger.exception("a callback of the program cannot end it from here")


class SyncFacade:
    """Something whose methods wait for what those of another one give, in the thread of its loop.

    Args:
        inner: A client, or a task.
        thread: Where that lives.
    """

    def __init__(self, inner: Any, thread: EventThread) -> None:
        self._inner = inner
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        """Return an attribute as it is, or a method that waits."""
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        def call(*args: Any, **named: Any) -> Any:
            return self._wait(found, args, named)

        return call

    def _wait(self, method: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        async def begin() -> Any:
            given = method(*args, **named)
            return await given if inspect.isawaitable(given) else given

        given = self._thread.run(begin())
        if isinstance(given, ToolTask):
            return SyncFacade(given, self._thread)
        if isinstance(given, AbstractAsyncContextManager):
            return SyncContext(given, self._thread)
        return _iterate(given, self._thread) if isinstance(given, AsyncIterator) else given


class SyncContext:
    """A context of the other thread: a session, or a stream of what changes.

    Args:
        inner: The context.
        thread: Where it lives.
        is_session: Whether the thread ends with it.
    """

    def __init__(self, inner: AbstractAsyncContextManager[Any], thread: EventThread, is_session: bool = False) -> None:
        self._inner = inner
        self._thread = thread
        self._is_session = is_session

    def __enter__(self) -> Any:
        """Open it."""
        try:
            given = self._thread.run(self._inner.__aenter__())
        except BaseException:
            if self._is_session:
                self._thread.close()
            raise
        return _iterate(given, self._thread) if isinstance(given, AsyncIterator) else SyncFacade(given, self._thread)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        try:
            self._thread.run(self._inner.__aexit__(kind, error, trace))
        finally:
            if self._is_session:
                self._thread.close()


def connect_sync(target: Target, revision: str = ANY, **options: Any) -> SyncContext:
    """Open a session with a server, as a context whose client waits for each answer.

    Args:
        target: As for `connect`.
        revision: As for `connect`.
        options: As for `connect`; handlers are ordinary functions, and each call of one has a thread of its own.

    Raises:
        UnsupportedRevision: There is no such revision.
        LocalProtocolError: There is a handler that the revision has no use for.
        ValueError: The target is not a URL that names a server.
    """
    given: dict[str, Any] = {
        name: _in_a_thread(value) if name in HANDLERS and value else value for name, value in options.items()
    }
    thread = EventThread()

    async def make() -> Any:
        return connect(target, revision, **given)

    try:
        return SyncContext(thread.run(make()), thread, is_session=True)
    except BaseException:
        thread.close()
        raise


def _in_a_thread(handler: Callable[..., Any]) -> Callable[..., Any]:
    def finish(*args: Any) -> Any:
        try:
            return handler(*args)
        except Exception:
            raise
        except BaseException as error:  # `sys.exit()`, say: it would end the loop, and nobody would be answered
            raise RuntimeError(f"the handler ended with {type(error).__name__}") from error

    async def answer(*args: Any) -> Any:
        return await asyncio.to_thread(finish, *args)

    return answer


def _iterate(given: AsyncIterator[T], thread: EventThread) -> Iterator[T]:
    async def step() -> tuple[bool, Any]:
        try:
            return True, await anext(given)
        except StopAsyncIteration:
            return False, None

    while True:
        is_more, one = thread.run(step())
        if not is_more:
            return
        yield one
