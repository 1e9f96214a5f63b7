"""What a handler can do while it answers a request: tell of progress, log, and ask the client.

Lives here: the object that each handler is given. Must not: know how a question reaches the client (`session`,
`parking`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.core.declared import find_missing, read_declared
from dragoman.core.methods import LOG, PROGRESS
from dragoman.errors import CapabilityNotSupported
from dragoman.server.definition import ServerDefinition


@dataclass(slots=True)
class Context:
    """One request, seen by its handler.

    Attributes:
        method: Of it.
        request_id: As the client gave it.
        client_capabilities: What the client declared.
        client_info: How the client names itself; None if it does not.
    """

    method: str
    request_id: str | int
    client_capabilities: Mapping[str, Any]
    client_info: Mapping[str, Any] | None
    _definition: ServerDefinition
    _say: Callable[[str, dict[str, Any]], None]
    _ask: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
    _token: str | int | None = None
    _log_level: str | None = None

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far the request has come, if the client wants to know.

        Args:
            progress: More than before.
            total: How much it will be.
            message: For a person; left out where the revision has no such member.
        """
        if self._token is None:
            return
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self._definition.has_member(PROGRESS, "message"):
            params["message"] = message
        self._say(PROGRESS, params)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message, unless the client wants none of this level.

        Args:
            level: One of the revision's.
            data: Any JSON.
            logger: Whose message it is.

        Raises:
            ValueError: The server does not say that it logs, or the revision has no such level.
        """
        self._definition.check_notice(LOG)
        levels = self._definition.facts.log_levels
        if level not in levels:
            raise ValueError(f"{self._definition.revision} has no log level {level!r}; there are: {', '.join(levels)}")
        if self._log_level is None or levels.index(level) < levels.index(self._log_level):
            return
        params = {"level": level, "data": data}
        self._say(LOG, params if logger is None else {**params, "logger": logger})

    async def ask(self, request: Any, *, anyway: bool = False) -> Any:
        """Ask the client: for a completion, for a person's answer, for roots.

        Args:
            request: A request of the server in its revision, `CreateMessageRequest(params=…)`, or the same as a dict.
            anyway: Whether to ask without a look at what the client declared. Servers must not; many do, and a server
                that stands for one of them can.

        Returns:
            The result, as a model of the revision; as an object where the server is plain.

        Raises:
            CapabilityNotSupported: The client did not declare what the request needs.
            McpError: It answered with an error.
        """
        body = request if isinstance(request, dict) else request.model_dump()
        method, params = body["method"], body.get("params") or {}
        missing = find_missing(method, params, read_declared(self.client_capabilities))
        if missing is not None and not anyway:
            raise CapabilityNotSupported(method, missing)
        return self._definition.read_asked(method, await self._ask(method, params))

    def renew(self, request_id: str | int, token: str | int | None, log_level: str | None) -> None:
        """Go on in another request of the client, which brought what the handler had asked for."""
        self.request_id, self._token, self._log_level = request_id, token, log_level
