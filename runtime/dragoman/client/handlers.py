"""What the server may ask of the program, and what the client declares because of it.

Lives here: the handlers by capability, and answering with models. Must not: wait for answers (`session`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import dragoman_spec
from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from dragoman.errors import LocalProtocolError, McpError, ValidationFailed

logger = logging.getLogger("dragoman.client")

Handler = Callable[..., Awaitable[Any]]


class Handlers:
    """The handlers of one client.

    Args:
        revision: Whose models they take and give.
        given: The handler of each capability of a client: `sampling`, `elicitation`, `roots`; None where there is none.

    Raises:
        LocalProtocolError: The revision has no such capability.
    """

    def __init__(self, revision: str, given: Mapping[str, Handler | None]) -> None:
        self._revision = revision
        asked = dragoman_spec.facts(revision).asked
        handshakes = dragoman_spec.HANDSHAKE_REVISIONS
        self._asks_like = revision if revision in handshakes else handshakes[-1]  # what is asked is called as there
        self._by_method: dict[str, Handler] = {}
        self._capabilities: dict[str, Any] = {}
        for capability, handler in given.items():
            if handler is None:
                continue
            methods = [method for method, needed in asked.items() if needed == capability]
            if not methods:
                raise LocalProtocolError(INVALID_PARAMS, f"revision {revision} has no client capability {capability}")
            self._by_method |= dict.fromkeys(methods, handler)
            has_part = f"{capability}.listChanged" in dragoman_spec.facts(revision).client_capabilities
            self._capabilities[capability] = {"listChanged": True} if has_part else {}

    def declare(self, more: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the capabilities of the client.

        Args:
            more: What the program says of its handlers beyond that they are there, `{"elicitation": {"url": {}}}`.
        """
        return {**self._capabilities, **(more or {})}

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Let the program answer a request of the server.

        Raises:
            McpError: Nobody answers such requests, its params are not valid, or what its handler awaited was cancelled.
        """
        if method == "ping":
            return {}
        handler = self._by_method.get(method)
        if handler is None:
            raise McpError(METHOD_NOT_FOUND, f"this client does not answer {method}")
        entry = dragoman_spec.load(self._asks_like).METHODS[method]
        if method == "roots/list":
            return _dump(self._revision, entry.result, await _finish(method, handler()))
        try:
            given = dragoman_spec.adapter(self._revision, entry.params).validate_python(params)
        except ValueError as error:
            self._explain(method, params)
            raise McpError(INVALID_PARAMS, f"expected params of {method}, found others") from error
        return _dump(self._revision, entry.result, await _finish(method, handler(given)))

    def _explain(self, method: str, params: dict[str, Any]) -> None:
        """Say where params are not valid.

        Raises:
            McpError: Of course.
        """
        if self._asks_like == self._revision:
            try:
                dragoman_spec.validate({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}, self._revision)
            except ValidationFailed as error:
                raise McpError(INVALID_PARAMS, str(error)) from error


async def _finish(method: str, answering: Awaitable[Any]) -> Any:
    """Await a handler; what it awaits may be cancelled by somebody else, as a dialog that is closed."""
    try:
        return await answering
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        logger.exception("the handler of %s awaited what was cancelled", method)
        raise McpError(INTERNAL_ERROR, "the client's handler failed: CancelledError") from None


def _dump(revision: str, definition: str | None, result: Any) -> dict[str, Any]:
    assert definition is not None, "requests have results"
    dumped: dict[str, Any] = dragoman_spec.adapter(revision, definition).dump_python(result, mode="json")
    if not isinstance(dumped, dict):
        raise McpError(INTERNAL_ERROR, f"the client's handler gave no {definition}")
    return dumped
