"""What a server with a handshake has answered, as its per-request client gets it.

Lives here: one answer at a time, over the steps, and the protocol of who passes it on. Must not: know who waits for it.
Called by `open_session`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dragoman.core.bridge import errors
from dragoman.core.bridge.capabilities import Path
from dragoman.core.bridge.metadata import put_identity
from dragoman.core.bridge.names import META_SERVER_INFO
from dragoman.core.bridge.replay import Replay
from dragoman.core.bridge.tasks import leave_off_relation
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.edges.per_request_front import Request
from dragoman.core.envelope import Frame, Refusal
from dragoman.core.methods import LIST_TOOLS
from dragoman.core.switch.listed_tools import ListedTools
from dragoman.core.switch.to_handshake.reading import read_response
from dragoman.core.switch.to_handshake.works import Work
from dragoman.core.translate import Adaptor


@dataclass(frozen=True, slots=True)
class VisitFirst:
    """The server wants URLs visited before it runs the call: its error says which."""

    error: Mapping[str, Any]


class Answerer(Protocol):
    """Who gives results to clients, and requests to the server."""

    def answer(self, request: Request, result: dict[str, Any]) -> None:
        """Answer with a result in the form of 2026-07-28."""

    def take_answer(self, work: Work, frame: Frame) -> None:
        """Give the server's answer to who waits for it."""

    def start(self, request: Request, params: Mapping[str, Any], attempt: Replay | None = None) -> None:
        """Send the server a request with these params; one that was made before has its answers recorded."""


class Answers:
    """Spells the answers of one server.

    Args:
        path: The way between client and server.
        identity: Who the server is; empty where it does not say.
        downward: Translates for the client.
        tools: What is known of its tools.
    """

    __slots__ = ("_downward", "_identity", "_path", "_tools")

    def __init__(self, path: Path, identity: dict[str, Any], downward: Adaptor, tools: ListedTools) -> None:
        self._tools = tools
        self._path = path
        self._identity = identity
        self._downward = downward

    def sign(self, result: dict[str, Any]) -> dict[str, Any]:
        """Give a result of our own that says whose it is."""
        return put_identity(result, self._identity) if self._identity else result

    def spell(self, method: str, frame: Frame, key: bytes, request_id: Any) -> Frame | Refusal | VisitFirst:
        """Give an answer under the client's own id.

        Args:
            method: That was asked.
            frame: The server's response.
            key: What the client's request is known as.
            request_id: Its id, as the client wrote it.
        """
        try:
            body = read_response(frame, method)
        except ValueError as error:
            reason = f"the server answered with something that is not a response: {error}"
            return Refusal(INTERNAL_ERROR, reason, {"method": method})
        if frame.kind == "error" and isinstance(errors.answer_error(body["error"], method, self._path), errors.Visit):
            return VisitFirst(body["error"])
        body, kind = body.copy(), frame.kind
        body["id"] = request_id
        if kind == "result":
            result = body["result"]
            if method == LIST_TOOLS:
                result = body["result"] = dict(self._tools.note(result))
            if "_meta" in result:
                body["result"] = self.sign(leave_off_relation(result))
            elif self._identity:
                body["result"] = {**result, "_meta": {META_SERVER_INFO: self._identity.copy()}}
        adapted = self._downward.cross(kind, key, method, body)
        return adapted or Refusal(INTERNAL_ERROR, "the answer has no counterpart for the client", {})
