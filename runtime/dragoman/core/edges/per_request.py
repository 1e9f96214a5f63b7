"""The edge towards a server of the per-request era.

Lives here: the ids and progress tokens that are lent to requests, and whose each answer or notification is. Must not:
know what a request means to a client (`core.switch.to_stateless`), touch sockets or a clock. Called by the switch.

Theory of operation. The connection is that of an `UpstreamEdge`, which has found out the era of the server. Every
request gets an id of ours, so that requests of several clients, later rounds of one call, and streams of notifications
never have the same id. The progress token of a request is its id. What the server says belongs to one request: by the
stream that it came on, by the subscription that it names, by its progress token; on a pipe a log message names nothing,
so it belongs to a session only if no other session has a request there ("Notifications that relate to an in-flight
request", 2026-07-28/basic/transports/stdio), and none of another principal ever had one.

Who asks may do so in another revision of the era than the server speaks: then it has a `Way`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dragoman.core.calls import Suspect, cancellation, is_unanswered
from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR, METHOD_NOT_FOUND
from dragoman.core.commands import Outcome
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.way import Way
from dragoman.core.envelope import (
    Frame,
    Malformed,
    Refusal,
    decoded,
    error_frame,
    key_of,
    new_frame,
    outline_of,
)
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.loans import Loans
from dragoman.core.methods import CANCELLED, LOG, PROGRESS, first_name
from dragoman.core.mistakes import explain_malformed, refuse_garbled
from dragoman.core.origin import Origin
from dragoman.core.peek import SPLICED_BYTES, splice_id
from dragoman.core.rules.annotations import KEYWORD, Mirrored
from dragoman.core.rules.headers import make_headers
from dragoman.core.rules.names import META_SUBSCRIPTION_ID
from dragoman.core.unchecked import find_object

logger = logging.getLogger("dragoman.session")

_TOKEN: Final = "progressToken"
_OURS: Final = (b"input_required", b'"taskId"', KEYWORD.encode())
"""What stands in each result that is not passed on as it came; `rfind` takes a third of what `in` does."""


def _ignore(frame: Frame) -> None: ...


@dataclass(slots=True, eq=False)
class PerRequestLoan:
    """A request that is with the server.

    Attributes:
        method: What it asks; as the server's revision calls it, once it is sent.
        owner: For whom: those of one client have the same.
        answer: Takes the answer, with a body that has been decoded, under an id that means nothing here; also where the
            server is gone, or what should have answered it is not a response: an error of ours.
        notify: Takes a notification for it, decoded; its progress token is what the request had.
        hears_logs: Whether log messages can be about it.
        passes_as: The id of who asks, where `answer` takes a long result in which nothing is ours as it came but for
            that id, without a body; None where every answer is decoded.
        key: Its id there; empty before it is sent.
        token: The progress token that it had; None if it had none, for `null` is no token.
        way: To the server's revision and back; None where it is made in that.
    """

    method: str
    owner: Hashable = None
    answer: Callable[[Frame], None] = _ignore
    notify: Callable[[Frame], None] = _ignore
    hears_logs: bool = False
    passes_as: Any = None
    key: bytes = b""
    token: Any = None
    way: Way | None = None
    frame: ClassVar[None] = None


class PerRequestEdge:
    """The machine for one server.

    Args:
        upstream: The connection.
    """

    __slots__ = ("_loans", "upstream")

    def __init__(self, upstream: UpstreamEdge) -> None:
        self.upstream = upstream
        self._loans: Loans[PerRequestLoan] = Loans()
        upstream.serve(self)

    def lend(
        self,
        lent: PerRequestLoan,
        params: dict[str, Any],
        mirrored: Sequence[Mirrored] = (),
        written: Frame | None = None,
        sender: str = "",
        source: tuple[object, ...] = (),
        origin: Origin | None = None,
    ) -> PerRequestLoan:
        """Send a request under an id of ours; give it.

        Args:
            lent: Who hears of it.
            params: Stamped; theirs to keep.
            mirrored: The arguments that are repeated in headers, where there are headers.
            written: A frame with this method and these params, if there is one: encoding a large one takes long.
            sender: Whose share of the places at the server it takes.
            source: The connection that it came on, where nobody has a name.
            origin: What else is known of it.
        """
        self._loans.lend(lent, sender)
        number, method = self._loans.latest, lent.method
        meta = params["_meta"]
        if meta.get(_TOKEN) is not None:
            lent.token = meta[_TOKEN]
            params, written = {**params, "_meta": {**meta, _TOKEN: number}}, None
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if lent.way is not None:
            crossed = lent.way.ask(Frame(b"", "request", lent.key, method, body))
            if crossed.kind == "error":
                self._loans.by_key.pop(lent.key).answer(crossed)
                return lent
            body, written = crossed.body, None
            method = lent.method = body["method"]
        headers = tuple(make_headers(body, mirrored)) if self.upstream.takes_headers else ()
        line, bare = None, b""
        if written is not None and len(written.raw) > SPLICED_BYTES:
            bare = outline_of(written)
            line = splice_id(written.raw, lent.key, bare)
        line = line or encode_line(body)
        self.upstream.send(
            new_frame(Frame, (line, "request", lent.key, method, body, None, headers, sender, source, origin, bare))
        )
        return lent

    def withdraw(self, lent: PerRequestLoan, reason: str | None = None) -> None:
        """Cancel a request, if it is not answered."""
        if self._loans.by_key.pop(lent.key, None) is None:
            return
        self._suspect(lent)
        self.upstream.send(cancellation(lent.key, reason))

    def withdraw_all(self, owner: Hashable, reason: str) -> None:
        """Cancel what is not answered of this client's requests."""
        for lent in [one for one in self._loans.by_key.values() if one.owner is owner]:
            self.withdraw(lent, reason)

    def _suspect(self, lent: PerRequestLoan) -> None:
        if lent.hears_logs:
            self._loans.suspects.add(lent.key, Suspect(lent.owner, asks=True))

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """The server is gone: what it was asked may have run, so it is answered with an error and not sent again.

        Nothing else is lost. The next request opens the server again.
        """
        lent, self._loans.by_key = list(self._loans.by_key.values()), {}
        self._loans.suspects.forget_all()
        level = logging.WARNING if lent else logging.INFO  # it may go because its client has
        logger.log(level, "the server is gone, and is opened again when it is needed: %s", reason)
        for one in lent:
            _fail(one, Refusal(CONNECTION_CLOSED, reason, {}))

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Take what the server says."""
        if isinstance(frame, Malformed):
            self._take_malformed(frame)
            return
        if len(frame.raw) > SPLICED_BYTES and frame.body is None and self._passes(frame):
            return
        try:
            frame = decoded(frame)
        except ValueError as error:
            self._take_malformed(
                Malformed(INTERNAL_ERROR, str(error), frame.key, frame.kind in ("result", "error"), frame.raw)
            )
            return
        match frame.kind:
            case "result" | "error":
                self._take_response(frame)
            case "notification":
                self._take_notification(frame)
            case "request":
                # "The server MUST NOT write JSON-RPC requests" (2026-07-28/basic/transports/stdio).
                logger.warning("%s request of the server refused: in its revision, servers send none", frame.method)
                self.upstream.send(
                    error_frame(frame.key, METHOD_NOT_FOUND, "servers of this revision have no requests")
                )
            case _:
                logger.warning("an array of the server dropped: its revision has no arrays")

    def _passes(self, frame: Frame) -> bool:
        """Hand on a long result without decoding it, if its names show that nothing in it is for us."""
        lent = self._loans.by_key.get(frame.key or b"")
        if lent is None or lent.passes_as is None or frame.kind != "result":
            return False
        bare = outline_of(frame)
        is_ours = any(bare.rfind(word) >= 0 for word in _OURS)
        line = None if is_ours else splice_id(frame.raw, key_of(lent.passes_as) or b"null", bare)
        if line is not None:
            self._loans.take(frame.key)
            lent.answer(Frame(line, "result", lent.key, None))
        return line is not None

    def _take_malformed(self, frame: Malformed) -> None:
        logger.warning("%s", explain_malformed(frame))
        lent = self._loans.by_key.pop(frame.key, None) if frame.is_response and frame.key is not None else None
        if lent is not None:
            _fail_garbled(lent, frame.reason)

    def _take_response(self, frame: Frame) -> None:
        kind, body = frame.kind, frame.body
        is_final = kind == "result" or not is_unanswered(frame)
        lent = self._loans.take(frame.key, is_final)
        if lent is None:
            logger.debug("the server answered %s, which was never asked or is already answered", frame.key)
            return
        if not is_final:
            self._suspect(lent)
        if not isinstance(body[kind], dict):
            _fail_garbled(lent, f"expected {kind} to be an object")
        elif lent.way is None:
            lent.answer(frame)
        else:
            lent.answer(lent.way.answer(frame, lent.method))

    def _take_notification(self, frame: Frame) -> None:
        params = find_object(frame.body, "params")
        method = first_name(self.upstream.revision, frame.method or "")
        lent = self._find(method, frame.stream, params) or self._guess(method, frame.stream)
        if lent is None:
            logger.debug("%s of the server dropped: it names no request that is under way", frame.method)
            return
        if method == PROGRESS:
            if lent.token is None:
                return
            frame = frame._replace(body={**frame.body, "params": {**params, _TOKEN: lent.token}})
        told = frame if lent.way is None else lent.way.tell(frame)
        if told is not None:
            lent.notify(told)

    def _find(self, method: str, stream: bytes | None, params: Mapping[str, Any]) -> PerRequestLoan | None:
        meta = params.get("_meta")
        if isinstance(meta, dict) and META_SUBSCRIPTION_ID in meta:
            return self._loans.by_key.get(key_of(meta[META_SUBSCRIPTION_ID]) or b"")
        if method == PROGRESS:
            return self._loans.by_key.get(key_of(params.get(_TOKEN)) or b"")
        if method == CANCELLED:  # the server ends a stream of notifications
            return self._loans.by_key.get(key_of(params.get("requestId")) or b"")
        return None if stream is None else self._loans.by_key.get(stream)

    def _guess(self, method: str, stream: bytes | None) -> PerRequestLoan | None:
        """Return a request that a log message without a stream can be about: it is for one client, or for nobody."""
        if stream is not None or method != LOG or self._loans.is_of_several:
            return None
        heard = [lent for lent in self._loans.by_key.values() if lent.hears_logs]
        owners = {lent.owner for lent in heard}
        is_clear = len(heard) == 1 or (len(owners) == 1 and owners != {""})  # who has no name may be several
        return heard[-1] if is_clear and not self._loans.suspects.may_explain(owners, only_asking=True) else None


def _fail_garbled(lent: PerRequestLoan, reason: str) -> None:
    refusal = refuse_garbled(reason, lent.method)
    logger.warning("%s fails: %s", lent.method, refusal.message)
    _fail(lent, refusal)


def _fail(lent: PerRequestLoan, refusal: Refusal) -> None:
    body = decode(refusal.answer(lent.key).raw)
    lent.answer(Frame(b"", "error", lent.key, None, body))
