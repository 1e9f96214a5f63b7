"""What either peer of a session gets wrong: noting it, and wording the error that answers it.

Lives here: lines that are not frames, requests that cannot be kept, answers that nobody waits for or that came back
under another id. Must not: send anything, or know who is at the other end. Called by `edges.exchange` and `arrays`.
"""

from __future__ import annotations

import logging

from dragoman.core.calls import NAME_BYTES, TOO_MANY, Call, Calls, Unfit
from dragoman.core.codes import INTERNAL_ERROR, INVALID_REQUEST
from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, Malformed, Refusal, decoded, error_frame, rewrite, show_key, twin_of
from dragoman.core.exact_json import decode
from dragoman.core.lines import show
from dragoman.core.tally import deserves_a_line
from dragoman.core.translate import Counters

logger = logging.getLogger("dragoman.exchange")


def explain_malformed(malformed: Malformed, server: str = "server") -> str:
    """Say what is wrong with a line of a server; what does not look like JSON is most likely its log."""
    line = malformed.line
    if isinstance(line, bytes) and line.strip() and line.lstrip()[:1] not in b"{[":
        remedy = "which is left out; its log belongs on stderr"
        return f"the {server} printed a line that is not JSON-RPC, {remedy}: {show(line)}"
    return f"malformed line from the {server}: {malformed.reason}{f': {show(line)}' if line else ''}"


def refuse_garbled(reason: str, method: str = "", server: str = "server") -> Refusal:
    """Say to who waits for an answer that something else came in its place."""
    message = f"the {server} answered with something that is not a response: {reason}"
    return Refusal(INTERNAL_ERROR, message, {"method": method} if method else {})


class Mistakes:
    """Knows what to say of each mistake, and counts them.

    Args:
        counters: Where they are counted.
        restore_ids: Whether an answer may have its request's id as another JSON type.
    """

    __slots__ = ("_counters", "_restore_ids")

    def __init__(self, counters: Counters, restore_ids: bool) -> None:
        self._counters = counters
        self._restore_ids = restore_ids

    def note_malformed(self, side: Side, malformed: Malformed) -> None:
        """Record a line that is not a frame.

        The line of a server is shown in the log, shortened: it often says what is wrong there.
        """
        self._counters.malformed += 1
        if side is Side.SERVER:
            logger.warning("%s", explain_malformed(malformed))
        elif deserves_a_line(self._counters.malformed):
            logger.warning("malformed line from the client: %s", malformed.reason)

    def refuse_unfit(self, side: Side, call: Call, unfit: Unfit, limit: int) -> Refusal:
        """Say why a request cannot be kept; so many may wait at a time. The answer to a duplicate has no id."""
        if unfit is Unfit.DUPLICATE:
            return self._refuse_duplicate(side, call)
        code, reason = TOO_MANY, f"more than {limit} requests of the {side.value} are unanswered"
        if unfit is Unfit.TOO_LONG:
            code, reason = INVALID_REQUEST, f"expected id and method to have at most {NAME_BYTES} bytes together"
        self._counters.excess += 1
        if deserves_a_line(self._counters.excess):
            method, so_far = call.method[:80], self._counters.excess
            logger.warning("%s request of the %s refused: %s (%d so far)", method, side.value, reason, so_far)
        data = {"method": call.method[:80], "limit": limit if unfit is Unfit.TOO_MANY else NAME_BYTES}
        return Refusal(code, reason, data)

    def _refuse_duplicate(self, side: Side, call: Call) -> Refusal:
        # "The request ID MUST NOT have been previously used by the requestor within the same session." The answer
        # carries no id: it would end the request that rightly holds it.
        reason = f"the id {show_key(call.key)} of this {call.method} request belongs to one that is not answered yet"
        self._counters.malformed += 1
        logger.warning("malformed request from the %s: %s", side.value, reason)
        return Refusal(INVALID_REQUEST, reason, {})

    def note_unmatched(self, side: Side, key: bytes) -> None:
        """Record an answer of this peer that nobody waits for."""
        # Of several answers to one request only the first may reach whoever asked, whatever the revisions are.
        self._counters.unmatched += 1
        logger.debug("the %s answered %s, which was never asked or is already answered", side.value, show_key(key))

    def take_twin(self, side: Side, frame: Frame, key: bytes, asked: Calls) -> tuple[Frame, Call | None]:
        """Take the request off the table whose id came back as another type, and give the response its id again.

        Args:
            side: Who answered.
            frame: The response.
            key: Its id.
            asked: The requests that this peer has to answer.

        Returns:
            The response under the id of its request, and that request; None where there is no such request.
        """
        twin = twin_of(key) if self._restore_ids else None
        call = None if twin is None else asked.take(twin)
        if twin is None or call is None:
            return frame, None
        logger.debug("the %s answered %s as %s", side.value, show_key(twin), show_key(key))
        try:
            return rewrite(frame, {**decoded(frame).body, "id": decode(twin)})._replace(key=twin), call
        except ValueError as error:
            return error_frame(twin, INTERNAL_ERROR, f"the {side.value}'s answer cannot be read: {error}"), call
