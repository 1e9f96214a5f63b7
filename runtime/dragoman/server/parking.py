"""Questions to a client in a revision without server requests: the handler waits, and the client comes back.

Lives here: a handler that runs on between two requests of its client. Must not: write frames (`session`).

A question becomes the result of the request, with a state that nobody can guess; the client sends the request again
with its answers and the state (2026-07-28/basic/patterns/mrtr). The handler runs once: it is not started again, it
goes on.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.codes import INVALID_PARAMS
from dragoman.errors import McpError
from dragoman.server.context import Context
from dragoman.transports.countdown import Countdown

logger = logging.getLogger("dragoman.server")

_STATE_BYTES: Final = 32

_MOST: Final = 256
"""How many handlers wait for their clients; then the oldest is stopped. All clients without a session are one."""


class ParkedRun:
    """A handler at work, and what it has asked.

    Args:
        method: Of the request.
        named: What the request is about: a state is good for nothing else.

    Attributes:
        context: Of the handler; set by whoever makes one.
        task: The handler; the same.
    """

    context: Context
    task: asyncio.Task[Any]

    def __init__(self, method: str, named: object) -> None:
        self.about = method, named
        self._open: dict[str, tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = {}
        self._asked = asyncio.Event()
        self._count = 0
        self._timer = Countdown()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Put a question to the client, and wait for the answer."""
        self._count += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        question = {"method": method, "params": params} if params else {"method": method}
        self._open[f"question-{self._count}"] = question, answer
        self._asked.set()
        return await answer

    async def until_asked(self) -> dict[str, Any] | None:
        """Wait until the handler has asked something, or is done; give its questions in the first case."""
        waiting = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # what else it asks at once
        finally:
            waiting.cancel()
        if self.task.done():
            return None
        return {name: question for name, (question, _) in self._open.items()}

    def park(self, waiting: dict[str, ParkedRun], parked_s: float) -> str:
        """Wait for the client to come back; give the state that it has to bring.

        Args:
            waiting: Where it waits, by its state.
            parked_s: How long.
        """
        if len(waiting) >= _MOST:
            logger.warning("%d handlers wait for their clients already: the oldest is stopped for another", _MOST)
            waiting.pop(next(iter(waiting))).stop()
        state = secrets.token_urlsafe(_STATE_BYTES)
        waiting[state] = self
        self._timer.set(parked_s, lambda: waiting.pop(state).stop())
        return state

    def stop(self) -> None:
        """Wait no more: the client does not come back."""
        self._timer.stop()
        self.task.cancel()

    def go_on(self, responses: Any) -> None:
        """Take the answers that the client has brought; what it has left out is asked again.

        Raises:
            McpError: They are not answers; the client may come back with others.
        """
        given = {} if responses is None else responses
        if not isinstance(given, dict) or not all(isinstance(given.get(name, {}), dict) for name in self._open):
            raise McpError(INVALID_PARAMS, f"expected answers to {', '.join(self._open)} in inputResponses")
        self._timer.stop()
        for name in [name for name in self._open if name in given]:
            _, answer = self._open.pop(name)
            if not answer.done():
                answer.set_result(given[name])
        if not self._open:
            self._asked.clear()


def resume(waiting: dict[str, ParkedRun], method: str, named: object, params: Mapping[str, Any]) -> ParkedRun:
    """Return the handler that waits for this request.

    Raises:
        McpError: None does.
    """
    state = params["requestState"]
    run = waiting.get(state) if isinstance(state, str) else None
    if run is None or run.about != (method, named):
        raise McpError(INVALID_PARAMS, "nothing waits for this requestState: ask again without it")
    run.go_on(params.get("inputResponses"))
    del waiting[state]
    return run
