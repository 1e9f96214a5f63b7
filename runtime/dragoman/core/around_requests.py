"""What middleware has of clients whose requests each speak for themselves.

Lives here: which of their requests middleware has, how far each is, and what becomes of its answer. Must not: run
middleware (`host.chains`), or know who serves the requests. Made by `core.edges.per_request_front` where there is
middleware; `around` is the same for sessions.

Theory of operation. Middleware stands before whatever bridges the eras, so it sees the revision of the client. All the
while a request is in the client's table: a cancellation or the end of the connection finds it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dragoman.core.around import Deferral
from dragoman.core.bridge.names import DISCOVER, NEWER
from dragoman.core.calls import Call
from dragoman.core.commands import Abandon, Defer, Outbox, Settle, Side
from dragoman.core.envelope import Frame, decoded, rewrite
from dragoman.core.exact_json import encode_line

if TYPE_CHECKING:
    from dragoman.core.edges.front import FrontEdge
    from dragoman.core.edges.per_request_front import PerRequestFront, Request


_REVISIONS: Final[Mapping[Side, str | None]] = {Side.CLIENT: NEWER, Side.SERVER: NEWER}


class AroundRequests:
    """What middleware has of one connection.

    Args:
        front: The edge that has the connection.
        requests: The requests that come over it.
        outbox: Where commands go.
    """

    __slots__ = ("_deferrals", "_front", "_outbox", "_requests")

    def __init__(self, front: FrontEdge, requests: PerRequestFront, outbox: Outbox) -> None:
        self._front = front
        self._requests = requests
        self._outbox = outbox
        self._deferrals: dict[Request, Deferral] = {}

    @property
    def revisions(self) -> Mapping[Side, str | None]:
        """What is spoken at either side of the middleware: the client's revision."""
        return _REVISIONS

    # What the client's edge says

    def take_request(self, request: Request) -> bool:
        """Give middleware a request; False for those that it does not get."""
        if request.method == DISCOVER:  # it is to this era what the handshake is to the other
            return False
        call = Call(request.key, request.method, None, self._front)
        frame = request.frame._replace(body=request.body)
        deferral = self._deferrals[request] = Deferral(self._front, Side.CLIENT, frame, call, self)
        self._outbox.add(Defer(deferral))
        return True

    def take_notice(self, frame: Frame) -> bool:
        """Give middleware a notification of the server."""
        self._outbox.add(Defer(Deferral(self._front, Side.SERVER, frame, None, self)))
        return True

    def take_answer(self, request: Request, frame: Frame) -> bool:
        """Give middleware the answer to a request; False where it is not waiting for one."""
        deferral = self._deferrals.get(request)
        if deferral is None:
            return False
        if deferral.take_answer():
            self._outbox.add(Settle(deferral, frame))
        return True

    def cancel(self, request: Request) -> bool:
        """Take note that nobody waits for a request any more; whether somebody serves it."""
        deferral = self._deferrals.pop(request, None)
        if deferral is None:
            return True
        self._outbox.add(Abandon(deferral))
        return deferral.end()

    # What middleware says

    def proceed(self, deferral: Deferral, frame: Frame) -> None:
        """Take a request or notification on, as it is now."""
        deferral.let_go()
        if deferral.call is None:
            self._requests.put_notice(frame)
            return
        request = self._requests.requests[deferral.call.key]
        request.go_on_as(_with_metadata(frame, request))
        self._requests.carry(request)

    def conclude(self, deferral: Deferral, frame: Frame) -> None:
        """Answer a request with what middleware gives."""
        call = deferral.call
        assert call is not None, "a notification has no answer"
        request = self._requests.requests.get(call.key)
        if request is None or self._deferrals.pop(request, None) is not deferral:
            return  # nobody waits any more
        if deferral.end():
            self._requests.withdraw(request, "it was answered by a middleware")
        self._requests.finish(request, _under_its_id(frame, request))


def _with_metadata(frame: Frame, request: Request) -> Frame:
    """Give a request what it says of its client, if middleware has left that out."""
    frame = decoded(frame)
    params = frame.body.get("params")
    if isinstance(params, dict) and isinstance(params.get("_meta"), dict):
        return frame
    meta = {"_meta": request.params["_meta"]}
    return rewrite(frame, {**frame.body, "params": {**(params or {}), **meta}})


def _under_its_id(frame: Frame, request: Request) -> Frame:
    """Give an answer the id that the client knows: middleware knows a key, which is another one over HTTP."""
    body = {**decoded(frame).body, "id": request.id}
    result = body.get("result")
    if isinstance(result, dict) and "resultType" not in result:
        body["result"] = {"resultType": "complete", **result}
    elif body["id"] == decoded(frame).body.get("id"):
        return frame
    return frame._replace(raw=encode_line(body), body=body)
