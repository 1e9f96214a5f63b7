"""JSON-RPC arrays in the traffic of one client's session: passed whole where that changes nothing, else taken apart.

Lives here: what becomes of an array and of its members. Must not: read members or join answers (`core.batches`), or
relay a single frame (`core.exchange`, which calls this).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.core.batches import Batch, explain_batches, has_batches, read_member
from dragoman.core.calls import Call
from dragoman.core.commands import Side
from dragoman.core.envelope import INVALID_REQUEST, Frame, Malformed, error_frame, rewrite
from dragoman.core.failures import CONNECTION_CLOSED as TOO_MANY
from dragoman.core.tally import deserves_a_line

if TYPE_CHECKING:
    from dragoman.core.exchange import Exchange

logger = logging.getLogger("dragoman.exchange")


def take_array(exchange: Exchange, side: Side, frame: Frame) -> None:
    """Take an array of this peer: pass it, or take it apart; a peer whose revision has none is refused."""
    if not has_batches(exchange.revisions[side]):
        exchange.reject(side, Malformed(INVALID_REQUEST, f"expected one JSON-RPC object: {explain_batches()}"))
        return
    members = [read_member(member, frame.stream) for member in frame.body]
    calls = [Call(m.key, m.method) for m in members if isinstance(m, Frame) and m.key and m.method]
    if not members:
        exchange.reject(side, Malformed(INVALID_REQUEST, "expected a batch to hold at least one frame"))
    elif len(calls) > exchange.batch_requests:
        _refuse_requests(exchange, side, members)
    elif exchange.passes_arrays and exchange.calls[side].fits(calls):
        _pass_array(exchange, side, frame, members)
    else:
        _split_array(exchange, side, members)


def _refuse_requests(exchange: Exchange, side: Side, members: list[Frame | Malformed]) -> None:
    """Refuse the requests of an array together, with one error; what else is in it passes."""
    exchange.counters.excess += 1
    reason = f"expected a batch to hold no more than {exchange.batch_requests} requests"
    if deserves_a_line(exchange.counters.excess):
        logger.warning("a batch of the %s refused: %s (%d so far)", side.value, reason, exchange.counters.excess)
    exchange.post(side, error_frame(None, TOO_MANY, reason, {"limit": exchange.batch_requests}))
    rest = [member for member in members if not (isinstance(member, Frame) and member.kind == "request")]
    _split_array(exchange, side, rest)


def _split_array(exchange: Exchange, side: Side, members: list[Frame | Malformed]) -> None:
    frames = [member for member in members if isinstance(member, Frame)]
    batch = Batch(sum(frame.kind == "request" for frame in frames))
    for member in members:
        if isinstance(member, Malformed):
            exchange.counters.malformed += 1
            logger.warning("malformed member of a batch from the %s: %s", side.value, member.reason)
            if member.is_response:
                exchange.fail_garbled(side, member)
            else:
                batch.answers.append(error_frame(member.key, member.code, member.reason).raw)
    whole = batch.complete()
    if whole is not None:
        exchange.post(side, whole)
    for frame in frames:
        if frame.kind == "request":
            exchange.relay_request(side, frame, batch)
        else:
            exchange.relay(side, frame)


def _pass_array(exchange: Exchange, side: Side, frame: Frame, members: list[Frame | Malformed]) -> None:
    """Pass an array between two peers that both know arrays, without the answers that nobody waits for."""
    batch = Batch()
    noted = [_note_member(exchange, side, member, batch) for member in members]
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


def _note_member(exchange: Exchange, side: Side, member: Frame | Malformed, batch: Batch) -> Frame | Malformed | None:
    """Note who waits for what of an array that passes; give what passes of this member of it."""
    if isinstance(member, Malformed):
        if not member.is_response:
            return member
        exchange.reject(side, member)
        return None
    if member.method == "notifications/cancelled":
        exchange.note_cancellation(side, member)
    if member.key is None:
        return member
    if member.kind == "request":
        assert member.method is not None
        unfit = exchange.calls[side].add(Call(member.key, member.method, batch, exchange.front))
        assert unfit is None, "an array that does not fit is split"
        batch.open_requests += 1
        return member
    call = exchange.calls[side.other].take(member.key)
    if call is None:
        member, call = exchange.take_twin(side, member, member.key)
    if call is None:
        exchange.note_unmatched(side, member.key or b"")
        return None
    if call.batch is not None:
        call.batch.open_requests -= 1
    return member
