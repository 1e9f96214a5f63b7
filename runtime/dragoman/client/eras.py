"""How a session opens and how a request is made, in each era.

Lives here: the handshake, and the metadata and rounds of requests that speak for themselves. Must not: wait for single
answers (`session`), or know what a program asks (`client`).

Theory of operation. With a handshake, what the server asks comes as requests of its own (`session`). Without, a result
may want input: then its questions go to the handlers, and the same request is sent again with their answers and with
the state that the server gave, unread (2026-07-28/basic/patterns/mrtr).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import dragoman_spec
from dragoman.client.handlers import Handlers
from dragoman.client.session import Session
from dragoman.core.codes import CONNECTION_CLOSED, INVALID_PARAMS
from dragoman.core.rounds import Rounds
from dragoman.core.unchecked import find
from dragoman.errors import LocalProtocolError, RemoteProtocolError

Tell = Callable[[dict[str, Any]], None]


def read_questions(result: Mapping[str, Any], method: str) -> dict[str, dict[str, Any]]:
    """Return what a server asks in a result: requests by name, without ids.

    Raises:
        RemoteProtocolError: It is something else.
    """
    found = result.get("inputRequests") or {}
    if not isinstance(found, dict):
        raise RemoteProtocolError(
            INVALID_PARAMS, f"the server asks during {method} with something that is not an object"
        )
    for name, question in found.items():
        params = question.get("params") or {} if isinstance(question, dict) else None
        if not isinstance(params, dict) or not isinstance(question.get("method"), str):
            raise RemoteProtocolError(
                INVALID_PARAMS, f"what the server asks during {method} as {name} is not a request"
            )
    return found


class ByHandshake:
    """A session that opens with `initialize`.

    Args:
        session: Where frames go.
        params: Of `initialize`.
    """

    opening = "initialize"

    def __init__(self, session: Session, params: Mapping[str, Any]) -> None:
        self._session = session
        self._params = params

    async def open(self) -> dict[str, Any]:
        """Shake hands."""
        return await self._session.ask("initialize", self._params, can_cancel=False)

    def begin(self) -> None:
        """Say that the session is open."""
        self._session.notify("notifications/initialized", {})

    async def ask(
        self, method: str, params: Mapping[str, Any], timeout_s: float | None, progress: Tell | None
    ) -> dict[str, Any]:
        """Make a request."""
        return await self._session.ask(method, params, timeout_s=timeout_s, progress=progress)

    async def set_log_level(self, level: str, timeout_s: float | None) -> None:
        """Say it to the server."""
        await self._session.ask("logging/setLevel", {"level": level}, timeout_s=timeout_s)

    def read_identity(self, result: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return name and version of the server."""
        found: Mapping[str, Any] | None = result.get("serverInfo")
        return found


class ByRequests:
    """Requests that each say what the client is and can do.

    Args:
        session: Where frames go.
        handlers: What the server may ask.
        revision: Whose.
        identity: Name and version of the client.
        capabilities: What it declares.
    """

    opening = "server/discover"

    def __init__(
        self,
        session: Session,
        handlers: Handlers,
        revision: str,
        identity: Mapping[str, Any],
        capabilities: Mapping[str, Any],
    ) -> None:
        # The bridge knows the names; whoever has only clients with a handshake does not load it.
        from dragoman.core.rules.metadata import Metadata

        self._session = session
        self._handlers = handlers
        self._facts = dragoman_spec.facts(revision)
        self._metadata = Metadata(revision, capabilities, identity)

    async def open(self) -> dict[str, Any]:
        """Ask the server what it is: it is opened by that."""
        return await self._session.ask(self.opening, self.stamp({}), can_cancel=False)

    def begin(self) -> None:
        """Nothing to say."""

    def stamp(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return params with what each request says of its client."""
        from dragoman.core.rules.metadata import stamp

        return stamp(params, self._metadata)

    async def ask(
        self, method: str, params: Mapping[str, Any], timeout_s: float | None, progress: Tell | None
    ) -> dict[str, Any]:
        """Make a request, as often as the server wants input.

        Raises:
            RemoteProtocolError: It wants input for ever, or its result is of a kind that nobody knows.
        """
        rounds = Rounds()
        said = dict(params)
        while True:
            frame = await self._session.ask(method, self.stamp(said), timeout_s=timeout_s, progress=progress)
            result = frame["result"]
            match result.get("resultType", "complete"):
                case "complete" | "task":
                    return frame
                case "input_required" if method in self._facts.input_required:
                    pass
                case other:
                    raise RemoteProtocolError(INVALID_PARAMS, f"the result of {method} is of the type {other!r}")
            questions = read_questions(result, method)
            pause_s = rounds.note(bool(questions))
            if pause_s is None:
                raise RemoteProtocolError(CONNECTION_CLOSED, f"the server wants input for {method} again and again")
            if pause_s:
                await asyncio.sleep(pause_s)
            said = dict(params)
            if questions:
                said["inputResponses"] = await self.answer(questions)
            if "requestState" in result:
                said["requestState"] = result["requestState"]

    async def answer(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Let the handlers answer questions, all at once; the first that fails stops the others.

        Args:
            questions: Requests by name, without ids.
        """
        tasks = {
            name: asyncio.ensure_future(self._handlers.answer(question["method"], question.get("params") or {}))
            for name, question in questions.items()
        }
        try:
            answers = await asyncio.gather(*tasks.values())
        finally:
            for task in tasks.values():
                task.cancel()
        return dict(zip(tasks, answers, strict=True))

    async def set_log_level(self, level: str, timeout_s: float | None) -> None:
        """Say it with each request from here on."""
        if level not in self._facts.log_levels:
            known = ", ".join(self._facts.log_levels)
            raise LocalProtocolError(INVALID_PARAMS, f"expected a log level, one of {known}, found {level!r}")
        self._metadata = self._metadata._replace(log_level=level)

    def read_identity(self, result: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return name and version of the server, if it says them."""
        found: Mapping[str, Any] | None = find(result, "_meta", self._facts.result_meta["serverInfo"])
        return found
