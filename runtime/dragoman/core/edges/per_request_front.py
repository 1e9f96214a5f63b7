"""The edge towards a client whose requests each speak for themselves: 2026-07-28 and what comes after it.

Lives here: what is checked of a request before it goes anywhere, and the frames that go back. Must not: know the server
(`core.switch`), or open and end the connection (`front`, which hands on every frame once the first one has shown of
which era its client is). The `Exchange` has the table of those that are not answered, middleware and timeouts, as it
has for a session; it carries each request back here, where it goes on to who serves it.

Such a client opens nothing and closes nothing. It gets answers, and notifications on the stream of a request of its
own; it is never asked anything, other than by a result (2026-07-28/basic/patterns/mrtr).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from dragoman.core.calls import Call, Unfit, cancellation, cancelled_key, read_reason, read_token
from dragoman.core.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.commands import CLIENT, SERVER, ClientEdge, Side
from dragoman.core.edges.backend import NOTHING_READ
from dragoman.core.edges.exchange import Exchange
from dragoman.core.edges.way import Way
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded, notification_frame, rewrite, written
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import CALL_TOOL, CANCELLED, FIRST_NAMES, LISTEN, first_name
from dragoman.core.origin import NOWHERE
from dragoman.core.places import has_place
from dragoman.core.repeats import TWO_FRAMES
from dragoman.core.rules.discovery import served_versions
from dragoman.core.rules.errors import unsupported_version
from dragoman.core.rules.metadata import Metadata, MetadataReader, read
from dragoman.core.rules.names import (
    DISCOVER,
    META_SUBSCRIPTION_ID,
    NEWER,
    TASK_METHODS,
    UNSUPPORTED_VERSION,
)
from dragoman.core.unchecked import find_object
from dragoman.errors import RemoteProtocolError
from dragoman_spec import PER_REQUEST_REVISIONS, REVISIONS, load

if TYPE_CHECKING:
    from dragoman.core.edges.per_request import PerRequestLoan

logger = logging.getLogger("dragoman.session")


def _list_not_served(revision: str) -> frozenset[str]:
    """List the methods of a revision that are no requests of a client, and those that only older revisions have.

    Whoever sends one of the latter means something that is not there any more.
    """
    older = frozenset(name for one in REVISIONS[: REVISIONS.index(revision)] for name in load(one).METHODS)
    sent = {name: method for name, method in load(revision).METHODS.items() if "client" in method.sender}
    gone = older - sent.keys() - TASK_METHODS.keys()
    return gone | {name for name, method in sent.items() if method.kind != "request"}


_NOT_SERVED: Final[Mapping[str, frozenset[str]]] = {
    revision: _list_not_served(revision) for revision in PER_REQUEST_REVISIONS
}


class PerRequestCall(Call):
    """A request that is not answered yet.

    Attributes:
        method: As the runtime knows it; in the body it has the name of its revision.
        key: What it is known as at the connection; the id as canonical JSON, where the connection has one client.
        id: As the client wrote it.
        frame: As it came, or as middleware lets it go on.
        body: The same, decoded.
        params: Of the request; they have the metadata at least, once that is read.
        metadata: What it says of its client.
        ended: What is to be done once it is answered, or about to be cancelled.
        way: Back to the client's revision, where it is served in another one.
    """

    __slots__ = ("body", "ended", "frame", "id", "metadata", "params", "way")

    at_server: PerRequestLoan | None
    metadata: Metadata

    def __init__(self, front: ClientEdge, frame: Frame, body: dict[str, Any]) -> None:
        assert frame.key is not None
        super().__init__(frame.key, body["method"], None, front)
        self.id = body["id"]
        self.frame = frame
        self.body = body
        self.params: dict[str, Any] = body.get("params", {})
        self.ended: Callable[[PerRequestCall], None] | None = None
        self.way: Way | None = None

    @property
    def revision(self) -> str:
        """What it is written in."""
        return self.metadata.revision

    def refuse(self, failure: Refusal) -> Frame:
        """Return the error that answers it."""
        return _write_error(self.key, self.id, failure.code, failure.message, failure.data)

    @property
    def progress_token(self) -> Any:
        """The progress token; None without one."""
        return self.params["_meta"].get("progressToken")


class RequestBackend(Protocol):
    """Who serves such a client: a switch."""

    def carry(self, request: PerRequestCall) -> None:
        """Serve a request: answer it some time."""

    def cancel(self, request: PerRequestCall, reason: str) -> None:
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
        exchange: Knows which are not answered, and has middleware and timeouts.
        backend: Who serves them.

    Attributes:
        requests: Those that are not answered, by key.
        is_relayed: Whether its server has turned out to belong to the same era.
    """

    __slots__ = ("_backend", "_exchange", "_reader", "is_relayed", "requests")

    takes_arrays = False
    wants_lines = True
    own: frozenset[str] = frozenset({DISCOVER, CANCELLED})
    """Middleware gets neither: the first is what the handshake is to the other era."""
    reads = NOTHING_READ

    def __init__(self, exchange: Exchange, backend: RequestBackend) -> None:
        self._exchange = exchange
        self._backend = backend
        self.is_relayed = False
        # Middleware may change what has been read.
        self._reader = None if exchange.settings.has_middleware else MetadataReader(PER_REQUEST_REVISIONS)
        self.requests = cast("dict[bytes, PerRequestCall]", exchange.calls[Side.CLIENT].waiting)
        exchange.revisions = {Side.CLIENT: NEWER, Side.SERVER: NEWER}
        exchange.serve(self)

    def hand_to(self, backend: RequestBackend) -> None:
        """Have somebody else serve what comes from here on: a server of the same era."""
        self._backend, self.is_relayed = backend, True

    def release(self) -> None:
        """Let go of who is at both ends."""
        del self._exchange, self._backend

    # What the client does

    def take_frame(self, frame: Frame) -> None:
        """Take a frame of the client."""
        if frame.kind == "request":
            self._take_request(frame)
        elif frame.method == CANCELLED and frame.sender:  # a principal may not come in any more
            self._backend.leave(read_reason(frame) or "", frame.sender)
        elif frame.method == CANCELLED:
            self._exchange.relay(Side.CLIENT, frame)
        elif frame.kind == "batch":
            self.reject(Malformed(INVALID_REQUEST, "expected one JSON-RPC object"))
        else:
            logger.debug("%s %s of the client dropped: its revision has none", frame.method or "a", frame.kind)

    def reject(self, malformed: Malformed) -> None:
        """Deal with a line that is not a frame. Of an error without a request the schema says no id, and never null."""
        self._exchange.mistakes.note_malformed(Side.CLIENT, malformed)
        if malformed.is_owed:
            key = None if malformed.key in self.requests else malformed.key
            request_id = None if key is None else decode(key)
            self._exchange.front.send(_write_error(key, request_id, malformed.code, malformed.reason, None))

    def abandon(self, key: bytes, reason: str) -> None:
        """Record that nobody waits for a request any more."""
        self._exchange.relay(Side.CLIENT, cancellation(key, reason))

    def leave(self, reason: str) -> None:
        """Record that the client says no more."""
        self._backend.leave(reason)

    def drain(self, reason: str) -> None:
        """End in order what would never end: listen streams, and calls that wait for their client to come back."""
        for request in [one for one in self.requests.values() if one.method == LISTEN]:
            self._backend.cancel(request, reason)
            self.put_result(request, {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: request.id}})
        self._backend.leave(reason)

    def _take_request(self, frame: Frame) -> None:
        exchange, key = self._exchange, frame.key
        try:
            body = decode(frame.raw) if frame.body is None else frame.body
        except ValueError as error:
            exchange.front.send(_write_error(key, None, PARSE_ERROR, str(error), None))
            return
        if body.get("method") != frame.method:  # it has two, and a peek has seen the other one
            self.reject(Malformed(INVALID_REQUEST, TWO_FRAMES, key))
            return
        request = PerRequestCall(exchange.front, frame, body)
        unfit = exchange.calls[CLIENT].add(request)
        if unfit is None and frame.sender and not self._has_place(request):
            del self.requests[request.key]
            unfit = Unfit.TOO_MANY
        if unfit is not None:
            refusal = exchange.mistakes.refuse_unfit(CLIENT, request, unfit, len(self.requests))
            # Under its id, the answer would end the one that rightly has it.
            answered_id = None if unfit is Unfit.DUPLICATE else request.id
            exchange.front.send(_write_error(key, answered_id, *refusal))
            return
        try:
            request.metadata = read_request(request.method, body.get("params"), self._reader)
            if request.metadata.revision in FIRST_NAMES:
                request.method = first_name(request.metadata.revision, request.method)
        except RemoteProtocolError as error:
            del self.requests[request.key]
            exchange.counters.refused += 1
            logger.warning("%s request of the client refused: %s", frame.method, error.message)
            exchange.front.send(_write_error(key, request.id, error.code, error.message, error.data))
            return
        if exchange.observer is not None:
            exchange.observer.began(CLIENT, request, frame)
        if exchange.ages is not None and (token := read_token(frame)) is not None:
            exchange.calls[CLIENT].note_token(request, token)
        if exchange.around is None or request.method == DISCOVER:
            exchange.hand_on(CLIENT, request, frame)
        else:
            request.translate = partial(_under_its_id, request)
            exchange.around.take_request(CLIENT, request, frame._replace(body=body))

    def _has_place(self, request: PerRequestCall) -> bool:
        senders = (one.frame.sender for one in self.requests.values() if one is not request)
        return has_place(request.frame.sender, senders, len(self.requests) - 1, self._exchange.settings.open_requests)

    # What the exchange does

    def carry(self, call: Call, frame: Frame) -> None:
        """Have a request served, as middleware has let it go on."""
        assert isinstance(call, PerRequestCall)
        if frame is not call.frame:
            frame = _with_metadata(frame, call)
            came, params = call.params, frame.body["params"]
            if call.method == CALL_TOOL and params.get("arguments") is not came.get("arguments"):
                origin = (frame.origin or NOWHERE)._replace(came=find_object(came, "arguments"))
                frame = frame._replace(origin=origin)
            call.frame, call.body, call.params = frame, frame.body, params
        self._backend.carry(call)

    def notify(self, front: object, frame: Frame) -> None:
        """Tell who serves a request that nobody waits for it: the client says nothing else."""
        request = self._exchange.calls[Side.CLIENT].cancelled.pop(cancelled_key(frame) or b"", None)
        if isinstance(request, PerRequestCall):
            if request.ended is not None:
                request.ended(request)
            self._backend.cancel(request, read_reason(frame) or "")

    def reply(self, front: object, frame: Frame) -> None:
        """Nothing to do: such a client is asked nothing."""

    # What is behind does

    def attempt(self, request: PerRequestCall, step: Callable[[PerRequestCall], None]) -> None:
        """Take a step with a request, unless it is over already; refuse it where that cannot be done."""
        if self.requests.get(request.key) is not request:
            return
        try:
            step(request)
        except RemoteProtocolError as error:
            logger.warning("%s request of the client refused: %s", request.method, error.message)
            self.refuse(request, error.code, error.message, error.data)
        except ValueError as error:
            self.refuse(request, INVALID_PARAMS, str(error))

    def put_result(self, request: PerRequestCall, result: dict[str, Any]) -> None:
        """Answer a request with a result, in the client's revision."""
        self.put_answer(request, {"jsonrpc": "2.0", "id": request.id, "result": result})

    def put_answer(self, request: PerRequestCall, body: dict[str, Any]) -> None:
        """Answer a request with a response that has its id already."""
        kind = "result" if "result" in body else "error"
        self.put_frame(request, Frame(encode_line(body), kind, request.key, None))

    def put_frame(self, request: PerRequestCall, frame: Frame) -> None:
        """Answer a request with a response that is written already; middleware has it first, if there is any."""
        if self.requests.get(request.key) is request:
            if request.ended is not None:
                request.ended(request)
            if request.way is not None:
                frame = written(request.way.answer(frame, request.body["method"]))
            self._exchange.settle(request, frame)
            self._exchange.front.answered()

    def refuse(self, request: PerRequestCall, code: int, message: str, data: Any = None) -> None:
        """Answer a request with an error."""
        self.put_frame(request, request.refuse(Refusal(code, message, data)))

    def tell(self, request: PerRequestCall, method: str, params: dict[str, Any] | None) -> None:
        """Send a notification on the stream of a request."""
        frame = notification_frame(method, params)._replace(stream=request.key)
        told = frame if request.way is None else request.way.tell(frame)
        if told is not None:  # middleware has rules by principal
            self.tell_frame(written(told)._replace(sender=request.frame.sender))

    def tell_frame(self, frame: Frame) -> None:
        """Send a notification that is written already."""
        self._exchange.relay(SERVER, frame)


def _write_error(key: bytes | None, request_id: Any, code: int, message: str, data: Any) -> Frame:
    error = {"code": code, "message": message} | ({"data": data} if data else {})
    body = {"jsonrpc": "2.0"} | ({"id": request_id} if request_id is not None else {}) | {"error": error}
    return Frame(encode_line(body), "error", key, None, body)


def read_request(method: str, params: object, reader: MetadataReader | None = None) -> Metadata:
    """Check a request as far as that can be done without knowing the server; give what it says of its client.

    Args:
        method: Of the request.
        params: As they came.
        reader: Knows what the requests before have said of their client.

    Raises:
        RemoteProtocolError: It cannot be served.
    """
    try:
        metadata = read(params, PER_REQUEST_REVISIONS) if reader is None else reader.read(params)
    except RemoteProtocolError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        said = unsupported_version((error.data or {}).get("requested"), served_versions())
        raise RemoteProtocolError(said.code, said.message, said.data) from None
    if method in _NOT_SERVED[metadata.revision]:
        raise RemoteProtocolError(METHOD_NOT_FOUND, f"revision {metadata.revision} has no {method}", {"method": method})
    return metadata


def _with_metadata(frame: Frame, request: PerRequestCall) -> Frame:
    """Give a request what it says of its client, if middleware has left that out."""
    frame = decoded(frame)
    params = frame.body.get("params")
    if isinstance(params, dict) and isinstance(params.get("_meta"), dict):
        return frame
    meta = {"_meta": request.params["_meta"]}
    return rewrite(frame, {**frame.body, "params": {**(params or {}), **meta}})


def _under_its_id(request: PerRequestCall, frame: Frame) -> Frame:
    """Give an answer the id that the client knows: middleware knows a key, which is another one over HTTP."""
    body = {**decoded(frame).body, "id": request.id}
    result = body.get("result")
    if isinstance(result, dict) and "resultType" not in result:
        body["result"] = {"resultType": "complete", **result}
    elif body["id"] == decoded(frame).body.get("id"):
        return frame
    return rewrite(frame, body)
