"""The traffic of an open session: every frame of one peer to the other, and every answer back.

Lives here: pairing responses with requests, translating, splitting and joining batches, answering what cannot cross,
and standing between a client and requests that it never said it can serve. Must not: know how a session opens or ends
(`core.session`, `core.handshake`), nor how anything is translated. Called by `core.session`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dragoman.core.batches import REVISION_WITH_BATCHES, Batch
from dragoman.core.commands import Side
from dragoman.core.correlation import Asked, InFlight
from dragoman.core.envelope import (
    INVALID_REQUEST,
    Frame,
    Malformed,
    Overlong,
    classify,
    decode,
    encode_error,
    encode_line,
    key_of,
    show,
    twin_of,
)
from dragoman.core.translate import INTERNAL_ERROR, Adaptor, Counters, OnLoss, Refusal, Translator

logger = logging.getLogger("dragoman.exchange")

METHOD_NOT_FOUND = -32601


class Method(Protocol):
    """What is needed of `dragoman_spec`'s methods."""

    @property
    def kind(self) -> str:
        """`request` or `notification`."""

    @property
    def sender(self) -> frozenset[str]:
        """Who may send it: `client`, `server` or both."""

    @property
    def capability(self) -> str | None:
        """What the receiver must have declared."""


class Exchange:
    """Relays frames between two peers once, and also before, their revisions are known.

    Args:
        post: Called with (side, line) for every line to send to a peer.
        on_loss: What to do about frames that cannot be carried whole.
        restore_ids: Whether rule `restore-id-type` is on.
    """

    __slots__ = (
        "_adaptors",
        "_capabilities",
        "_client_methods",
        "_on_loss",
        "_post",
        "_restore_ids",
        "_revisions",
        "counters",
        "identity",
        "in_flight",
    )

    def __init__(
        self, post: Callable[[Side, bytes], None], on_loss: OnLoss = OnLoss.WARN, *, restore_ids: bool = True
    ) -> None:
        self._restore_ids = restore_ids
        self.counters = Counters()
        self.in_flight = {Side.CLIENT: InFlight(), Side.SERVER: InFlight()}
        self._post = post
        self._on_loss = on_loss
        self._revisions: dict[Side, str | None] = {Side.CLIENT: None, Side.SERVER: None}
        self._adaptors = {side: Adaptor(None, on_loss, self.counters) for side in Side}
        self._capabilities: dict[str, Any] = {}
        self._client_methods: Mapping[str, Method] = {}
        self.identity = True

    def speak(self, upward: Translator, downward: Translator) -> None:
        """Set what each peer speaks.

        Args:
            upward: From the client's revision to the server's.
            downward: From the server's to the client's.
        """
        self._revisions = {Side.CLIENT: upward.source, Side.SERVER: upward.target}
        self._adaptors = {
            side: Adaptor(None if way.identity else way, self._on_loss, self.counters)
            for side, way in ((Side.CLIENT, upward), (Side.SERVER, downward))
        }
        self.identity = upward.identity and downward.identity

    def know_client(self, capabilities: dict[str, Any], methods: Mapping[str, Method]) -> None:
        """Set what the client declared, and the methods that its revision has: what is not translated needs neither."""
        if not self.identity:
            self._capabilities = capabilities
            self._client_methods = methods

    def relay(self, side: Side, frame: Frame) -> None:
        """Carry one frame from this peer to the other."""
        match frame.kind:
            case "request":
                self._relay_request(side, frame, None)
            case "notification":
                self._relay_notification(side, frame)
            case "batch":
                self._relay_batch(side, frame)
            case _:
                self._relay_response(side, frame)

    def fail_all(self, side: Side, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        """Answer every request of this peer that waits with an error."""
        for key, asked in self.in_flight[side].take_all():
            about = {"method": asked.method, **(data or {})}
            self._deliver(side, asked, encode_error(key, code, message, about))

    def reject(self, side: Side, malformed: Malformed, line: bytes | Overlong = b"") -> None:
        """Deal with a line of this peer that is not a frame.

        A client is answered, as JSON-RPC says. A server is not: it did not ask; but who waits for the response that
        it garbled is told.

        Args:
            side: Who sent it.
            malformed: What is wrong with it.
            line: The line itself. That of a server is shown in the log, shortened: it often says what is wrong there.
        """
        self.counters.malformed += 1
        shown = f": {show(line)}" if line and side is Side.SERVER else ""
        logger.warning("malformed line from the %s: %s%s", side.value, malformed.reason, shown)
        if malformed.is_response:
            asked = None if malformed.key is None else self.in_flight[side.other].take(malformed.key)
            if asked is not None and malformed.key is not None:
                message = f"the {side.value} answered with something that is not a response: {malformed.reason}"
                data = {"method": asked.method}
                self._deliver(side.other, asked, encode_error(malformed.key, INTERNAL_ERROR, message, data))
        elif side is Side.CLIENT:
            key = None if malformed.key in self.in_flight[side].waiting else malformed.key
            self._post(side, encode_error(key, malformed.code, malformed.reason))

    def _relay_request(self, side: Side, frame: Frame, batch: Batch | None) -> None:
        key, method = frame.key, frame.method
        assert key is not None
        assert method is not None
        asked = Asked(method, batch)
        if not self.in_flight[side].add(key, asked):
            self._refuse_duplicate(side, frame, asked)
            return
        refusal = self._forbid(method) if side is Side.SERVER and not self.identity else None
        adapted = refusal or self._adaptors[side].adapt(frame, method)
        if adapted is None:
            adapted = Refusal(METHOD_NOT_FOUND, f"the {side.other.value}'s revision has no {method}", {})
        if isinstance(adapted, Refusal):
            self.in_flight[side].take(key)
            self._deliver(side, asked, _write_refusal(key, adapted))
        else:
            self._post(side.other, adapted)

    def _refuse_duplicate(self, side: Side, frame: Frame, asked: Asked) -> None:
        # "The request ID MUST NOT have been previously used by the requestor within the same session." The answer
        # carries no id: it would end the request that rightly holds it.
        reason = f"the id {_shown(frame.key)} of this {frame.method} request belongs to one that is not answered yet"
        self.counters.malformed += 1
        logger.warning("malformed request from the %s: %s", side.value, reason)
        self._deliver(side, asked, encode_error(None, INVALID_REQUEST, reason))

    def _forbid(self, method: str) -> Refusal | None:
        """Refuse a server's request that the client never said it can serve.

        "Both parties MUST only use capabilities that were successfully negotiated" (lifecycle, Operation). Clients
        on mcp 1.6.0 die of a request that they cannot parse, so what the client's revision does not have is kept
        from it too, unless it declared experimental capabilities, which is where private methods come from.
        """
        known = self._client_methods.get(method)
        if known is None or "server" not in known.sender:
            if not self._client_methods or self._capabilities.get("experimental"):
                return None
            reason = f"revision {self._revisions[Side.CLIENT]} has no {method} request to a client"
        elif known.capability is None or _declares(self._capabilities, known.capability):
            return None
        else:
            reason = f"the client did not declare the capability {known.capability}"
        self.counters.refused += 1
        logger.warning("%s request of the server refused: %s", method, reason)
        return Refusal(METHOD_NOT_FOUND, reason, {"method": method})

    def _relay_notification(self, side: Side, frame: Frame) -> None:
        if frame.method == "notifications/cancelled":
            self._note_cancellation(side, frame)
        adapted = self._adaptors[side].adapt(frame, frame.method)
        if adapted is not None and not isinstance(adapted, Refusal):
            self._post(side.other, adapted)

    def _note_cancellation(self, side: Side, frame: Frame) -> None:
        key = cancelled_key(frame)
        batch = None if key is None else self.in_flight[side].cancel(key)
        whole = None if batch is None else batch.forgo()
        if whole is not None:  # the answer that will not come must not hold up the others
            self._post(side, whole)

    def _relay_response(self, side: Side, frame: Frame) -> None:
        key = frame.key
        asked = None if key is None else self.in_flight[side.other].take(key)
        if asked is None and key is not None and self._restore_ids:
            frame, asked = self._take_twin(side, frame, key)
            key = frame.key
        if asked is None and key is not None:
            self.counters.unmatched += 1
            logger.debug("the %s answered %s, which nobody asked or which was answered", side.value, _shown(key))
            if not self.identity:
                return
        adapted = self._adaptors[side].adapt(frame, asked.method if asked else None)
        if asked is None or key is None:
            if isinstance(adapted, bytes):
                self._post(side.other, adapted)
            return
        if adapted is None:  # who asked must not wait for ever
            adapted = Refusal(INTERNAL_ERROR, "the answer has no counterpart in the revision of who asked", {})
        line = _write_refusal(key, adapted) if isinstance(adapted, Refusal) else adapted
        self._deliver(side.other, asked, line)

    def _take_twin(self, side: Side, frame: Frame, key: bytes) -> tuple[Frame, Asked | None]:
        """Find the request whose id came back as another type, and give the response its id again."""
        twin = twin_of(key)
        asked = None if twin is None else self.in_flight[side.other].take(twin)
        if twin is None or asked is None:
            return frame, None
        logger.debug("the %s answered %s as %s", side.value, _shown(twin), _shown(key))
        try:
            body = {**(decode(frame.raw) if frame.body is None else frame.body), "id": decode(twin)}
        except ValueError as error:
            line = encode_error(twin, INTERNAL_ERROR, f"the {side.value}'s answer cannot be read: {error}")
            return Frame(line, "error", twin, None), asked
        return frame._replace(raw=encode_line(body), key=twin, body=body), asked

    def _deliver(self, side: Side, asked: Asked, line: bytes) -> None:
        whole = line if asked.batch is None else asked.batch.answer(line)
        if whole is not None:
            self._post(side, whole)

    def _relay_batch(self, side: Side, frame: Frame) -> None:
        if self._revisions[side] != REVISION_WITH_BATCHES:
            reason = f"expected one JSON-RPC object: only revision {REVISION_WITH_BATCHES} has batches"
            self.reject(side, Malformed(INVALID_REQUEST, reason))
            return
        members = [_read_member(member) for member in frame.body]
        if not members:
            self.reject(side, Malformed(INVALID_REQUEST, "expected a batch to hold at least one frame"))
        elif self.identity:
            self._pass_batch(side, frame, members)
        else:
            self._split_batch(side, members)

    def _split_batch(self, side: Side, members: list[Frame | Malformed]) -> None:
        frames = [member for member in members if isinstance(member, Frame)]
        batch = Batch(sum(frame.kind == "request" for frame in frames))
        for member in members:
            if isinstance(member, Malformed):
                self.counters.malformed += 1
                logger.warning("malformed member of a batch from the %s: %s", side.value, member.reason)
                if not member.is_response:
                    batch.answers.append(encode_error(member.key, member.code, member.reason))
        whole = batch.complete()
        if whole is not None:
            self._post(side, whole)
        for frame in frames:
            if frame.kind == "request":
                self._relay_request(side, frame, batch)
            else:
                self.relay(side, frame)

    def _pass_batch(self, side: Side, frame: Frame, members: list[Frame | Malformed]) -> None:
        """Pass an array between two peers that both know arrays; only note who waits for what."""
        batch = Batch()
        for member in members:
            if isinstance(member, Malformed):
                continue
            if member.method == "notifications/cancelled":
                self._note_cancellation(side, member)
            if member.key is None:
                continue
            if member.kind == "request":
                assert member.method is not None
                batch.open_requests += self.in_flight[side].add(member.key, Asked(member.method, batch))
            else:
                asked = self.in_flight[side.other].take(member.key)
                if asked is not None and asked.batch is not None:
                    asked.batch.open_requests -= 1
        self.counters.passed += 1
        self._post(side.other, frame.raw)


def cancelled_key(frame: Frame) -> bytes | None:
    """Give the id that a `notifications/cancelled` names, if it names one."""
    try:
        body = decode(frame.raw) if frame.body is None else frame.body
    except ValueError:
        return None
    params = body.get("params")
    return key_of(params.get("requestId")) if isinstance(params, dict) else None


def _write_refusal(key: bytes, refusal: Refusal) -> bytes:
    return encode_error(key, refusal.code, refusal.message, refusal.data or None)


def _read_member(member: Any) -> Frame | Malformed:
    if isinstance(member, list):
        return Malformed(INVALID_REQUEST, "expected a JSON object, found an array inside a batch")
    frame = classify(encode_line(member), member)
    if isinstance(frame, Frame) and frame.method == "initialize":
        # "The initialize request MUST NOT be part of a JSON-RPC batch" (2025-03-26/basic/lifecycle).
        return Malformed(INVALID_REQUEST, "initialize must not be part of a batch", frame.key)
    return frame


def _declares(capabilities: dict[str, Any], path: str) -> bool:
    found: Any = capabilities
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return found is not None and found is not False


def _shown(key: bytes | None) -> str:
    return (key or b"none")[:60].decode(errors="replace")
