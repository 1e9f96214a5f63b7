"""The edge towards a client whose requests each speak for themselves: 2026-07-28 and what comes after it.

Lives here: what is checked of a request before it goes anywhere, the table of those that are not answered, and the
frames that go back. Must not: know the server (`core.switch`), or open and end the connection (`front`, which hands
on every frame once the first one has shown of which era its client is).

Such a client opens nothing and closes nothing. It gets answers, and notifications on the stream of a request of its
own; it is never asked anything, other than by a result (2026-07-28/basic/patterns/mrtr).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from dragoman.core.around import Around
from dragoman.core.bridge.discovery import served_versions
from dragoman.core.bridge.errors import unsupported_version
from dragoman.core.bridge.metadata import Metadata, MetadataReader, read
from dragoman.core.bridge.names import (
    DISCOVER,
    META_SUBSCRIPTION_ID,
    PER_REQUEST_REVISIONS,
    TASK_METHODS,
    UNSUPPORTED_VERSION,
)
from dragoman.core.calls import NAME_BYTES, cancelled_key, read_reason
from dragoman.core.codes import CONNECTION_CLOSED, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.commands import ClientEdge, Outbox, Side
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded, notification_frame, read_params, rewrite
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import CANCELLED, LISTEN, PROGRESS
from dragoman.core.places import has_place
from dragoman.core.repeats import TWO_FRAMES
from dragoman.core.settings import Settings
from dragoman.core.timeouts import Ages, explain_age, limit_time
from dragoman.core.translate import Counters
from dragoman.errors import RemoteProtocolError
from dragoman_spec import HANDSHAKE_REVISIONS, load

if TYPE_CHECKING:
    from dragoman.core.edges.per_request import Lent

logger = logging.getLogger("dragoman.session")


_NEWER: Final = PER_REQUEST_REVISIONS[0]
_KNOWN: Final = frozenset(name for name, method in load(_NEWER).METHODS.items() if "client" in method.sender)
_NO_REQUESTS: Final = frozenset(name for name, method in load(_NEWER).METHODS.items() if method.kind != "request")
_OLDER: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in load(revision).METHODS)
_GONE: Final = _OLDER - _KNOWN - TASK_METHODS.keys()
"""Methods that only older revisions have; whoever sends one here means something that is not there any more."""

_NOT_SERVED: Final = _GONE | (_KNOWN & _NO_REQUESTS)


class Request:
    """A request that is not answered yet.

    Attributes:
        key: What it is known as at the connection; the id as canonical JSON, where the connection has one client.
        id: As the client wrote it.
        method: What it asks.
        frame: As it came, or as middleware lets it go on.
        body: The same, decoded.
        params: Of the request; they have the metadata at least.
        metadata: What it says of its client.
        lent: What stands for it at its server, where that knows it by another id.
        ended: What is to be done once it is answered, or about to be cancelled.
    """

    __slots__ = ("body", "ended", "frame", "id", "key", "lent", "metadata", "method", "params")

    def __init__(self, frame: Frame, body: dict[str, Any], metadata: Metadata) -> None:
        assert frame.key is not None
        self.key = frame.key
        self.id = body["id"]
        self.method: str = body["method"]
        self.frame = frame
        self.body = body
        self.params: dict[str, Any] = body["params"]
        self.metadata = metadata
        self.lent: Lent | None = None
        self.ended: Callable[[Request], None] | None = None

    def go_on_as(self, frame: Frame) -> None:
        """Take note of what middleware has made of it: a frame that is decoded."""
        self.frame, self.body, self.params = frame, frame.body, frame.body["params"]

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Those that repeat its arguments, where it came with headers."""
        return self.frame.headers

    @property
    def token(self) -> Any:
        """The progress token; None without one."""
        return self.params["_meta"].get("progressToken")


class BehindRequests(Protocol):
    """Who serves such a client: a switch."""

    def carry(self, request: Request) -> None:
        """Serve a request: answer it some time."""

    def cancel(self, request: Request, reason: str) -> None:
        """The client does not wait for this any more."""

    def leave(self, reason: str, sender: str = "") -> None:
        """The client has gone, and what waits for its return is over; what it has asked is still answered.

        Args:
            reason: Why.
            sender: The principal that may not come back, where it is one of several; empty for all.
        """


class PerRequestFront:
    """The requests of one client, or of several that are told apart by the keys of their frames.

    Args:
        front: The edge that has the connection.
        settings: What the user decided.
        counters: What the session has seen.
        outbox: Where commands go.
        behind: Who serves them.

    Attributes:
        requests: Those that are not answered, by key.
    """

    __slots__ = ("_ages", "_around", "_behind", "_counters", "_front", "_reader", "_settings", "requests")

    revisions: Final[Mapping[Side, str | None]] = {Side.CLIENT: _NEWER, Side.SERVER: _NEWER}

    def __init__(
        self, front: ClientEdge, settings: Settings, counters: Counters, outbox: Outbox, behind: BehindRequests
    ) -> None:
        self.requests: dict[bytes, Request] = {}
        self._front = front
        self._settings = settings
        self._counters = counters
        self._behind = behind
        self._around: Around[Request] | None = Around(front, self, outbox) if settings.has_middleware else None
        self._ages: Ages[Request] | None = limit_time(front, outbox, settings)
        # Middleware may change what has been read.
        self._reader = None if settings.has_middleware else MetadataReader(PER_REQUEST_REVISIONS)

    def hand_to(self, behind: BehindRequests) -> None:
        """Have somebody else serve what comes from here on."""
        self._behind = behind

    def release(self) -> None:
        """Let go of who is at both ends."""
        self.requests.clear()
        self._around = self._ages = None
        del self._front, self._behind

    # What the client does

    def take(self, frame: Frame) -> None:
        """Take a frame of the client."""
        if frame.kind == "request":
            self._take_request(frame)
        elif frame.method == CANCELLED:
            request = self.requests.pop(cancelled_key(frame) or b"", None)
            if request is not None:
                self._cancel(request, read_reason(frame) or "")
            elif frame.sender:  # a principal may not come in any more
                self._behind.leave(read_reason(frame) or "", frame.sender)
        elif frame.kind == "batch":
            self._write_error(None, None, INVALID_REQUEST, "expected one JSON-RPC object", None)
        else:
            logger.debug("%s %s of the client dropped: its revision has none", frame.method or "a", frame.kind)

    def reject(self, malformed: Malformed) -> None:
        """Deal with a line that is not a frame. Of an error without a request the schema says no id, and never null."""
        self._counters.malformed += 1
        logger.warning("malformed line from the client: %s", malformed.reason)
        if not malformed.is_response:
            key = None if malformed.key in self.requests else malformed.key
            request_id = None if key is None else decode(key)
            self._write_error(key, request_id, malformed.code, malformed.reason, None)

    def abandon(self, key: bytes, reason: str) -> None:
        """Take note that nobody reads the stream of a request any more: that cancels it."""
        request = self.requests.pop(key, None)
        if request is not None:
            self._cancel(request, reason)

    def _cancel(self, request: Request, reason: str) -> None:
        if self._around is None or self._around.cancel(request):
            if request.ended is not None:
                request.ended(request)
            self._behind.cancel(request, reason)

    def leave(self, reason: str) -> None:
        """Take note that the client says no more."""
        self._behind.leave(reason)

    def drain(self, reason: str) -> None:
        """End in order what would never end: listen streams, and calls that wait for their client to come back."""
        for request in [one for one in self.requests.values() if one.method == LISTEN]:
            self._behind.cancel(request, reason)
            self.answer(request, {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: request.id}})
        self._behind.leave(reason)

    def _take_request(self, frame: Frame) -> None:
        key = frame.key
        assert key is not None
        try:
            body = decode(frame.raw) if frame.body is None else frame.body
        except ValueError as error:
            self._write_error(frame.key, None, PARSE_ERROR, str(error), None)
            return
        if body.get("method") != frame.method:  # it has two, and a peek has seen the other one
            self.reject(Malformed(INVALID_REQUEST, TWO_FRAMES, key))
            return
        requests = self.requests
        is_short = len(key) + len(frame.method or "") <= NAME_BYTES
        if key in requests or not is_short or not self._has_place(frame):
            self._refuse_unfit(frame, body)
            return
        try:
            request = read_request(frame, body, self._reader)
        except RemoteProtocolError as error:
            self._counters.refused += 1
            logger.warning("%s request of the client refused: %s", frame.method, error.message)
            self._write_error(key, body["id"], error.code, error.message, error.data)
            return
        requests[key] = request
        if self._around is None or request.method == DISCOVER:  # it is what the handshake is to the other era
            self._carry(request)
        else:
            self._around.take_request(Side.CLIENT, request, frame._replace(body=body))

    def _has_place(self, frame: Frame) -> bool:
        requests = self.requests
        whose = (one.frame.sender for one in requests.values())
        return has_place(frame.sender, whose, len(requests), self._settings.open_requests)

    def _refuse_unfit(self, frame: Frame, body: Mapping[str, Any]) -> None:
        key, unfit = frame.key or b"", self._explain_unfit(frame)
        self._counters.malformed += 1
        logger.warning("%s request of the client refused: %s", body["method"], unfit.message)
        is_known = key in self.requests  # under its id, the answer would end the one that rightly has it
        self._write_error(key, None if is_known else body["id"], unfit.code, unfit.message, unfit.data)

    def _carry(self, request: Request) -> None:
        if self._ages is not None and request.method != LISTEN:
            self._ages.start(request)
        self._behind.carry(request)

    def hand_on(self, side: Side, call: Request, frame: Frame) -> None:
        """Have a request served, once middleware has let it go on."""
        call.go_on_as(_with_metadata(frame, call))
        self._carry(call)

    def conclude(self, side: Side, call: Request, frame: Frame, *, is_at_peer: bool) -> None:
        """Answer a request with what middleware gives."""
        if is_at_peer:
            self._behind.cancel(call, "it was answered by a middleware")
        if self.requests.get(call.key) is call:
            self._finish(call, _under_its_id(frame, call))

    def tick(self) -> None:
        """Give up the requests that are too old now."""
        assert self._ages is not None, "nobody is reminded without a limit"
        for request, limit_s in self._ages.tick(lambda request: self.requests.get(request.key) is request):
            failure = explain_age(request.method, limit_s)
            self._counters.timed_out += 1
            self._behind.cancel(request, failure.message)
            self.refuse(request, failure.code, failure.message, failure.data)

    def _explain_unfit(self, frame: Frame) -> Refusal:
        if frame.key in self.requests:
            return Refusal(INVALID_REQUEST, "the id of this request belongs to one that is not answered yet", {})
        if not self._has_place(frame):
            reason = f"{len(self.requests)} requests of clients are unanswered already"
            return Refusal(CONNECTION_CLOSED, reason, {"limit": self._settings.open_requests})
        reason = f"expected id and method to have at most {NAME_BYTES} bytes together"
        return Refusal(INVALID_REQUEST, reason, {"limit": NAME_BYTES})

    # What is behind does

    def answer(self, request: Request, result: dict[str, Any]) -> None:
        """Answer a request with a result, in the client's revision."""
        self.put_answer(request, {"jsonrpc": "2.0", "id": request.id, "result": result})

    def put_answer(self, request: Request, body: dict[str, Any]) -> None:
        """Answer a request with a response that has its id already."""
        if self.requests.get(request.key) is request:
            kind = "result" if "result" in body else "error"
            self.put_frame(request, Frame(encode_line(body), kind, request.key, None))

    def put_frame(self, request: Request, frame: Frame) -> None:
        """Answer a request with a response that is written already; middleware has it first, if there is any."""
        if self.requests.get(request.key) is not request:
            return
        if self._around is not None and request in self._around:
            self._around.take_answer(request, frame)
        else:
            self._finish(request, frame)

    def _finish(self, request: Request, frame: Frame) -> None:
        del self.requests[request.key]
        if request.ended is not None:
            request.ended(request)
        self._front.send(frame)
        self._front.answered()

    def refuse(self, request: Request, code: int, message: str, data: Any = None) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": message} | ({"data": data} if data else {})
        self.put_answer(request, {"jsonrpc": "2.0", "id": request.id, "error": error})

    def tell(self, request: Request, method: str, params: dict[str, Any] | None) -> None:
        """Send a notification on the stream of a request."""
        self.tell_frame(notification_frame(method, params)._replace(stream=request.key))

    def tell_frame(self, frame: Frame) -> None:
        """Send a notification that is written already."""
        if self._ages is not None and frame.method == PROGRESS:
            token = read_params(frame).get("progressToken")
            for request in [one for one in self._ages if token is not None and one.token == token]:
                self._ages.renew(request)
        if self._around is None:
            self._front.send(frame)
        else:
            self._around.take_notice(Side.SERVER, frame)

    def forward(self, side: Side, frame: Frame) -> None:
        """Send a notification that middleware has let go on."""
        self._front.send(frame)

    def fail_all(self, failure: Refusal) -> None:
        """Answer every request that waits with an error, also those that middleware has."""
        for request in list(self.requests.values()):
            if self._around is not None:
                self._around.cancel(request)
            self.refuse(request, failure.code, failure.message, failure.data)

    def _write_error(self, key: bytes | None, request_id: Any, code: int, message: str, data: Any) -> None:
        error = {"code": code, "message": message} | ({"data": data} if data else {})
        body = {"jsonrpc": "2.0"} | ({"id": request_id} if request_id is not None else {}) | {"error": error}
        self._front.send(Frame(encode_line(body), "error", key, None, body))


def read_request(frame: Frame, body: dict[str, Any], reader: MetadataReader | None = None) -> Request:
    """Check a request as far as that can be done without knowing the server.

    Args:
        frame: As it came.
        body: The same, decoded.
        reader: Knows what the requests before have said of their client.

    Raises:
        RemoteProtocolError: It cannot be served.
    """
    method = body["method"]
    try:
        params = body.get("params")
        metadata = read(params, PER_REQUEST_REVISIONS) if reader is None else reader.read(params)
    except RemoteProtocolError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        said = unsupported_version((error.data or {}).get("requested"), served_versions())
        raise RemoteProtocolError(said.code, said.message, said.data) from None
    if method in _NOT_SERVED:
        raise RemoteProtocolError(METHOD_NOT_FOUND, f"revision {metadata.revision} has no {method}", {"method": method})
    return Request(frame, body, metadata)


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
