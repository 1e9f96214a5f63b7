"""The traffic of one client's session: every frame of one peer to the other, and every answer back.

Lives here: pairing responses with requests, translating, and answering what cannot cross. Must not: know how a session
opens or ends (`core.edges`), which server a frame goes to (`core.switch`), what a client may be asked (`core.consent`),
how anything is translated, or what to say of a peer's mistake (`core.mistakes`). Called by `core.edges.front`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Mapping
from typing import Any, Final

from dragoman.core.around import Around
from dragoman.core.batches import Batch
from dragoman.core.calls import OURS, Call, Calls, Unfit, cancellation, cancelled_key, read_token
from dragoman.core.codes import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.commands import CLIENT, SERVER, ClientEdge, Outbox, Schedule, Side
from dragoman.core.consent import Consent, Method
from dragoman.core.edges.arrays import relay_array
from dragoman.core.edges.backend import Backend
from dragoman.core.envelope import (
    Frame,
    Malformed,
    Refusal,
    decoded,
    error_frame,
    id_of,
    mend_response,
    rewrite,
    written,
)
from dragoman.core.methods import CANCELLED, INITIALIZED, LISTEN, PROGRESS
from dragoman.core.mistakes import Mistakes, refuse_garbled
from dragoman.core.peek import with_id
from dragoman.core.repeats import TWO_FRAMES, repeats_name
from dragoman.core.settings import Settings
from dragoman.core.timeouts import Ages, explain_age, limit_time
from dragoman.core.translate import Adaptor, Counters, Translator

logger = logging.getLogger("dragoman.exchange")

_AT_ONCE: Final = frozenset({INITIALIZED, CANCELLED})
"""What middleware does not get: it opens the session, or has to be heard while a request is with middleware."""


class Exchange:
    """Relays frames between two peers once, and also before, their revisions are known.

    Args:
        front: The client's edge.
        backend: Who serves it.
        settings: What the user decided.
        outbox: Where commands go.

    Attributes:
        front: The client's edge.
        backend: Who serves it.
        settings: What the user decided.
        calls: The requests of each peer that are not answered.
        revisions: What each peer speaks, as far as that is known.
        counters: What is counted of this session.
        identity: Whether both peers speak the same, so that no frame is touched.
        mistakes: What is said of a peer's mistakes.
        ages: How old the requests of the client are; None without a limit.
        around: Which requests and notifications middleware has; None without any.
        notes_tokens: Whether it matters which request of the client has which progress token.
        observer: Told of each call; None where nobody wants to know.
    """

    __slots__ = (
        "_adaptors",
        "_apart",
        "_consent",
        "_own",
        "_reads",
        "ages",
        "around",
        "backend",
        "calls",
        "counters",
        "front",
        "identity",
        "mistakes",
        "notes_tokens",
        "observer",
        "revisions",
        "settings",
    )

    def __init__(
        self,
        front: ClientEdge,
        backend: Backend[Any],
        settings: Settings,
        outbox: Outbox,
    ) -> None:
        self.counters = Counters()
        self.mistakes = Mistakes(self.counters, settings.restore_ids)
        self.calls = {Side.CLIENT: Calls(settings.open_requests), Side.SERVER: Calls(settings.open_requests)}
        self.identity = True
        self.front = front
        self.around: Around | None = Around(front, self, outbox) if settings.has_middleware else None
        self.ages: Ages[Call] | None = limit_time(Schedule(outbox, front).after, self.tick, settings)
        self.notes_tokens = self.ages is not None
        self.observer = None if settings.observer is None else settings.observer.session(front)
        self.counters.tell = None if self.observer is None else self.observer.lost
        self.settings = settings
        self.revisions: dict[Side, str | None] = {Side.CLIENT: None, Side.SERVER: None}
        self._adaptors = {side: self._adaptor(side, None) for side in Side}
        self._consent = Consent()
        self.serve(backend)

    def speak(self, upward: Translator, downward: Translator) -> None:
        """Set what each peer speaks.

        Args:
            upward: From the client's revision to the server's.
            downward: From the server's to the client's.
        """
        self.revisions = {Side.CLIENT: upward.source, Side.SERVER: upward.target}
        self._adaptors = {
            side: self._adaptor(side, None if way.identity else way)
            for side, way in ((Side.CLIENT, upward), (Side.SERVER, downward))
        }
        self._write_where_wanted()
        self.identity = upward.identity and downward.identity

    def serve(self, backend: Backend[Any]) -> None:
        """Let somebody else serve the client from here on."""
        self.backend = backend
        self._own, self._reads = backend.own, backend.reads
        self._apart = backend.own.union(backend.reads)
        self._write_where_wanted()

    def _write_where_wanted(self) -> None:
        """Write what crossed, unless whoever takes it changes it and nobody else looks at it."""
        seen = self.around is not None or self.ages is not None or self.settings.watch is not None
        self._adaptors[Side.CLIENT].writes = self.backend.wants_lines or seen

    def know_client(self, capabilities: dict[str, Any], methods: Mapping[str, Method]) -> None:
        """Set what the client declared, and the methods that its revision has: what is not translated needs neither."""
        if not self.identity:
            self._consent = Consent(self.revisions[Side.CLIENT], capabilities, methods)

    def release(self) -> None:
        """Let go of who is at both ends."""
        for calls in self.calls.values():
            for call in calls.waiting.values():
                call.held = None  # the two know each other, and would stay until somebody looks
            calls.clear()
        for part in (self.ages, self.around):
            if part is not None:
                part.release()
        self.observer = self.counters.tell = None
        del self.front, self.backend, self._reads

    def relay(self, side: Side, frame: Frame) -> None:
        """Carry one frame from this peer to the other."""
        match frame.kind:
            case "request":
                self.relay_request(side, frame, None)
            case "notification":
                self._relay_notification(side, frame)
            case "batch":
                relay_array(self, side, frame)
            case _:
                self.relay_response(side, frame)

    def fail_all(self, side: Side, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        """Answer every request of this peer that waits with an error."""
        for call in self.calls[side].take_all():
            if self.around is not None:
                self.around.cancel(call)
            self._deliver(side, call, call.refuse(Refusal(code, message, {"method": call.method, **(data or {})})))

    def interrupt(self, failure: Refusal) -> None:
        """End everything that is under way with a server that is gone: no answer will come, and it waits for none."""
        self.fail_all(Side.CLIENT, failure.code, failure.message, failure.data)
        asked = self.calls[Side.SERVER]
        for key in list(asked.cancelled):
            asked.retire(key)
        for call in asked.take_all():
            asked.retire(call.key)
            if self.around is None or self.around.cancel(call):
                self.front.send(cancellation(call.key, "the server that asked is gone"))

    def answer(self, call: Call, frame: Frame) -> None:
        """Give the client the server's answer to this call, which stands under the client's own id already."""
        if self.calls[CLIENT].remove(call):
            self.pass_answer(SERVER, call, frame)
        else:
            self.mistakes.note_unmatched(Side.SERVER, call.key)

    def settle(self, call: Call, frame: Frame) -> None:
        """Give the client an answer to this call that is in its own revision already."""
        if self.observer is not None:
            self.observer.answered(call)
        if not self.calls[CLIENT].remove(call):
            self.mistakes.note_unmatched(SERVER, call.key)
        elif self.around is not None and call.method not in self._own:
            self._settle(SERVER, call, frame)
        else:
            self._deliver(CLIENT, call, frame)

    def pose(self, frame: Frame, take: Callable[[Frame], None]) -> Unfit | None:
        """Ask the client something, in its own revision; give its answer to this, as it comes."""
        assert frame.key is not None
        assert frame.method is not None
        call = Call(frame.key, frame.method)
        call.own = take
        unfit = self.calls[Side.SERVER].add(call)
        if unfit is None and self.around is not None:
            self.around.take_request(Side.SERVER, call, frame)
        elif unfit is None:
            self.front.send(frame)
        return unfit

    def withdraw(self, key: bytes, reason: str) -> None:
        """Take back a question that was posed here; nothing where it is answered."""
        call = self.calls[Side.SERVER].take(key)
        if call is not None and (self.around is None or self.around.cancel(call)):
            self.front.send(cancellation(key, reason)._replace(stream=call.stream))

    def reject(self, side: Side, malformed: Malformed, beside: Container[bytes] = ()) -> None:
        """Deal with a line of this peer that is not a frame.

        A client is answered, as JSON-RPC says. A server is not: it did not ask; but who waits for the response that
        it garbled is told.

        Args:
            side: Who sent it.
            malformed: What is wrong with it.
            beside: The ids of requests that come with it in one array.
        """
        if malformed.is_told and malformed.key not in self.calls[side.other].waiting:
            return
        self.mistakes.note_malformed(side, malformed)
        answer = self.answer_malformed(side, malformed, beside)
        if answer is not None:
            self.front.send(answer)

    def answer_malformed(self, side: Side, malformed: Malformed, beside: Container[bytes] = ()) -> Frame | None:
        """Give what a client is told that sent what is no frame; whoever waits for the response that it garbles is."""
        if malformed.is_response and (self.fail_garbled(side, malformed) or not malformed.is_owed):
            self.front.answered()
        elif side is Side.CLIENT:
            is_taken = malformed.key in self.calls[side].waiting or malformed.key in beside
            key = None if is_taken else malformed.key
            return error_frame(key, malformed.code, malformed.reason)
        return None

    def _adaptor(self, side: Side, way: Translator | None) -> Adaptor:
        return Adaptor(way, self.settings.on_loss, self.counters, side, self.settings.watch)

    @property
    def passes_arrays(self) -> bool:
        """Whether an array may pass whole."""
        is_plain = not any(calls.renamed for calls in self.calls.values())
        return self.identity and is_plain and self.around is None and self.ages is None and self.backend.takes_arrays

    def relay_request(self, side: Side, frame: Frame, batch: Batch | None) -> None:
        """Carry one request from this peer to the other; it came in this array."""
        key, method = frame.key, frame.method
        assert key is not None
        assert method is not None
        call, calls = Call(key, method, batch, self.front), self.calls[side]
        if self.observer is not None:
            self.observer.began(side, call, frame)
        if (calls.cancelled or calls.retired or key.startswith(OURS)) and calls.is_used(key):
            frame = calls.rename(call, frame)
            key = call.key
        unfit = calls.add(call)
        if unfit is not None:
            refusal = self.mistakes.refuse_unfit(side, call, unfit, calls.limit)
            self._deliver(side, call, refusal.answer(None if unfit is Unfit.DUPLICATE else key))
            return
        is_asked = side is CLIENT
        if self.notes_tokens and is_asked and (token := read_token(frame)) is not None:
            calls.note_token(call, token)
        if is_asked and method in self._apart:
            if method in self._own:
                self.hand_on(side, call, frame)
                return
            adapted = self._reads[method](call, frame)
        else:
            forbidden = None if is_asked or self.identity else self._forbid(method)
            adapted = forbidden or self._adaptors[side].adapt(frame, method)
        if adapted is None:
            adapted = Refusal(METHOD_NOT_FOUND, f"the {side.other.value}'s revision has no {method}", {})
        if isinstance(adapted, Refusal):
            calls.take(key)
            self._deliver(side, call, adapted.answer(key))
        elif self.around is not None:
            named = adapted if frame.origin is None else adapted._replace(origin=frame.origin)
            self.around.take_request(side, call, named)
        else:
            self.hand_on(side, call, adapted)

    def hand_on(self, side: Side, call: Call, frame: Frame) -> None:
        """Take a request to the other peer, once middleware has let it go on."""
        if side is not CLIENT:
            self.front.send(frame)
            return
        if self.observer is not None:
            self.observer.handed(call)
        if self.ages is not None and call.method != LISTEN:  # which ends when its client wants
            self.ages.start(call)
        self.backend.carry(call, frame)

    def fail_garbled(self, side: Side, malformed: Malformed) -> bool:
        """Tell who waits for a response that this peer garbled; False where nobody does."""
        call = None if malformed.key is None else self.calls[side.other].take(malformed.key)
        if call is not None:
            refusal = refuse_garbled(malformed.reason, call.method, side.value)
            self.pass_answer(side, call, refusal.answer(call.key))
        return call is not None

    def _forbid(self, method: str) -> Refusal | None:
        refusal = self._consent.refuse(method)
        if refusal is not None:
            self.counters.refused += 1
            logger.warning("%s request of the server refused: %s", method, refusal.message)
        return refusal

    def _relay_notification(self, side: Side, frame: Frame) -> None:
        if frame.method == CANCELLED:
            frame, passes = self.note_cancellation(side, frame)
            if not passes:
                return
        elif self.ages is not None and side is Side.SERVER and frame.method == PROGRESS:
            asked = self.calls[CLIENT]
            self.ages.renew(asked.waiting.get(frame.stream or b"") or asked.find_progressing(frame))
        if frame.method == PROGRESS and (asked := self.calls[side.other]).has_renamed:
            told = asked.restore_token(frame)
            if told is None:
                return
            frame = told
        if side is Side.CLIENT and frame.method in self._own:
            self.backend.notify(self.front, frame)
            return
        adapted = self._adaptors[side].adapt(frame, frame.method)
        if not isinstance(adapted, Frame):
            return
        if self.around is None or frame.method in _AT_ONCE:
            self.forward(side, adapted)
        else:
            self.around.take_notice(side, adapted)

    def forward(self, side: Side, frame: Frame) -> None:
        """Hand on what is neither a request nor the answer to one."""
        if side is Side.CLIENT:
            self.backend.notify(self.front, frame)
        else:
            self.front.send(frame)

    def note_cancellation(self, side: Side, frame: Frame) -> tuple[Frame, bool]:
        """Record a cancellation; give it decoded, for whoever looks at it next, and whether the peer needs it."""
        with contextlib.suppress(ValueError):
            frame = decoded(frame)
        key = cancelled_key(frame)
        renamed = self.calls[side].renamed.get(key or b"")
        if renamed is not None:
            params = {**frame.body["params"], "requestId": id_of(renamed.key)}
            key, frame = renamed.key, rewrite(frame, {**frame.body, "params": params})
        call = None if key is None else self.calls[side].cancel(key)
        if call is not None and self.observer is not None:
            self.observer.ended(call, None)
        if call is not None and call.batch is not None:
            whole, call.batch = call.batch.forgo(), None
            if whole is not None:  # the answer that will not come must not hold up the others
                self.front.post(side, whole)
        return frame, call is None or self.around is None or self.around.cancel(call)

    def relay_response(self, side: Side, frame: Frame) -> None:
        """Carry one response of this peer to whoever asked."""
        key = frame.key
        if side is CLIENT and repeats_name(frame.raw):  # a server may take it for a request, past all rules
            self.reject(side, Malformed(INVALID_REQUEST, TWO_FRAMES, key, is_response=True))
            return
        if frame.body is not None:
            frame = mend_response(frame)
        call = None if key is None else self.calls[side.other].take(key)
        if call is None and key is not None:
            frame, call = self.mistakes.take_twin(side, frame, key, self.calls[side.other])
            if call is None:
                self.mistakes.note_unmatched(side, key)
                return
        if call is not None:
            self.pass_answer(side, call, frame)
            return
        adapted = self._adaptors[side].adapt(frame, None)  # an error without id: it answers nothing
        if isinstance(adapted, Frame):
            self.front.post(side.other, adapted)

    def pass_answer(self, side: Side, call: Call, frame: Frame, is_final: bool = False) -> None:
        """Deliver the answer of this peer to a request that is off the table; final: middleware has had it."""
        if self.observer is not None:
            self.observer.answered(call)
        if self.around is not None and not is_final:
            self._settle(side, call, written(frame))
            return
        if call.own is not None:
            call.own(frame)
            return
        if call.translate is not None:
            adapted = call.translate(frame)
        elif frame.raw:
            adapted = self._adaptors[side].adapt(frame, call.method)
        else:
            adapted = self._adaptors[side].cross(frame.kind, call.key, call.method, frame.body)
        if adapted is None:  # who asked must not wait for ever
            adapted = Refusal(INTERNAL_ERROR, "the answer has no counterpart in the revision of who asked", {})
        answer = adapted.answer(call.key) if isinstance(adapted, Refusal) else adapted
        if call.batch is None and call.first is None:
            if self.observer is not None:
                self.observer.ended(call, answer)
            self.front.post(side.other, answer)
        else:
            self._deliver(side.other, call, answer)

    def find_revision(self, side: Side, call: Call | None, frame: Frame) -> str | None:
        """Return what is spoken at this side: a request may say it, for its notifications as well."""
        about = call or self.calls[CLIENT].waiting.get(frame.stream or b"")
        return (None if about is None else about.revision) or self.revisions[side]

    def _settle(self, side: Side, call: Call, frame: Frame) -> None:
        """Give middleware the answer of this peer to a request that was just taken off the table."""
        assert self.around is not None, "without middleware an answer goes on"
        if call.held is not None:
            self.calls[side.other].put_back(call)
        if not self.around.take_answer(call, frame):
            self.counters.unmatched += 1

    def conclude(self, side: Side, call: Call, frame: Frame, *, is_at_peer: bool) -> None:
        """Answer a request of this peer with what middleware gives, in the revision of the peer across."""
        calls = self.calls[side]
        calls.remove(call)
        if is_at_peer:
            calls.cancelled[call.key] = call  # where a switch looks it up
            self.forward(side, cancellation(call.key, "it was answered by a middleware"))
            calls.cancelled.pop(call.key, None)
        self.pass_answer(side.other, call, frame, is_final=True)

    def tick(self) -> None:
        """Give up the requests that are too old now, and tell the server that nobody waits for them any more."""
        assert self.ages is not None, "nobody is reminded without a limit"
        asked, asking = self.calls[Side.CLIENT], self.calls[Side.SERVER]
        # While the server waits for the client, its time does not run.
        runs = all(call.method == "ping" for call in asking.waiting.values())
        for call, limit_s in self.ages.tick(lambda call: asked.waiting.get(call.key) is call, runs=runs):
            failure = explain_age(call.method, limit_s)
            self.counters.timed_out += 1
            asked.cancel(call.key)
            self.backend.notify(self.front, cancellation(call.key, failure.message))
            asked.remove(call)
            self.pass_answer(SERVER, call, call.refuse(failure))
        self.front.answered()

    def _deliver(self, side: Side, call: Call, frame: Frame) -> None:
        if call.own is not None:
            call.own(frame)
            return
        if call.first is not None and frame.key is not None:
            key = call.first[0]
            try:
                frame = frame._replace(raw=with_id(frame, key), key=key, body=None)
            except ValueError as error:
                frame = error_frame(key, INTERNAL_ERROR, f"the answer cannot be read: {error}")
        if self.observer is not None:
            self.observer.ended(call, frame)
        whole = frame if call.batch is None else call.batch.answer(frame)
        if whole is not None:
            self.front.post(side, whole)
