"""Arrays of frames, on their way from one peer to the other.

Lives here: passing one whole, or taking it apart, and refusing what cannot be one. Must not: translate, or keep
anything: what is open of an array is in its `Batch`. Called by `core.edges.exchange`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.core.batches import MOST_MEMBERS, Batch, cut, explain_batches, has_batches, read_member
from dragoman.core.calls import TOO_MANY, Call, read_token
from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed, error_frame, key_of, rewrite
from dragoman.core.tally import deserves_a_line

if TYPE_CHECKING:
    from dragoman.core.edges.exchange import Exchange

logger = logging.getLogger("dragoman.exchange")


def relay_array(exchange: Exchange, side: Side, frame: Frame) -> None:
    """Carry an array from this peer to the other: whole where both know arrays, else one member after the other."""
    if side is Side.CLIENT and len(frame.body) > MOST_MEMBERS:
        reason = f"expected an array to hold no more than {MOST_MEMBERS} frames"
        exchange.reject(side, Malformed(INVALID_REQUEST, reason))
        frame = cut(frame)
        if not frame.body:
            return
    if not has_batches(exchange.revisions[side]):
        garbled = Malformed(INVALID_REQUEST, f"expected one JSON-RPC object: {explain_batches()}")
        exchange.reject(side, garbled)
        for member in frame.body:
            if isinstance(member, dict) and "method" not in member:
                exchange.fail_garbled(side, garbled._replace(key=key_of(member.get("id"))))
        return
    members = [read_member(member, frame.stream) for member in frame.body]
    if frame.origin is not None:
        members = [one._replace(origin=frame.origin) if isinstance(one, Frame) else one for one in members]
    calls = [Call(m.key, m.method) for m in members if isinstance(m, Frame) and m.key and m.method is not None]
    if not members:
        exchange.reject(side, Malformed(INVALID_REQUEST, "expected a batch to hold at least one frame"))
    elif len(calls) > exchange.settings.batch_requests:
        _refuse_requests(exchange, side, members)
    elif exchange.passes_arrays and exchange.calls[side].fits(calls):
        _pass(exchange, side, frame, members)
    else:
        _split(exchange, side, members)


def _refuse_requests(exchange: Exchange, side: Side, members: list[Frame | Malformed]) -> None:
    """Refuse the requests of an array together, with one error; what else is in it passes."""
    exchange.counters.excess += 1
    reason = f"expected a batch to hold no more than {exchange.settings.batch_requests} requests"
    if deserves_a_line(exchange.counters.excess):
        logger.warning("a batch of the %s refused: %s (%d so far)", side.value, reason, exchange.counters.excess)
    exchange.front.post(side, error_frame(None, TOO_MANY, reason, {"limit": exchange.settings.batch_requests}))
    rest = [member for member in members if not (isinstance(member, Frame) and member.kind == "request")]
    _split(exchange, side, rest)


def _split(exchange: Exchange, side: Side, members: list[Frame | Malformed]) -> None:
    frames = [member for member in members if isinstance(member, Frame)]
    asked = _ids_of_requests(members)
    batch = Batch(sum(frame.kind == "request" for frame in frames))
    for member in members:
        if isinstance(member, Malformed):
            exchange.counters.malformed += 1
            logger.warning("malformed member of a batch from the %s: %s", side.value, member.reason)
            answer = exchange.answer_malformed(side, member, asked)
            if answer is not None:
                batch.answers.append(answer.raw)
    whole = batch.complete()
    if whole is not None:
        exchange.front.post(side, whole)
    for frame in frames:
        if frame.kind == "request":
            exchange.relay_request(side, frame, batch)
        else:
            exchange.relay(side, frame)


def _ids_of_requests(members: list[Frame | Malformed]) -> set[bytes]:
    """Give the ids under which something is asked in an array."""
    return {one.key for one in members if isinstance(one, Frame) and one.kind == "request" and one.key is not None}


def _pass(exchange: Exchange, side: Side, frame: Frame, members: list[Frame | Malformed]) -> None:
    """Pass an array between two peers that both know arrays, without the answers that nobody waits for."""
    batch, ids = Batch(), _ids_of_requests(members)
    for member in members:
        if isinstance(member, Malformed) and member.is_response:
            exchange.reject(side, member, ids)  # first: its request is answered with those of its array
    whole = _find_answered(exchange, side, members)
    noted = [_note_member(exchange, side, member, batch, whole) for member in members]
    exchange.counters.passed += 1
    if all(passes is member for passes, member in zip(noted, members, strict=True)):
        exchange.forward(side, frame)
        return
    wanted = [
        passes.body if isinstance(passes, Frame) else body
        for passes, body in zip(noted, frame.body, strict=True)
        if passes is not None
    ]
    if wanted:
        exchange.forward(side, rewrite(frame, wanted))


def _find_answered(exchange: Exchange, side: Side, members: list[Frame | Malformed]) -> Batch | None:
    """Return the array that these members answer as a whole; None where they answer a part, several, or none."""
    asked, keys = exchange.calls[side.other].waiting, dict.fromkeys(one.key for one in members if _is_answer(one))
    calls = [call for key in keys if key is not None and (call := asked.get(key)) is not None]
    batch = calls[0].batch if calls else None
    is_one = batch is not None and all(call.batch is batch for call in calls)
    return batch if is_one and batch is not None and batch.open_requests == len(calls) and not batch.answers else None


def _is_answer(member: Frame | Malformed) -> bool:
    return isinstance(member, Frame) and member.method is None


def _note_member(
    exchange: Exchange, side: Side, member: Frame | Malformed, batch: Batch, whole: Batch | None
) -> Frame | Malformed | None:
    """Note who waits for what of an array that passes; give what passes of this member of it."""
    if isinstance(member, Malformed):
        return None if member.is_response else member
    if member.method == "notifications/cancelled":
        exchange.note_cancellation(side, member)
    if member.key is None:
        return member
    if member.kind == "request":
        assert member.method is not None
        call = Call(member.key, member.method, batch, exchange.front)
        unfit = exchange.calls[side].add(call)
        assert unfit is None, "an array that does not fit is split"
        if exchange.notes_tokens and side is Side.CLIENT and (token := read_token(member)) is not None:
            exchange.calls[side].note_token(call, token)
        batch.open_requests += 1
        return member
    asked = exchange.calls[side.other].take(member.key)
    if asked is None:
        member, asked = exchange.mistakes.take_twin(side, member, member.key, exchange.calls[side.other])
    if asked is None:
        exchange.mistakes.note_unmatched(side, member.key or b"")
        return None
    if asked.batch is None:
        return member
    if asked.batch is whole:
        whole.open_requests -= 1
        return member
    complete = asked.batch.answer(member)  # with those that came alone or in other arrays, or are errors of ours
    if complete is not None:
        exchange.front.post(side.other, complete)
    return None
