"""The traffic of an open session: every frame of one peer to the other, and every answer back.

Lives here: pairing responses with requests, translating, splitting and joining batches, and answering what cannot
cross. Must not: know how a session opens or ends (`core.session`, `core.handshake`), what a client may be asked
(`core.consent`), nor how anything is translated. Called by `core.session`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.core.batches import BATCH_REQUESTS, Batch, explain_batches, has_batches, read_member
from dragoman.core.commands import Side
from dragoman.core.consent import METHOD_NOT_FOUND, Consent, Method
from dragoman.core.correlation import NAME_BYTES, OPEN_REQUESTS, Asked, InFlight, Unfit, cancelled_key
from dragoman.core.envelope import INVALID_REQUEST, Frame, Malformed, encode_error, twin_of
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.lines import Overlong, show
from dragoman.core.tally import deserves_a_line
from dragoman.core.translate import INTERNAL_ERROR, Adaptor, Counters, OnLoss, Refusal, Translator

logger = logging.getLogger("dragoman.exchange")

TOO_MANY = -32000
"""The implementation-defined code for a request that is one too many; also that of a connection that went away."""


class Exchange:
    """Relays frames between two peers once, and also before, their revisions are known.

    Args:
        post: Called with (side, line) for every line to send to a peer.
        on_loss: What to do about frames that cannot be carried whole.
        restore_ids: Whether rule `restore-id-type` is on.
        open_requests: How many requests of each peer may be unanswered.
        batch_requests: How many requests one array may hold.
    """

    __slots__ = (
        "_adaptors",
        "_batch_requests",
        "_consent",
        "_on_loss",
        "_post",
        "_restore_ids",
        "_revisions",
        "counters",
        "identity",
        "in_flight",
    )

    def __init__(
        self,
        post: Callable[[Side, bytes], None],
        on_loss: OnLoss = OnLoss.WARN,
        *,
        restore_ids: bool = True,
        open_requests: int = OPEN_REQUESTS,
        batch_requests: int = BATCH_REQUESTS,
    ) -> None:
        self._restore_ids = restore_ids
        self._batch_requests = batch_requests
        self.counters = Counters()
        self.in_flight = {Side.CLIENT: InFlight(open_requests), Side.SERVER: InFlight(open_requests)}
        self._post = post
        self._on_loss = on_loss
        self._revisions: dict[Side, str | None] = {Side.CLIENT: None, Side.SERVER: None}
        self._adaptors = {side: Adaptor(None, on_loss, self.counters) for side in Side}
        self._consent = Consent()
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
            self._consent = Consent(self._revisions[Side.CLIENT], capabilities, methods)

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
            self._fail_garbled(side, malformed)
        elif side is Side.CLIENT:
            key = None if malformed.key in self.in_flight[side].waiting else malformed.key
            self._post(side, encode_error(key, malformed.code, malformed.reason))

    def _relay_request(self, side: Side, frame: Frame, batch: Batch | None) -> None:
        key, method = frame.key, frame.method
        assert key is not None
        assert method is not None
        asked = Asked(method, batch)
        unfit = self.in_flight[side].add(key, asked)
        if unfit is not None:
            self._refuse_unfit(side, frame, asked, unfit)
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

    def _fail_garbled(self, side: Side, malformed: Malformed) -> None:
        """Tell who waits for a response that this peer garbled."""
        asked = None if malformed.key is None else self.in_flight[side.other].take(malformed.key)
        if asked is not None and malformed.key is not None:
            message = f"the {side.value} answered with something that is not a response: {malformed.reason}"
            data = {"method": asked.method}
            self._deliver(side.other, asked, encode_error(malformed.key, INTERNAL_ERROR, message, data))

    def _refuse_unfit(self, side: Side, frame: Frame, asked: Asked, unfit: Unfit) -> None:
        if unfit is Unfit.DUPLICATE:
            self._refuse_duplicate(side, frame, asked)
            return
        limit = self.in_flight[side].limit
        code, reason = TOO_MANY, f"more than {limit} requests of the {side.value} are unanswered"
        if unfit is Unfit.TOO_LONG:
            code, reason = INVALID_REQUEST, f"expected id and method to have at most {NAME_BYTES} bytes together"
        self.counters.excess += 1
        if deserves_a_line(self.counters.excess):
            method, so_far = asked.method[:80], self.counters.excess
            logger.warning("%s request of the %s refused: %s (%d so far)", method, side.value, reason, so_far)
        data = {"method": asked.method[:80], "limit": limit if unfit is Unfit.TOO_MANY else NAME_BYTES}
        self._deliver(side, asked, encode_error(frame.key, code, reason, data))

    def _refuse_duplicate(self, side: Side, frame: Frame, asked: Asked) -> None:
        # "The request ID MUST NOT have been previously used by the requestor within the same session." The answer
        # carries no id: it would end the request that rightly holds it.
        reason = f"the id {_shown(frame.key)} of this {frame.method} request belongs to one that is not answered yet"
        self.counters.malformed += 1
        logger.warning("malformed request from the %s: %s", side.value, reason)
        self._deliver(side, asked, encode_error(None, INVALID_REQUEST, reason))

    def _forbid(self, method: str) -> Refusal | None:
        refusal = self._consent.refuse(method)
        if refusal is not None:
            self.counters.refused += 1
            logger.warning("%s request of the server refused: %s", method, refusal.message)
        return refusal

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
        if asked is None and key is not None:
            frame, asked = self._take_twin(side, frame, key)
            key = frame.key
        if asked is None and key is not None:
            self._note_unmatched(side, key)
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

    def _note_unmatched(self, side: Side, key: bytes) -> None:
        # Of several answers to one request only the first may reach whoever asked, whatever the revisions are.
        self.counters.unmatched += 1
        logger.debug("the %s answered %s, which nobody asked or which was answered", side.value, _shown(key))

    def _take_twin(self, side: Side, frame: Frame, key: bytes) -> tuple[Frame, Asked | None]:
        """Find the request whose id came back as another type, and give the response its id again."""
        twin = twin_of(key) if self._restore_ids else None
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
        if not has_batches(self._revisions[side]):
            self.reject(side, Malformed(INVALID_REQUEST, f"expected one JSON-RPC object: {explain_batches()}"))
            return
        members = [read_member(member) for member in frame.body]
        requests = {m.key: Asked(m.method) for m in members if isinstance(m, Frame) and m.key and m.method}
        asking = sum(isinstance(member, Frame) and member.kind == "request" for member in members)
        if not members:
            self.reject(side, Malformed(INVALID_REQUEST, "expected a batch to hold at least one frame"))
        elif asking > self._batch_requests:
            self._refuse_requests(side, members)
        elif self.identity and asking == len(requests) and self.in_flight[side].fits(requests):
            self._pass_batch(side, frame, members)
        else:
            self._split_batch(side, members)

    def _refuse_requests(self, side: Side, members: list[Frame | Malformed]) -> None:
        """Refuse the requests of an array together, with one error; what else is in it passes."""
        self.counters.excess += 1
        reason = f"expected a batch to hold no more than {self._batch_requests} requests"
        if deserves_a_line(self.counters.excess):
            logger.warning("a batch of the %s refused: %s (%d so far)", side.value, reason, self.counters.excess)
        self._post(side, encode_error(None, TOO_MANY, reason, {"limit": self._batch_requests}))
        rest = [member for member in members if not (isinstance(member, Frame) and member.kind == "request")]
        self._split_batch(side, rest)

    def _split_batch(self, side: Side, members: list[Frame | Malformed]) -> None:
        frames = [member for member in members if isinstance(member, Frame)]
        batch = Batch(sum(frame.kind == "request" for frame in frames))
        for member in members:
            if isinstance(member, Malformed):
                self.counters.malformed += 1
                logger.warning("malformed member of a batch from the %s: %s", side.value, member.reason)
                if member.is_response:
                    self._fail_garbled(side, member)
                else:
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
        """Pass an array between two peers that both know arrays, without the answers that nobody waits for."""
        batch = Batch()
        noted = [self._note_member(side, member, batch) for member in members]
        self.counters.passed += 1
        if all(passes is member for passes, member in zip(noted, members, strict=True)):
            self._post(side.other, frame.raw)
            return
        wanted = [
            passes.body if isinstance(passes, Frame) else body
            for passes, body in zip(noted, frame.body, strict=True)
            if passes is not None
        ]
        if wanted:
            self._post(side.other, encode_line(wanted))

    def _note_member(self, side: Side, member: Frame | Malformed, batch: Batch) -> Frame | Malformed | None:
        """Note who waits for what of an array that passes; give what passes of this member of it."""
        if isinstance(member, Malformed):
            if not member.is_response:
                return member
            self.reject(side, member)
            return None
        if member.method == "notifications/cancelled":
            self._note_cancellation(side, member)
        if member.key is None:
            return member
        if member.kind == "request":
            assert member.method is not None
            unfit = self.in_flight[side].add(member.key, Asked(member.method, batch))
            assert unfit is None, "an array that does not fit is split"
            batch.open_requests += 1
            return member
        asked = self.in_flight[side.other].take(member.key)
        if asked is None:
            member, asked = self._take_twin(side, member, member.key)
        if asked is None:
            self._note_unmatched(side, member.key or b"")
            return None
        if asked.batch is not None:
            asked.batch.open_requests -= 1
        return member


def _write_refusal(key: bytes, refusal: Refusal) -> bytes:
    return encode_error(key, refusal.code, refusal.message, refusal.data or None)


def _shown(key: bytes | None) -> str:
    return (key or b"none")[:60].decode(errors="replace")
