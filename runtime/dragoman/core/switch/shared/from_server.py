"""Frames from a shared server to its clients.

Lives here: the way of each kind of frame from the server. Must not: know transports. Called by `switch`.

Answers are not decoded: the proxy's own id in them is replaced by the client's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.batches import read_member
from dragoman.core.calls import is_unanswered
from dragoman.core.codes import INTERNAL_ERROR, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed, decoded, error_frame, key_of, result_frame, rewrite
from dragoman.core.methods import UPDATED
from dragoman.core.mistakes import explain_malformed, refuse_garbled
from dragoman.core.peek import with_id
from dragoman.core.serving.attribution import elicitation_ids
from dragoman.core.serving.loans import Loan
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.streams import ANNOUNCED
from dragoman.core.switch.shared.allowed import find_fault
from dragoman.core.switch.shared.desk import Desk, params_of
from dragoman.core.unchecked import find_object
from dragoman_spec import HANDSHAKE_REVISIONS, facts

logger = logging.getLogger("dragoman.sharing")

_NEWS_FOR_ALL: Final = ANNOUNCED - {UPDATED}
_INTERACTIVE: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).interactive)
"""Requests that must reach the right person: a server that makes them has its calls taken in turns."""


class FromServer:
    """Takes what the server says.

    Args:
        desk: The tables.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._news: Mapping[str, Callable[[Frame, dict[str, Any]], ClientSession | None]] = {
            "notifications/cancelled": lambda _, params: desk.questions.withdraw(key_of(params.get("requestId"))),
            "notifications/message": self._find_log_reader,
            "notifications/tasks/status": lambda _, params: desk.attribution.task_owner(params.get("taskId")),
            "notifications/elicitation/complete": lambda _, params: desk.attribution.elicitation_owner(
                params.get("elicitationId")
            ),
        }

    def take_frame(self, frame: Frame | Malformed) -> None:
        """Take a frame; the id of its stream is that of the request, of ours, on whose stream it came."""
        if isinstance(frame, Malformed):
            self._take_malformed(frame)
        elif frame.kind == "batch":
            for one in frame.body:
                self.take_frame(read_member(one, frame.stream))
        elif frame.kind == "request":
            self._take_question(frame)
        elif frame.kind == "notification":
            self._take_news(frame)
        else:
            self._take_answer(frame)

    def _take_malformed(self, malformed: Malformed) -> None:
        desk = self._desk
        desk.counters.malformed += 1
        logger.warning("%s", explain_malformed(malformed, "shared server"))
        loan = desk.loans.find(malformed.key) if malformed.is_response else None
        if loan is not None:
            self._take_answer(refuse_garbled(malformed.reason, loan.method).answer(loan.key))
        elif malformed.is_response and malformed.key is not None:
            desk.loans.suspects.clear(malformed.key)

    def _take_answer(self, frame: Frame) -> None:
        desk = self._desk
        is_final = frame.kind == "result" or not is_unanswered(frame)
        loan = desk.loans.take(frame.key, is_final)
        if loan is None:
            desk.counters.unmatched += 1
            logger.debug("the shared server answered what nobody asked, or nobody waits for")
            return
        (desk.turns.forget if is_final else desk.turns.suspect)(loan)
        if loan.session is not None and loan.session.present and loan.call is not None:
            answer = self._return_id(loan, loan.call.key, loan.session, frame)
            if answer is not None:
                desk.pass_answer(loan.session, loan.call, answer)
        desk.let_in()

    def _return_id(self, loan: Loan, key: bytes, session: ClientSession, frame: Frame) -> Frame | None:
        try:
            told = frame if loan.hook is None else loan.hook(loan, frame)
            if told is None:
                return None
            frame = told
            if frame.kind == "error" and b"elicitationId" in frame.raw:
                for name in elicitation_ids(find_object(decoded(frame).body, "error")):
                    self._desk.attribution.add_elicitation(name, session)
            return Frame(with_id(frame, key), frame.kind, key, None)
        except ValueError as error:
            message = f"the server's answer cannot be read: {error}"
            return error_frame(key, INTERNAL_ERROR, message, {"method": loan.method})

    def _take_question(self, frame: Frame) -> None:
        desk = self._desk
        assert frame.key is not None
        if frame.method == "ping":
            desk.tell_server(result_frame(frame.key, {}))
            return
        fault = find_fault(frame, "server", desk.methods)
        if fault is not None:
            desk.refuse_server(frame, error_frame(frame.key, fault.code, fault.reason, {"method": frame.method}))
            return
        try:
            params = params_of(decoded(frame).body)
        except ValueError as error:
            desk.counters.malformed += 1
            desk.tell_server(error_frame(frame.key, PARSE_ERROR, str(error)))
            return
        reasons = desk.attribution.reasons(params, frame)
        is_told = bool(frame.source and len(reasons) == 1) or desk.attribution.named_owners(params, frame.stream)
        if frame.method in _INTERACTIVE and not is_told:
            self._take_turns()
        chosen = desk.questions.pose(frame, params, reasons)
        if isinstance(chosen, ClientSession):
            desk.tell(chosen, self._on_own_stream(frame, chosen))
        elif chosen.kind == "error":
            desk.refuse_server(frame, chosen)
        else:
            logger.debug("%s request of the shared server answered by the proxy", frame.method)
            desk.tell_server(chosen)

    def _take_turns(self) -> None:
        if not self._desk.turns.asks:
            self._desk.turns.asks = True
            logger.info(
                "the shared server asks its clients: calls of different sessions go to it in turns from here on"
            )

    def _take_news(self, frame: Frame) -> None:
        desk, method = self._desk, frame.method or ""
        if method in _NEWS_FOR_ALL:
            for session in list(desk.sessions.values()):
                if session.ready:
                    desk.tell(session, self._on_own_stream(frame, session))
            return
        fault = find_fault(frame, "server", desk.methods)
        if fault is not None:
            desk.drop("the shared server", frame, fault.reason)
            return
        try:
            frame = decoded(frame)
        except ValueError as error:
            self._take_malformed(Malformed(INTERNAL_ERROR, str(error), line=frame.raw))
            return
        params = params_of(frame.body)
        if method == UPDATED:
            self._spread_update(frame, params)
        elif method == "notifications/progress":
            self._pass_progress(frame, params)
        else:
            owner = self._news.get(method, self._find_reason)(frame, params)
            if owner is None or not owner.present:
                self._drop_nobodys(method)
            else:
                desk.tell(owner, self._on_own_stream(frame, owner))

    def _drop_nobodys(self, method: str) -> None:
        self._desk.counters.dropped += 1  # happens to every server that logs, so it is not a warning
        logger.debug("%s of the shared server dropped: it belongs to no session", method)

    def _on_own_stream(self, frame: Frame, session: ClientSession) -> Frame:
        """Give a frame for a session the client's own id of the request on whose stream it came."""
        if frame.stream is None:
            return frame
        loan = self._desk.loans.find(frame.stream)
        call = None if loan is None or loan.session is not session else loan.call
        return frame._replace(stream=None if call is None else call.key)

    def _spread_update(self, frame: Frame, params: dict[str, Any]) -> None:
        listeners = list(self._desk.subscriptions.listeners(UPDATED, params.get("uri")))
        for session in listeners:
            self._desk.tell(session, self._on_own_stream(frame, session))
        self._desk.counters.dropped += not listeners

    def _pass_progress(self, frame: Frame, params: dict[str, Any]) -> None:
        """Pass progress to whose it is, with the client's own token; of what nobody waits for, to nobody."""
        desk, key = self._desk, key_of(params.get("progressToken")) or b""
        loan = desk.attribution.find_progressing(key)
        is_open = loan is not None and loan.key in desk.loans.by_key
        if loan is None or loan.token is None or loan.owner is None or (is_open and loan.cancelled_at is not None):
            self._drop_nobodys("notifications/progress")
            return
        params["progressToken"] = loan.token[0]
        stream = loan.call.key if is_open and loan.call is not None else None
        desk.tell(loan.owner, rewrite(frame, frame.body)._replace(stream=stream))

    def _find_log_reader(self, frame: Frame, params: dict[str, Any]) -> ClientSession | None:
        session = self._find_reason(frame, params)
        wanted = session is not None and self._desk.levels.wants(session, params.get("level"))
        return session if wanted else None

    def _find_reason(self, frame: Frame, params: dict[str, Any]) -> ClientSession | None:
        """Return whom a frame is about that only one session may hear: between principals, no guess is good enough."""
        desk = self._desk
        if desk.loans.is_of_several:
            reasons = desk.attribution.named_owners(params, frame.stream)
        else:
            reasons = desk.attribution.reasons(params, frame)
        return next(iter(reasons)) if len(reasons) == 1 else None
